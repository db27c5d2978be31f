import { extname } from 'node:path';
import { MEDIA_TYPE_TABLE } from './media-type-table.ts';

const UNKNOWN = 'application/octet-stream';
/** Media types by extension, filled at first use. Thousands of files share one string, which stays in the CPU caches. */
const types = new Map<string, string>();

/** Returns the `Content-Type` for a file name. Unknown extensions are binary; content is never sniffed. */
export function mediaTypeOf(path: string): string {
  const extension = extname(path);
  return types.get(extension) ?? findType(extension);
}

/**
 * Searches the text of the table, which takes microseconds once per extension. A parsed table would take a
 * megabyte.
 */
function findType(extension: string): string {
  const name = extension.slice(1).toLowerCase();
  const at = /^[\w-]+$/.test(name) ? MEDIA_TYPE_TABLE.indexOf(` ${name} `) : -1;
  if (at < 0) return UNKNOWN;
  const start = MEDIA_TYPE_TABLE.lastIndexOf('|', at) + 1;
  const end = MEDIA_TYPE_TABLE.indexOf(': ', start);
  // A copy: a slice of the long string would cost each response a few steps more.
  const type = Buffer.from(MEDIA_TYPE_TABLE.slice(start, end), 'latin1').toString('latin1');
  types.set(extension, type);
  return type;
}

// Text, and binary formats whose content is not compressed. Streams of events are excluded, which clients
// read while they arrive, and woff2, images, audio, video and archives, which are compressed already.
const COMPRESSIBLE = new RegExp(
  [
    '^text/(?!event-stream)',
    '^application/(?:.*\\+)?(?:json|xml)$',
    '^application/(?:javascript|ecmascript|x-javascript|manifest|wasm|rtf|sql|toml|yaml|x-sh|x-ndjson|geo|ld|dash)\\b',
    '^application/(?:postscript|vnd\\.ms-fontobject|vnd\\.apple\\.mpegurl|x-font-ttf|x-httpd-php|x-tar|x-web-app)\\b',
    '^font/(?:ttf|otf|collection)$',
    '^image/(?:svg\\+xml|bmp|x-ms-bmp|x-icon|vnd\\.microsoft\\.icon)$',
    '^model/(?:gltf\\+json|obj|mtl|stl|vrml)$',
  ].join('|'),
  'i',
);

/** Whether files of a media type become smaller by compression. */
export function isCompressibleType(contentType: string): boolean {
  return COMPRESSIBLE.test(contentType.split(';', 1)[0] as string);
}
