/** Ranges read of one Accept header; the rest of a longer one is not worth the work. */
const MAX_RANGES = 32;
const MAX_REMEMBERED = 32;
const MAX_REMEMBERED_LENGTH = 512;

interface Range {
  readonly type: string;
  readonly quality: number;
  readonly position: number;
}

/** What an Accept header comes to for a list of offers. */
export interface Negotiated {
  /** The offer to answer with; undefined when none is acceptable (406). */
  readonly type: string | undefined;
  /** The header lists types and none of them is a wildcard. */
  readonly explicit: boolean;
  /** The offers the header accepts at all. */
  readonly acceptable: readonly string[];
}

/**
 * Content negotiation for a fixed list of offers (RFC 9110 §12.5.1): weights first, then the client's order, then ours.
 * Clients send the same header again and again, so answers are remembered.
 */
export function createNegotiator(offers: readonly string[]): (accept: string | undefined) => Negotiated {
  const remembered = new Map<string, Negotiated>();
  const absent: Negotiated = { type: offers[0], explicit: false, acceptable: offers };
  return (accept) => {
    if (accept === undefined) return absent;
    let decision = remembered.get(accept);
    if (decision === undefined) {
      decision = accept.trim() === '' ? absent : negotiate(accept, offers);
      if (accept.length <= MAX_REMEMBERED_LENGTH) {
        if (remembered.size >= MAX_REMEMBERED) remembered.clear();
        remembered.set(accept, decision);
      }
    }
    return decision;
  };
}

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
  for (const [position, item] of accept.split(',', MAX_RANGES).entries()) {
    const [type = '', ...parameters] = item.split(';');
    const range = { type: type.trim().toLowerCase(), quality: 1, position };
    if (parameters.every((parameter) => accepts(parameter, range))) ranges.push(range);
  }
  return ranges;
}

/** Takes in one parameter; false when it asks for what we never send: a charset beside UTF-8. */
function accepts(parameter: string, range: { quality: number }): boolean {
  const [name = '', value = ''] = parameter.split('=', 2).map((part) => part.trim().toLowerCase());
  if (name === 'charset') return /^"?utf-?8"?$/.test(value);
  if (name === 'q') {
    const quality = Number(value);
    range.quality = value !== '' && quality >= 0 && quality <= 1 ? quality : 0;
  }
  return true;
}
