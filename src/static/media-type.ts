import { extname } from 'node:path';
import { contentType } from 'mime-types';

/** The `Content-Type` of a file name; what is not known is bytes, never guessed from the content. */
export function mediaTypeOf(path: string): string {
  return contentType(extname(path)) || 'application/octet-stream';
}
