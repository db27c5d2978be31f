import type { IncomingHttpHeaders } from 'node:http';
import { parseHttpDate } from './date.ts';
import { listMatchesStrongly, listMatchesWeakly, strongMatch } from './entity-tags.ts';

/** What identifies the version of a representation that would be answered. */
export interface Validators {
  readonly tag: string | undefined;
  /** Milliseconds, whole seconds. */
  readonly modified: number | undefined;
}

/** What the preconditions of a request make of its answer. */
export type Verdict = 'proceed' | 'not-modified' | 'failed';

/** RFC 9110 §13.2.2, steps 1 to 4, for a GET or HEAD whose plain answer would be 200. */
export function checkPreconditions(headers: IncomingHttpHeaders, current: Validators): Verdict {
  const match = headers['if-match'];
  const unmodified = headers['if-unmodified-since'];
  if (match !== undefined) {
    if (!matches(match, current)) return 'failed';
  } else if (unmodified !== undefined && !unchangedSince(unmodified, current, true)) return 'failed';

  const none = headers['if-none-match'];
  if (none !== undefined) return noneMatches(none, current) ? 'proceed' : 'not-modified';
  const since = headers['if-modified-since'];
  if (since !== undefined && unchangedSince(since, current, false)) return 'not-modified';
  return 'proceed';
}

/** RFC 9110 §13.1.5: whether `Range` may be honoured: the very tag, strong, or the very date. */
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

/** A date that cannot be read, or compared, counts as not sent: `otherwise` (§13.1.3, §13.1.4). */
function unchangedSince(text: string, current: Validators, otherwise: boolean): boolean {
  const date = parseHttpDate(text.trim());
  if (date === undefined || current.modified === undefined) return otherwise;
  return current.modified <= date;
}
