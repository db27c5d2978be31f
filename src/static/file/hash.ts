import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import etag from 'etag';
import type { FileVersion } from './file-version.ts';

const SLICE = 256 * 1024;

/** Reads exactly `size` bytes from the start of the file; undefined when the file has become shorter. */
export async function readBytes(handle: FileHandle, size: number): Promise<Buffer | undefined> {
  // Not from Node's shared pool: a small body that stays in the cache would keep a whole pool slab alive.
  const body = Buffer.allocUnsafeSlow(size);
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await handle.read(body, filled, size - filled, filled);
    if (bytesRead === 0) return undefined;
    filled += bytesRead;
  }
  return body;
}

/** The strong ETag of bytes in memory. */
export function etagOfBytes(body: Buffer): string {
  return etag(body);
}

/**
 * Computes the ETag that `etagOfBytes` would return, slice by slice: hashing blocks the event loop for at most one slice
 * (about 0.2 ms). Undefined when the file has become shorter, or when `isWanted` returns false.
 */
export async function etagOfFile(
  handle: FileHandle,
  size: number,
  isWanted: () => boolean = () => true,
): Promise<string | undefined> {
  const hash = createHash('sha1');
  const slice = Buffer.allocUnsafeSlow(Math.min(SLICE, size));
  let position = 0;
  while (position < size) {
    if (!isWanted()) return undefined;
    const { bytesRead } = await handle.read(slice, 0, Math.min(slice.length, size - position), position);
    if (bytesRead === 0) return undefined;
    hash.update(slice.subarray(0, bytesRead));
    position += bytesRead;
  }
  return `"${size.toString(16)}-${hash.digest('base64').slice(0, 27)}"`;
}

/** An ETag from stat fields. Weak while another write could leave the timestamps unchanged. */
export function etagOfVersion(version: FileVersion, options: { weak: boolean }): string {
  const parts = [version.size, version.mtimeNs, version.ctimeNs, version.ino].map((part) =>
    part.toString(36),
  );
  return `${options.weak ? 'W/' : ''}"${parts.join('-')}"`;
}
