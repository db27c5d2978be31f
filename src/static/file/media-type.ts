import { extname } from 'node:path';
import { contentType } from 'mime-types';

const UNKNOWN = 'application/octet-stream';
/** By extension, those that are known: thousands of files then share one string, which stays in the processor's caches. */
const types = new Map<string, string>();

/** The `Content-Type` of a file name; what is not known is bytes, never guessed from the content. */
export function mediaTypeOf(path: string): string {
  const extension = extname(path);
  return types.get(extension) ?? find(extension);
}

function find(extension: string): string {
  const type = contentType(extension);
  if (type === false) return UNKNOWN;
  types.set(extension, type);
  return type;
}
