import { isReservedOnWindows } from './windows-names.ts';

/** A request target as the canonical, decoded path below the mount, or why it is refused. */
export type Target = { readonly path: string } | { readonly refusal: string };

const ABSOLUTE = /^https?:\/\/[^/?#]*/i;
// A decoded slash or backslash would let one segment become two after every guard has looked at it.
const ENCODED_SEPARATOR = /%(?:2f|5c|00)/i;
const UNPRINTABLE = /[^\x21-\x7e]/;

/**
 * Reads a request target. Only the canonical spelling of a path is accepted, nothing is normalised away: no dot
 * segments, no empty ones, no backslashes, decoded exactly once. A path that a guard in front of us
 * read differently than we do cannot exist.
 */
export function parseTarget(url: string, windows: boolean): Target {
  const absolute = ABSOLUTE.exec(url);
  const relative = absolute === null ? url : url.slice(absolute[0].length);
  const query = relative.indexOf('?');
  const raw = query < 0 ? relative : relative.slice(0, query);
  if (raw[0] !== '/') return { refusal: 'not a path' };
  if (raw.includes('#') || UNPRINTABLE.test(raw)) return { refusal: 'characters that no path has' };
  if (ENCODED_SEPARATOR.test(raw)) return { refusal: 'an encoded separator' };
  const path = raw.includes('%') ? decode(raw) : raw;
  if (path === undefined) return { refusal: 'malformed percent-encoding' };
  if (hasControl(path)) return { refusal: 'control characters or backslashes' };
  return checkSegments(path, windows);
}

/** Control characters, which no name of ours has, and backslashes, which are separators on some systems. */
function hasControl(path: string): boolean {
  for (let i = 0; i < path.length; i++) {
    const code = path.charCodeAt(i);
    if (code < 0x20 || code === 0x7f || code === 0x5c) return true;
  }
  return false;
}

function decode(raw: string): string | undefined {
  try {
    return decodeURIComponent(raw);
  } catch {
    return undefined;
  }
}

function checkSegments(path: string, windows: boolean): Target {
  const segments = path.split('/');
  // The first is what stands before the leading slash; the last is empty for `dir/`.
  for (let i = 1; i < segments.length; i++) {
    const segment = segments[i] as string;
    if (segment === '' && i < segments.length - 1) return { refusal: 'an empty segment' };
    if (segment === '.' || segment === '..') return { refusal: 'a dot segment' };
    if (windows && isReservedOnWindows(segment)) return { refusal: 'a name that Windows reads differently' };
  }
  return { path };
}

/** Whether a segment below the root begins with a dot; `.well-known` at the top does not count (RFC 8615). */
export function hasDotSegment(path: string): boolean {
  const at = path.indexOf('/.');
  if (at < 0) return false;
  const wellKnown = /^\/\.well-known(?:\/|$)/.test(path);
  return !wellKnown || path.indexOf('/.', '/.well-known'.length) >= 0;
}
