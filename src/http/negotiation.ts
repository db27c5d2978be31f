/** The media types of GraphQL responses. */
export const JSON_TYPE = 'application/json';
export const GRAPHQL_TYPE = 'application/graphql-response+json';

/** The maximum number of media ranges in an Accept header. A longer header counts as absent. */
const MAX_RANGES = 32;

interface Range {
  readonly type: string;
  readonly quality: number;
  readonly position: number;
}

/** The result of negotiation for a list of offers. */
export interface Negotiated {
  /** The preferred offer; undefined when none is acceptable (406). */
  readonly type: string | undefined;
  /** Whether the header lists media types and no wildcard. */
  readonly explicit: boolean;
  /** All offers that the header accepts. */
  readonly acceptable: readonly string[];
}

/**
 * Creates a function that negotiates a fixed list of offers (RFC 9110 §12.5.1): by weight, then by the order
 * of the header, then by the order of the offers.
 */
export function createNegotiator(offers: readonly string[]): (accept: string | undefined) => Negotiated {
  const absent: Negotiated = { type: offers[0], explicit: false, acceptable: offers };
  const negotiateCached = cacheByHeader((accept) =>
    accept.trim() === '' || isTooLong(accept) ? absent : negotiate(accept, offers),
  );
  return (accept) => (accept === undefined ? absent : negotiateCached(accept));
}

const isTooLong = (accept: string): boolean => accept.split(',', MAX_RANGES + 1).length > MAX_RANGES;

function negotiate(accept: string, offers: readonly string[]): Negotiated {
  const ranges = parseAccept(accept);
  const ranked: { offer: string; range: Range }[] = [];
  for (const offer of offers) {
    const range = mostSpecific(offer, ranges);
    if (range !== undefined && range.quality > 0) ranked.push({ offer, range });
  }
  const acceptable = ranked.map(({ offer }) => offer);
  ranked.sort((a, b) => b.range.quality - a.range.quality || a.range.position - b.range.position);
  return { type: ranked[0]?.offer, explicit: !ranges.some(({ type }) => type.endsWith('/*')), acceptable };
}

function mostSpecific(offer: string, ranges: readonly Range[]): Range | undefined {
  const family = `${offer.slice(0, offer.indexOf('/'))}/*`;
  return (
    ranges.find(({ type }) => type === offer) ??
    ranges.find(({ type }) => type === family) ??
    ranges.find(({ type }) => type === '*/*')
  );
}

function parseAccept(accept: string): Range[] {
  const ranges: Range[] = [];
  for (const [position, item] of accept.split(',').entries()) {
    const [type = '', ...parameters] = item.split(';');
    const range = { type: type.trim().toLowerCase(), quality: 1, position };
    if (parameters.every((parameter) => accepts(parameter, range))) ranges.push(range);
  }
  return ranges;
}

/** Reads one parameter; returns false for a charset other than UTF-8, which is never sent. */
function accepts(parameter: string, range: { quality: number }): boolean {
  const [name = '', value = ''] = parameter.split('=', 2).map((part) => part.trim().toLowerCase());
  if (name === 'charset') return /^"?utf-?8"?$/.test(value);
  if (name === 'q') {
    const quality = Number(value);
    range.quality = value !== '' && quality >= 0 && quality <= 1 ? quality : 0;
  }
  return true;
}

/** Returns the weight of a coding, 0 to 1; 0 means not acceptable. */
export type EncodingWeights = (coding: string) => number;

