import type { IncomingMessage } from 'node:http';
import { extname } from 'node:path';
import type { ConnectRequest } from '../../types/connect.ts';
import { decodePart, pathOf } from '../http/routing.ts';
import type { StaticSettings } from './options.ts';

/** Why a request target is refused, with the status that `send` has for it. */
interface Refused {
  readonly kind: 'refused';
  readonly reason: string;
  readonly status: 400 | 403 | 404;
}

/** The decoded path below the mount, or why there is none. */
type RequestPath = { readonly kind: 'path'; readonly path: string } | Refused;

const ABSOLUTE = /^https?:\/\/[^/?#]*/i;
// Decoding a slash or a backslash would split a segment after earlier middleware has checked the path.
const ENCODED_SEPARATOR = /%(?:2f|5c)/i;
// U+FFFD, encoded: one character of it in the bundle would double the memory of its text.
const ENCODED_REPLACEMENT = '%EF%BF%BD';
const UNPRINTABLE = /[^\x21-\x7e]/;
const UNPRINTABLE_TEXT = /[^\x21-\x7e]+/g;
// Windows has these devices in every directory and with any extension; superscript digits count as digits.
const WINDOWS_DEVICE =
  /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3])(?:[. ].*)?$/i;
// Names with which Windows reaches another file: streams and drives (`a.txt::$DATA`, `c:`), wildcards, 8.3
// names, and trailing dots and spaces, which it drops.
const WINDOWS_SPECIAL = /[:<>"|?*]|[. ]$|~\d/;

/**
 * Returns the target of a request in the spelling of a URL. Middleware may have written decoded text to `req.url`, for example
 * the parameter of a route; a client cannot have sent it if the original target is printable.
 */
export function targetOf({ url = '', originalUrl }: Pick<ConnectRequest, 'url' | 'originalUrl'>): string {
  const isRewritten = originalUrl !== undefined && UNPRINTABLE.test(url) && !UNPRINTABLE.test(originalUrl);
  return isRewritten
    ? url.replace(/\p{Surrogate}/gu, ENCODED_REPLACEMENT).replace(UNPRINTABLE_TEXT, encodeURIComponent)
    : url;
}

/**
 * The decoded path that the client asked for, from which its references start: middleware may have rewritten `url`.
 * Empty if it is no printable path.
 */
export function requestedPath({
  url,
  originalUrl = url,
}: Pick<ConnectRequest, 'url' | 'originalUrl'>): string {
  const path = pathOf(originalUrl);
  return (UNPRINTABLE.test(path) ? undefined : decodePart(path)) ?? '';
}

/** The last segment of a path; empty if the path ends with a slash. */
export const segmentOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

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

function refuse(reason: string, status: Refused['status'] = 404): Refused {
  return { kind: 'refused', reason, status };
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
  return { kind: 'path', path };
}

/** Whether a request can name a file or folder in its usual spelling. */
export function isServedName(name: string, options: { rejectWindowsNames: boolean }): boolean {
  if (name === '' || name.includes('/') || hasControlOrBackslash(name)) return false;
  return !(options.rejectWindowsNames && isReservedOnWindows(name));
}

/** Whether Windows opens a device, or a file of another name, for this name. */
function isReservedOnWindows(segment: string): boolean {
  return WINDOWS_DEVICE.test(segment) || WINDOWS_SPECIAL.test(segment);
}

/** Whether a segment begins with a dot; `.well-known` as the first segment does not count (RFC 8615). */
function hasDotSegment(path: string): boolean {
  const firstDot = path.indexOf('/.');
  if (firstDot < 0) return false;
  const wellKnown = /^\/\.well-known(?:\/|$)/.test(path);
  return !wellKnown || path.indexOf('/.', '/.well-known'.length) >= 0;
}

/** Whether the option `dotfiles` keeps a path from being served. */
export const isHidden = (path: string, { dotfiles }: Pick<StaticSettings, 'dotfiles'>): boolean =>
  dotfiles !== 'allow' && hasDotSegment(path);

/** The path of a URL for a decoded one. */
export const encodePath = (path: string): string =>
  /^[\w./~-]*$/.test(path) ? path : path.split('/').map(encodeURIComponent).join('/');

const HTML_TYPE = /(?:^|,)\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*(?:,|$))[^,]*)?(?=,|$)/i;

// Extensions of files that pages load or link to, and of scripts that other servers run. The list is fixed: a
// route may end like a domain (`/users/jane@example.com`) or a version, and many of these endings have a
// media type too.
const ASSETS = new Set(
  [
    'js mjs cjs jsx ts mts cts tsx css scss less map wasm json json5 jsonld webmanifest xml txt csv md rss atom yaml yml',
    'png jpg jpeg gif webp avif svg ico bmp tif tiff heic heif jxl apng cur woff woff2 ttf otf eot',
    'mp3 mp4 m4a m4v mov webm weba ogg ogv oga opus wav flac aac avi mkv m3u8 mpd vtt srt glb gltf',
    'pdf zip gz br zst tgz tar bz2 xz 7z rar jar exe dmg pkg msi deb rpm apk iso bin doc docx xls xlsx ppt pptx',
    'php asp aspx jsp cgi',
  ].flatMap((line) => line.split(' ').map((extension) => `.${extension}`)),
);

/** Whether a path may belong to a page: paths with the extension of an asset are not treated as pages. */
export function mayBePage(path: string): boolean {
  return !ASSETS.has(extname(path).toLowerCase());
}

/**
 * Whether a request is a page navigation: the browser sends `Sec-Fetch-Mode: navigate`, or `Accept` contains
 * `text/html`, which browsers send for pages but not for scripts, styles or images.
 */
export function isNavigation(req: IncomingMessage): boolean {
  return req.headers['sec-fetch-mode'] === 'navigate' || HTML_TYPE.test(req.headers.accept ?? '');
}
