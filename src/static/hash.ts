import { createHash, type Hash } from 'node:crypto';
import { read } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { packages } from '../diagnostics/packages.ts';

// Hashing a slice blocks the event loop for about 0.2 ms.
const SLICE = 256 * 1024;

/** Reads exactly `size` bytes from the start of the file; undefined when the file has become shorter. */
export async function readBytes(fd: number, size: number): Promise<Buffer | undefined> {
  // Does not use Node's shared pool: a small cached body would keep a whole pool slab in memory.
  const body = Buffer.allocUnsafeSlow(size);
  let filled = 0;
  while (filled < size) {
    const bytesRead = await readAsync(fd, body, filled, size - filled, filled);
    if (bytesRead === 0) return undefined;
    filled += bytesRead;
  }
  return body;
}

/** Returns the strong ETag of bytes in memory. */
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

/**
 * Computes the ETag that `etagOfBytes` would return, slice by slice. Undefined when the file has become
 * shorter, or when `isWanted` returns false.
 */
export async function etagOfFile(
  fd: number,
  size: number,
  isWanted: () => boolean = () => true,
): Promise<string | undefined> {
  const hash = createHash('sha1');
  const slice = Buffer.allocUnsafeSlow(SLICE);
  for (let position = 0; position < size; ) {
    if (!isWanted()) return undefined;
    const bytesRead = await readAsync(fd, slice, 0, Math.min(SLICE, size - position), position);
    if (bytesRead === 0) return undefined;
    hash.update(slice.subarray(0, bytesRead));
    position += bytesRead;
  }
  return etagFromDigest(size, hash);
}

/** Formats the ETag of `size` bytes that were hashed with SHA-1. */
export function etagFromDigest(size: number, hash: Hash): string {
  return `"${size.toString(16)}-${hash.digest('base64').slice(0, 27)}"`;
}

/**
 * Reads bytes of an open file into a buffer, and resolves to their number; 0 at the end. `promisify` is not used:
 * of `fs.read` it resolves to an object, but to the number if a tracer has replaced the function.
 */
export function readAsync(
  fd: number,
  buffer: Buffer,
  offset: number,
  length: number,
  position: number,
): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, offset, length, position, (error, bytesRead) => {
      if (error) reject(error);
      else resolve(bytesRead);
    });
  });
}
