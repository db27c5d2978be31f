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
 * The stream that undoes a Content-Encoding, or undefined when there is nothing to undo.
 *
 * @throws HttpError 415 that says what is accepted (RFC 9110 §15.5.16).
 */
export function createInflater(encoding: string | undefined, enabled: boolean): Transform | undefined {
  if (encoding === undefined) return undefined;
  const name = encoding.trim().toLowerCase();
  if (name === 'identity' || name === '') return undefined;
  if (enabled && Object.hasOwn(INFLATERS, name)) return INFLATERS[name]?.();
  const accepted = enabled ? 'gzip, deflate, br, identity' : 'identity';
  throw new HttpError(415, `A body with this Content-Encoding is not accepted; accepted: ${accepted}`, {
    headers: { 'accept-encoding': accepted },
    code: 'UNSUPPORTED_ENCODING',
  });
}
