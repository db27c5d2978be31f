import { extname } from 'node:path';
import { contentType } from 'mime-types';

const UNKNOWN = 'application/octet-stream';
/** Known types by extension. Thousands of files then share one string, which stays in the CPU's caches. */
const types = new Map<string, string>();

/** The `Content-Type` for a file name. Unknown extensions are bytes; the content is never sniffed. */
export function mediaTypeOf(path: string): string {
  const extension = extname(path);
  return types.get(extension) ?? findType(extension);
}

function findType(extension: string): string {
  const type = contentType(extension);
  if (type === false) return UNKNOWN;
  types.set(extension, type);
  return type;
}
