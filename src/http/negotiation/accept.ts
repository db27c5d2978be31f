import { cacheByHeader } from './text-cache.ts';

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
