import { createHash, type Hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { ByteRange } from '../../http/conditions/ranges.ts';
import { loadOnce } from '../../http/load-once.ts';
import type { FileVersion } from './file-version.ts';
import { readAsync } from './read.ts';

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

/**
 * Reads a file and computes its strong ETag. Files of more than one slice are read and hashed slice by slice.
 */
export async function readAndHash(
  fd: number,
  size: number,
): Promise<{ body: Buffer; etag: string } | undefined> {
  if (size <= SLICE) {
    const body = await readBytes(fd, size);
    return body && { body, etag: await etagOfBytes(body) };
  }
  const body = Buffer.allocUnsafeSlow(size);
  const hash = createHash('sha1');
  let filled = 0;
  while (filled < size) {
    const bytesRead = await readAsync(fd, body, filled, Math.min(SLICE, size - filled), filled);
    if (bytesRead === 0) return undefined;
    hash.update(body.subarray(filled, filled + bytesRead));
    filled += bytesRead;
  }
  return { body, etag: etagFromDigest(size, hash) };
}

// Loaded at the first use: an ES module that imports a CommonJS package statically loads Node's parser of
// such packages.
const loadEtag = loadOnce(async () => (await import('etag')).default);

/** Returns the strong ETag of bytes in memory. */
export async function etagOfBytes(body: Buffer): Promise<string> {
  if (body.length > SLICE) return etagOfSlices(body);
  const etag = await loadEtag();
  return etag(body);
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
  const hash = await hashRanges(fd, [{ start: 0, end: size - 1 }], isWanted);
  return hash && etagFromDigest(size, hash);
}

/** Hashes ranges of a file slice by slice; undefined as with `etagOfFile`. */
export async function hashRanges(
  fd: number,
  ranges: readonly ByteRange[],
  isWanted: () => boolean,
): Promise<Hash | undefined> {
  const hash = createHash('sha1');
  const slice = Buffer.allocUnsafeSlow(SLICE);
  for (const { start, end } of ranges) {
    let position = start;
    while (position <= end) {
      if (!isWanted()) return undefined;
      const bytesRead = await readAsync(fd, slice, 0, Math.min(SLICE, end - position + 1), position);
      if (bytesRead === 0) return undefined;
      hash.update(slice.subarray(0, bytesRead));
      position += bytesRead;
    }
  }
  return hash;
}

/** Formats the ETag of `size` bytes that were hashed with SHA-1. */
export function etagFromDigest(size: number, hash: Hash): string {
  return `"${size.toString(16)}-${hash.digest('base64').slice(0, 27)}"`;
}

/**
 * Creates an ETag from stat fields. Weak while another write could leave the timestamps unchanged. The fields are
 * hashed: clients need not know the inode and the times in nanoseconds.
 */
export function etagOfVersion(
  { size, mtimeNs, ctimeNs, ino }: FileVersion,
  options: { weak: boolean },
): string {
  const hash = createHash('sha1').update([size, mtimeNs, ctimeNs, ino].join());
  return `${options.weak ? 'W/' : ''}${etagFromDigest(Number(size), hash)}`;
}
