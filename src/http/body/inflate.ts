import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { HttpError } from '../reply/http-error.ts';

const INFLATERS: Record<string, () => Transform> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/**
 * Creates the stream that decodes a Content-Encoding; undefined for the identity coding.
 *
 * @throws HttpError 415 that lists the accepted codings (RFC 9110 §15.5.16).
 */
export function createInflater(
  encoding: string | undefined,
  { inflate }: { readonly inflate: boolean },
): Transform | undefined {
  if (encoding === undefined) return undefined;
  const name = encoding.trim().toLowerCase();
  if (name === 'identity' || name === '') return undefined;
  if (inflate && Object.hasOwn(INFLATERS, name)) return INFLATERS[name]?.();
  const accepted = inflate ? 'gzip, deflate, br, identity' : 'identity';
  throw new HttpError(415, `This Content-Encoding is not supported; accepted: ${accepted}`, {
    headers: { 'accept-encoding': accepted },
    code: 'UNSUPPORTED_ENCODING',
  });
}
