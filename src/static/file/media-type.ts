import { extname } from 'node:path';
import { MEDIA_TYPE_TABLE } from './media-type-table.ts';

const UNKNOWN = 'application/octet-stream';
/**
 * Types by extension, as far as files had them. Thousands of files share one string, which stays in the CPU
 * caches.
 */
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
