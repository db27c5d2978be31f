import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import etag from 'etag';
import type { Identity } from './file-version.ts';

const SLICE = 256 * 1024;

/** Exactly `size` bytes from the start of the file, or undefined when it has fewer by now. */
export async function readWhole(handle: FileHandle, size: number): Promise<Buffer | undefined> {
  // Not from the shared pool, which a long-lived small body would hold on to.
  const body = Buffer.allocUnsafeSlow(size);
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await handle.read(body, filled, size - filled, filled);
    if (bytesRead === 0) return undefined;
    filled += bytesRead;
  }
  return body;
}

/** The strong tag of bytes in memory. */
export function tagOf(body: Buffer): string {
  return etag(body);
}

/**
 * The tag that `tagOf` would give, computed slice by slice: the event loop is never held for longer than one slice
 * takes (about 0.2 ms), and is given back in between. Undefined when the file is shorter by now, or `wanted` says stop.
 */
export async function tagOfFile(
  handle: FileHandle,
  size: number,
  wanted: () => boolean = () => true,
): Promise<string | undefined> {
  const hash = createHash('sha1');
  const slice = Buffer.allocUnsafeSlow(Math.min(SLICE, size));
  let position = 0;
  while (position < size) {
    if (!wanted()) return undefined;
    const { bytesRead } = await handle.read(slice, 0, Math.min(slice.length, size - position), position);
    if (bytesRead === 0) return undefined;
    hash.update(slice.subarray(0, bytesRead));
    position += bytesRead;
  }
  return `"${size.toString(16)}-${hash.digest('base64').slice(0, 27)}"`;
}

/** A tag from what the file system says. Weak while another write could still share its times. */
export function tagOfVersion(version: Identity, young: boolean): string {
  const parts = [version.size, version.mtimeNs, version.ctimeNs, version.ino].map((part) =>
    part.toString(36),
  );
  return `${young ? 'W/' : ''}"${parts.join('-')}"`;
}
