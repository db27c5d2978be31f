import { decodePart } from '../../http/routing/url-path.ts';

/** The reason why a request target is refused, with the status that `send` has for it. */
interface Refusal {
  readonly reason: string;
  readonly status: 400 | 403 | 404;
}

/** The decoded path below the mount, or why the request target is refused. */
type RequestPath = { readonly path: string } | { readonly refusal: Refusal };

const ABSOLUTE = /^https?:\/\/[^/?#]*/i;
// Decoding a slash or a backslash would split a segment after earlier middleware has checked the path.
const ENCODED_SEPARATOR = /%(?:2f|5c)/i;
const UNPRINTABLE = /[^\x21-\x7e]/;
// Windows has these devices in every directory and with any extension; superscript digits count as digits.
const WINDOWS_DEVICE =
  /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3])(?:[. ].*)?$/i;
// Names with which Windows reaches another file: streams and drives (`a.txt::$DATA`, `c:`), wildcards, 8.3
// names, and trailing dots and spaces, which it drops.
const WINDOWS_SPECIAL = /[:<>"|?*]|[. ]$|~\d/;

/**
 * Parses a request target. Only the canonical spelling of a path is accepted and nothing is normalised: no
 * dot segments, no empty segments, no backslashes, and percent-encoding is decoded exactly once. Therefore
 * earlier middleware that guards a path cannot interpret it differently.
 *
 * @param url - `req.url`
 */
export function parseRequestPath(url: string, options: { rejectWindowsNames: boolean }): RequestPath {
  const absolute = ABSOLUTE.exec(url);
  const relative = absolute === null ? url : url.slice(absolute[0].length);
  const query = relative.indexOf('?');
  const encoded = query < 0 ? relative : relative.slice(0, query);
  if (encoded[0] !== '/') return refuse('the target does not begin with a slash');
  if (encoded.includes('#') || UNPRINTABLE.test(encoded))
    return refuse('a character that is not allowed in a URL path');
  const path = decodePart(encoded);
  if (path === undefined) return refuse('malformed percent-encoding', 400);
  if (path.includes('\0')) return refuse('a null character', 400);
  if (ENCODED_SEPARATOR.test(encoded)) return refuse('an encoded separator', statusOf(path));
  if (hasControlOrBackslash(path)) return refuse('a control character or a backslash', statusOf(path));
  // A slice keeps its whole target in memory, with the query, as long as the file is cached.
  const isSlice = path === encoded && encoded.length < url.length;
  return checkSegments(isSlice ? Buffer.from(path, 'latin1').toString('latin1') : path, options);
}

function refuse(reason: string, status: Refusal['status'] = 404): RequestPath {
  return { refusal: { reason, status } };
}

/** Returns 403 for a path that leads above the root, otherwise 404. */
function statusOf(path: string): 403 | 404 {
  let depth = 0;
  for (const segment of path.split(/[/\\]/)) {
    if (segment === '..') depth--;
    else if (segment !== '' && segment !== '.') depth++;
    if (depth < 0) return 403;
  }
  return 404;
}

/** Backslashes are separators on Windows. */
function hasControlOrBackslash(path: string): boolean {
  for (let i = 0; i < path.length; i++) {
    const code = path.charCodeAt(i);
    if (code < 0x20 || code === 0x7f || code === 0x5c) return true;
  }
  return false;
}

function checkSegments(path: string, options: { rejectWindowsNames: boolean }): RequestPath {
  const segments = path.split('/');
  // The first segment precedes the leading slash; the last one is empty for `dir/`.
  for (let i = 1; i < segments.length; i++) {
    const segment = segments[i] as string;
    if (segment === '' && i < segments.length - 1) return refuse('an empty segment', statusOf(path));
    if (segment === '.' || segment === '..') return refuse('a dot segment', statusOf(path));
    if (options.rejectWindowsNames && isReservedOnWindows(segment)) {
      return refuse('a name that Windows maps to another file');
    }
  }
  return { path };
}

/** Whether Windows opens a device, or a file of another name, for this name. */
function isReservedOnWindows(segment: string): boolean {
  return WINDOWS_DEVICE.test(segment) || WINDOWS_SPECIAL.test(segment);
}

/** Whether a segment begins with a dot; `.well-known` as the first segment does not count (RFC 8615). */
export function hasDotSegment(path: string): boolean {
  const firstDot = path.indexOf('/.');
  if (firstDot < 0) return false;
  const wellKnown = /^\/\.well-known(?:\/|$)/.test(path);
  return !wellKnown || path.indexOf('/.', '/.well-known'.length) >= 0;
}
