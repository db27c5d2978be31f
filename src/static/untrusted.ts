import type { ServerResponse } from 'node:http';
import { extname } from 'node:path';
import { optionError } from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { segmentOf } from './path.ts';
import type { HeaderList } from './representation.ts';

// The option `untrusted`: files that users have uploaded must not run on the origin that sends them, whatever they contain
// and whatever their names are. Each measure is enough by itself in current browsers.

/** The types that browsers show and cannot run, by extension. All others are downloads without a type of their own. */
const SHOWN: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'image/png': 'png',
    'image/jpeg': 'jpg jpeg',
    'image/gif': 'gif',
    'image/webp': 'webp',
    'image/avif': 'avif',
    'audio/mpeg': 'mp3',
    'audio/mp4': 'm4a',
    'audio/ogg': 'ogg oga opus',
    'audio/wav': 'wav',
    'audio/flac': 'flac',
    'audio/aac': 'aac',
    'audio/webm': 'weba',
    'video/mp4': 'mp4 m4v',
    'video/webm': 'webm',
    'video/ogg': 'ogv',
    'video/quicktime': 'mov',
    'text/plain; charset=utf-8': 'txt',
  }).flatMap(([type, extensions]) => extensions.split(' ').map((extension) => [`.${extension}`, type])),
);
const DOWNLOAD = 'application/octet-stream';

/** Nothing runs and nothing is loaded, on an origin of its own. */
const POLICY = "sandbox; default-src 'none'";
/** The same for sound and video, whose page in the browser loads the file again, and only from its own origin. */
const MEDIA_POLICY = "sandbox allow-same-origin; default-src 'none'; media-src 'self'";

/** Returns the type of a file by its name, and the headers that keep it from running. */
export function untrustedFile(path: string): { readonly type: string; readonly headers: HeaderList } {
  const shown = SHOWN.get(extname(path).toLowerCase());
  const policy = /^(?:audio|video)\//.test(shown ?? '') ? MEDIA_POLICY : POLICY;
  const headers = ['Content-Security-Policy', policy, 'Cross-Origin-Resource-Policy', 'same-origin'];
  if (shown === undefined)
    headers.push('Content-Disposition', attachment(segmentOf(path.replaceAll('\\', '/'))));
  return { type: shown ?? DOWNLOAD, headers };
}

/** Control characters, and bidirectional ones, which show `gnp.exe` as `exe.png`. */
const UNSAFE = /[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/gu;

/** A download under a name: in ASCII, and as UTF-8 for all current browsers (RFC 6266 §4.3, RFC 8187 §3.2). */
function attachment(name: string): string {
  const safe = name.replace(UNSAFE, '');
  const ascii = safe.replace(/[^\x20-\x7e]|["\\%]/g, '_');
  const encoded = encodeURIComponent(safe).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16)}`,
  );
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`;
}

/**
 * Removes what other code has set against the option: a type, another policy, and a Content-Disposition that shows what is
 * a download. A name for a download stays.
 */
export function removeUnsafeHeaders(res: ServerResponse, headers: HeaderList | undefined): void {
  for (const name of ['Content-Type', 'Content-Security-Policy', 'X-Content-Type-Options'])
    res.removeHeader(name);
  const isDownload = headers?.includes('Content-Disposition');
  const isSet = /^\s*attachment\s*(?:;|$)/i.test(String(res.getHeader('Content-Disposition') ?? ''));
  if (isDownload && !isSet) res.removeHeader('Content-Disposition');
}

const FOR_PAGES = 'html index extensions cleanUrls notFound fallback pages listing variants rules'.split(' ');

/** Refuses options that would send files of users as pages. */
export function assertNoPages(options: Readonly<Record<string, unknown>>): void {
  const isOn = (value: unknown): boolean => value !== undefined && value !== false && String(value) !== '';
  const used = FOR_PAGES.find((name) => isOn(options[name]));
  if (used === undefined) return;
  throw optionError(
    STATIC_OPTIONS,
    `option "${used}" is for pages of your own, but with "untrusted" no file is a page; remove one of them`,
  );
}
