import type { IncomingHttpHeaders } from 'node:http';
import { parseHttpDate } from './date.ts';
import { listMatchesStrongly, listMatchesWeakly, strongMatch } from './entity-tags.ts';

/** The validators of the representation that a 200 response would carry. */
export interface Validators {
  readonly tag: string | undefined;
  /** Milliseconds since the epoch, rounded down to whole seconds. */
  readonly modified: number | undefined;
}

/** The result of the preconditions: the normal response, 304, or 412. */
type PreconditionResult = 'proceed' | 'not-modified' | 'failed';

/** Evaluates preconditions (RFC 9110 §13.2.2, steps 1 to 4) of a GET or HEAD whose response would be 200. */
export function checkPreconditions(headers: IncomingHttpHeaders, current: Validators): PreconditionResult {
  const match = headers['if-match'];
  const unmodified = headers['if-unmodified-since'];
  if (match !== undefined) {
    if (!matches(match, current)) return 'failed';
  } else if (unmodified !== undefined && unchangedSince(unmodified, current) === false) return 'failed';

  const none = headers['if-none-match'];
  if (none !== undefined) return noneMatches(none, current) ? 'proceed' : 'not-modified';
  const since = headers['if-modified-since'];
  if (since !== undefined && unchangedSince(since, current)) return 'not-modified';
  return 'proceed';
}

/**
 * Whether `If-Range` permits a partial response: an equal strong tag, or an equal date (RFC 9110 §13.1.5).
 */
export function rangeIsCurrent(ifRange: string | undefined, current: Validators): boolean {
  if (ifRange === undefined) return true;
  if (ifRange.includes('"')) return current.tag !== undefined && strongMatch(ifRange.trim(), current.tag);
  const date = parseHttpDate(ifRange.trim());
  return date !== undefined && date === current.modified;
}

function matches(list: string, current: Validators): boolean {
  if (list.trim() === '*') return true;
  return current.tag !== undefined && listMatchesStrongly(list, current.tag);
}

function noneMatches(list: string, current: Validators): boolean {
  if (list.trim() === '*') return false;
  return current.tag === undefined || !listMatchesWeakly(list, current.tag);
}

/**
 * Compares a date. Undefined for a malformed or incomparable date: the precondition is ignored (§13.1.3,
 * §13.1.4).
 */
function unchangedSince(text: string, current: Validators): boolean | undefined {
  const date = parseHttpDate(text.trim());
  if (date === undefined || current.modified === undefined) return undefined;
  return current.modified <= date;
}