const WEIGHT = /^[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[ \t]*$/i;

/**
 * Parses `Accept-Encoding` (RFC 9110 §12.5.3). Without the header only identity is acceptable. With it,
 * identity is acceptable unless `identity;q=0` or `*;q=0` excludes it; its weight is lower than that of any
 * coding in the list.
 */
export function parseAcceptEncoding(header: string | undefined): EncodingWeights {
  if (header === undefined) return (coding) => (coding === 'identity' ? 1 : 0);
  const named = new Map<string, number>();
  for (const part of header.split(',')) {
    const [coding = '', ...parameters] = part.split(';');
    const name = coding.trim().toLowerCase();
    if (name !== '') named.set(name === 'x-gzip' ? 'gzip' : name, weightOf(parameters));
  }
  const rest = named.get('*');
  return (coding) => named.get(coding) ?? rest ?? (coding === 'identity' ? 0.0001 : 0);
}

function weightOf(parameters: readonly string[]): number {
  for (const parameter of parameters) {
    const match = WEIGHT.exec(parameter);
    if (match !== null) return Number(match[1]);
  }
  // A malformed weight excludes the coding.
  return parameters.length === 0 ? 1 : 0;
}

/** The texts that a cache keeps. */
interface TextCacheLimits {
  readonly entries: number;
  /** The longest text in characters. */
  readonly length: number;
}

/** For the paths of requests, most of which are for a few of them. */
const PATHS: TextCacheLimits = { entries: 1000, length: 256 };
const HEADERS: TextCacheLimits = { entries: 32, length: 512 };

/** Caches the results of `parse` by header value, since clients repeat a few values. */
export const cacheByHeader = <T>(parse: (header: string) => T): ((header: string) => T) =>
  cacheByText(parse, HEADERS);

/** The weight of a media type, 0 to 1, and whether the header lists the type itself. */
interface TypeWeight {
  readonly quality: number;
  readonly isNamed: boolean;
}

/** Parses `Accept` for types without parameters. A header that is too long accepts all types and names none. */
export const acceptedTypes: (accept: string) => (type: string) => TypeWeight = cacheByHeader((accept) => {
  const ranges = isTooLong(accept) ? [{ type: '*/*', quality: 1, position: 0 }] : parseAccept(accept);
  return (type) => {
    const range = mostSpecific(type, ranges);
    return { quality: range?.quality ?? 0, isNamed: range?.type === type };
  };
});

/** Caches the results of `parse` by text. A full cache is emptied. */
export function cacheByText<T>(
  parse: (text: string) => T,
  { entries, length }: TextCacheLimits = PATHS,
): (text: string) => T {
  const cache = new Map<string, T>();
  return (text) => {
    let parsed = cache.get(text);
    if (parsed === undefined) {
      parsed = parse(text);
      if (text.length <= length) {
        if (cache.size >= entries) cache.clear();
        cache.set(text, parsed);
      }
    }
    return parsed;
  };
}

// Languages that a client may prefer; further ones are ignored.
const MAX_LANGUAGES = 32;

/** Puts the languages of a site in the order of a header, by the weight of its ranges (RFC 9110 §12.5.4). */
export const createLanguageOrder = (languages: readonly string[]): ((header: string) => readonly string[]) =>
  cacheByHeader((header) => {
    const preferred = languageRangesOf(header).flatMap((range) => lookUp(range, languages) ?? []);
    return [...new Set([...preferred, ...languages])];
  });

/** The ranges without those that the client excludes, the preferred ones first. */
const languageRangesOf = (header: string): readonly string[] =>
  header
    .split(',', MAX_LANGUAGES)
    .map((item) => {
      const [range = '', weight = '1'] = item.split(/;\s*q\s*=/i);
      return { range: range.trim(), weight: Number(weight) };
    })
    .filter(({ weight }) => weight > 0 && weight <= 1)
    .sort((a, b) => b.weight - a.weight)
    .map(({ range }) => range);

/** The lookup of RFC 4647 §3.4: the range is shortened from its end until it is a language of the site. */
function lookUp(range: string, languages: readonly string[]): string | undefined {
  const subtags = range.toLowerCase().split('-', 9);
  while (subtags.length > 0) {
    const tag = subtags.join('-');
    const found = languages.find((language) => language.toLowerCase() === tag);
    if (found !== undefined) return found;
    subtags.pop();
    if (subtags.at(-1)?.length === 1) subtags.pop();
  }
  return undefined;
}
