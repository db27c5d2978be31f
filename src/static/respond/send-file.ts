import { parseHttpDate } from '../../http/conditions/date.ts';
import { checkPreconditions, rangeIsCurrent, type Validators } from '../../http/conditions/preconditions.ts';
import { type ByteRange, parseRanges } from '../../http/conditions/ranges.ts';
import { parseAcceptEncoding } from '../../http/negotiation/accept-encoding.ts';
import type { Entry } from '../file/loaded-file.ts';
import type { Facts, Representation } from '../file/representation.ts';
import { type Preset, presetOf, writeHead } from './headers.ts';
import type { Exchange, Means } from './request-context.ts';
import { sendRanges, sendWhole } from './send-body.ts';
import { refuse } from './send-status.ts';

/** Answers a GET or HEAD with a file: negotiation, preconditions in their order, ranges, body. */
export function answerFile(exchange: Exchange, entry: Entry, means: Means): void {
  const { req, res } = exchange;
  const { setHeaders } = means.settings;
  if (setHeaders !== undefined && entry.stat !== undefined) setHeaders(res, entry.plain.path, entry.stat);
  const chosen = choose(entry, req.headers['accept-encoding']);
  if (chosen === undefined) refuse(exchange, 406, { Vary: 'Accept-Encoding' });
  else answerWith(exchange, chosen, means);
}

function answerWith(exchange: Exchange, chosen: Representation, means: Means): void {
  const { req, res } = exchange;
  const preset = presetOf(res);
  const validators = validatorsOf(exchange, chosen, preset);
  const verdict = checkPreconditions(req.headers, validators);
  if (verdict === 'failed') refuse(exchange, 412);
  else if (verdict === 'not-modified') {
    writeHead(res, 304, chosen.shared, preset);
    res.end();
  } else {
    const ranges = rangesOf(exchange, chosen, validators);
    if (ranges === undefined) sendWhole(exchange, chosen, means, preset);
    else sendRanges(exchange, chosen, ranges, means);
  }
}

/** Best coding by the client's weights, then by our order; undefined when it refuses all of them. */
function choose(entry: Entry, header: string | undefined): Representation | undefined {
  if (entry.coded.length === 0) return entry.plain;
  const preference = parseAcceptEncoding(header);
  let best: Representation | undefined;
  let weight = 0;
  for (const candidate of [...entry.coded, entry.plain]) {
    const liked = preference(candidate.facts.coding ?? 'identity');
    if (liked > weight) {
      best = candidate;
      weight = liked;
    }
  }
  return best;
}

/** A tag or date that somebody set before us, or in `setHeaders`, is the one that will be sent: so it is the one that counts. */
function validatorsOf({ res }: Exchange, representation: Representation, preset: Preset): Validators {
  if (!preset?.includes('etag') && !preset?.includes('last-modified')) return representation;
  const tag = res.getHeader('ETag');
  const modified = res.getHeader('Last-Modified');
  return {
    tag: typeof tag === 'string' ? tag : representation.tag,
    modified: typeof modified === 'string' ? parseHttpDate(modified) : representation.modified,
  };
}

/** The ranges to answer; undefined: the whole. Range is defined for GET alone (RFC 9110 §14.2). */
function rangesOf(
  { req, res }: Exchange,
  { facts }: Representation,
  validators: Validators,
): ByteRange[] | undefined {
  const { range } = req.headers;
  if (range === undefined || !facts.acceptRanges || req.method !== 'GET') return undefined;
  // Over HTTP/2 an app's responses have members of their own anyway.
  const isWrapped = req.httpVersionMajor < 2 && Object.hasOwn(res, 'write');
  if (isWrapped && isCompressible(facts)) return undefined;
  const ifRange = req.headers['if-range'];
  if (!rangeIsCurrent(typeof ifRange === 'string' ? ifRange : undefined, validators)) return undefined;
  return parseRanges(range, facts.size);
}

/**
 * Whoever has replaced `write` may compress what passes. A range would be compressed by itself, and nobody could put it
 * together with the rest.
 */
function isCompressible({ coding, type }: Facts): boolean {
  return coding === undefined && /^(?:text|font)\/|[/+](?:json|javascript|xml|wasm)/.test(type);
}
