import { createHash, type Hash } from 'node:crypto';
import { type BigIntStats, read } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { toLastModified } from '../http/conditions.ts';
import { LazyPackage } from '../http/lazy-package.ts';

/**
 * The stat fields that identify one version of a file: a write or a replacement changes at least one of them.
 */
export type FileVersion = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs' | 'ctimeNs'> & {
  /** The version of a file of a source, which has no inode. */
  readonly id?: string;
};

/** Copies the fields of a version; a whole `BigIntStats` would take another kilobyte per cached file. */
export function fileVersionOf({ dev, ino, size, mtimeNs, ctimeNs, id }: FileVersion): FileVersion {
  const version = { dev, ino, size, mtimeNs, ctimeNs };
  return id === undefined ? version : { ...version, id };
}

/**
 * Whether two stats show the same version. No program can set ctime back, so a restored mtime does not hide a
 * write.
 */
export function sameVersion(a: FileVersion, b: FileVersion): boolean {
  return (
    a.ctimeNs === b.ctimeNs &&
    a.mtimeNs === b.mtimeNs &&
    a.size === b.size &&
    a.ino === b.ino &&
    a.dev === b.dev
  );
}

/** The version of an open file, with its link count. */
export type OpenFileVersion = FileVersion & Pick<BigIntStats, 'nlink'>;

/**
 * Whether two `fstat` results of one descriptor show the same bytes. A new ctime together with a new link
 * count is not a write: an atomic replacement has removed the name. The kernel may update the link count
 * slightly before ctime.
 */
export function sameContent(before: OpenFileVersion, after: OpenFileVersion): boolean {
  if (before.size !== after.size || before.mtimeNs !== after.mtimeNs) return false;
  return before.ctimeNs === after.ctimeNs || before.nlink !== after.nlink || before.nlink === 0n;
}

const SECOND = 1_000_000_000n;

// Modification times, in seconds, that build tools write instead of real ones: 0 and 1 (Nix, reproducible
// archives), the start of 1980 (zip) and the time of every file in an npm package.
const PLACEHOLDER_MTIMES = new Set([0, 1, 315_532_800, 499_162_500]);

/**
 * Returns the `Last-Modified` date in milliseconds; undefined for a placeholder. With a placeholder a browser
 * would keep an old version after a deployment of different bytes with the same mtime.
 */
export function lastModifiedOf({ mtimeNs }: FileVersion): number | undefined {
  const mtime = toLastModified(Number(mtimeNs / 1_000_000n));
  return mtime === undefined || PLACEHOLDER_MTIMES.has(mtime / 1000) ? undefined : mtime;
}

/**
 * Whether a version is so recent that another write could leave its timestamps unchanged. Git calls this
 * "racily clean". Kernels before 6.13 set timestamps per timer tick, some file systems per second or two
 * seconds.
 *
 * @param now - milliseconds since the epoch
 */
export function isRacilyClean(version: FileVersion, now: number): boolean {
  return isRecent(version.ctimeNs, now) || isRecent(version.mtimeNs, now);
}

function isRecent(time: bigint, now: number): boolean {
  const granularity = time % SECOND === 0n ? 2000 : 20;
  return Math.abs(now - Number(time / 1_000_000n)) < granularity;
}

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

// Not imported statically: an ES module that imports a CommonJS package loads Node's parser of such packages.
export const etagPackage: LazyPackage<typeof import('etag')> = new LazyPackage(
  async () => (await import('etag')).default,
);

/** Returns the strong ETag of bytes in memory. */
export async function etagOfBytes(body: Buffer): Promise<string> {
  if (body.length > SLICE) return etagOfSlices(body);
  const etag = etagPackage.value ?? (await etagPackage.load());
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
