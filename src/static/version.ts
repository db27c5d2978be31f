import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { toLastModified } from '../http/conditions.ts';
import { etagFromDigest } from './hash.ts';

/** The stat fields that identify one version of a file: a write or a replacement changes at least one of them. */
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
    a.dev === b.dev &&
    a.id === b.id
  );
}

/** Whether a path has the same version as before, or has no file as before. */
export const sameOrAbsent = (before: FileVersion | undefined, now: FileVersion | undefined): boolean =>
  before === undefined || now === undefined ? before === now : sameVersion(before, now);

/** The version of an open file, with its link count. */
export type OpenFileVersion = FileVersion & Pick<BigIntStats, 'nlink'>;

/**
 * Whether two `fstat` results of one descriptor show the same bytes. A new ctime together with a new link
 * count is not a write: an atomic replacement has removed the name. The kernel may update the link count
 * slightly before ctime. A file of a source is identified by its id.
 */
export function sameContent(before: OpenFileVersion, after: OpenFileVersion): boolean {
  if (before.id !== after.id) return false;
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
export function lastModifiedOf({ mtimeNs, id }: FileVersion): number | undefined {
  // A source has no other time than its own; 0 is none.
  if (id !== undefined && mtimeNs === 0n) return undefined;
  const mtime = toLastModified(Number(mtimeNs / 1_000_000n));
  return mtime === undefined || (id === undefined && PLACEHOLDER_MTIMES.has(mtime / 1000))
    ? undefined
    : mtime;
}

/**
 * Whether a version is so recent that another write could leave its timestamps unchanged. Git calls this
 * "racily clean". Kernels before 6.13 set timestamps per timer tick, some file systems per second or two
 * seconds.
 *
 * @param now - milliseconds since the epoch
 */
export function isRacilyClean(version: FileVersion, now: number): boolean {
  // A source gives every version another id.
  if (version.id !== undefined) return false;
  return isRecent(version.ctimeNs, now) || isRecent(version.mtimeNs, now);
}

function isRecent(time: bigint, now: number): boolean {
  const granularity = time % SECOND === 0n ? 2000 : 20;
  return Math.abs(now - Number(time / 1_000_000n)) < granularity;
}

/** A text that differs between two versions. */
export const versionId = ({ size, mtimeNs, ctimeNs, ino, id }: FileVersion): string =>
  id ?? [size, mtimeNs, ctimeNs, ino].join();

/**
 * Creates an ETag from stat fields. Weak while another write could leave the timestamps unchanged. The fields are
 * hashed: clients need not know the inode and the times in nanoseconds.
 */
export function etagOfVersion(version: FileVersion, options: { weak: boolean }): string {
  const hash = createHash('sha1').update(versionId(version));
  return `${options.weak ? 'W/' : ''}${etagFromDigest(Number(version.size), hash)}`;
}
