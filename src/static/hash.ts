import { createHash, type Hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { packages } from '../diagnostics/packages.ts';

// Hashing a slice blocks the event loop for about 0.2 ms.
export const SLICE: number = 256 * 1024;

export async function etagOfBytes(body: Buffer): Promise<string> {
  return body.length > SLICE ? etagOfSlices(body) : packages.etag()(body);
}

/** Hashes a large body slice by slice, and yields to the event loop between the slices. */
async function etagOfSlices(body: Buffer): Promise<string> {
  const hash = createHash('sha1');
  for (let start = 0; start < body.length; start += SLICE) {
    hash.update(body.subarray(start, start + SLICE));
    await setImmediate();
  }
  return etagFromDigest(body.length, hash);
}

/** Formats the ETag of `size` bytes that were hashed with SHA-1. */
export function etagFromDigest(size: number, hash: Hash): string {
  return `"${size.toString(16)}-${hash.digest('base64').slice(0, 27)}"`;
}
