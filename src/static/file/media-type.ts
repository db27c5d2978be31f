import { extname } from 'node:path';
import { contentType } from 'mime-types';

const UNKNOWN = 'application/octet-stream';
/** Known types by extension. Thousands of files share one string, which stays in the CPU caches. */
const types = new Map<string, string>();

/** Returns the `Content-Type` for a file name. Unknown extensions are binary; content is never sniffed. */
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
