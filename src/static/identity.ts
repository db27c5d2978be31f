import type { BigIntStats } from 'node:fs';

/** What tells one version of a file from another: a write or a replacement changes at least one of these. */
export type Identity = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs' | 'ctimeNs'>;

/** Whether two looks saw the same version. ctime cannot be set back, so a restored mtime does not deceive. */
export function sameVersion(a: Identity, b: Identity): boolean {
  return (
    a.ctimeNs === b.ctimeNs &&
    a.mtimeNs === b.mtimeNs &&
    a.size === b.size &&
    a.ino === b.ino &&
    a.dev === b.dev
  );
}

const SECOND = 1_000_000_000n;

/**
 * Whether the version is so young that another write could still share its timestamps ("racily clean", as git says):
 * kernels before 6.13 stamp per timer tick, some file systems per second or two.
 */
export function isYoung(identity: Identity, now: number): boolean {
  return isRecent(identity.ctimeNs, now) || isRecent(identity.mtimeNs, now);
}

function isRecent(time: bigint, now: number): boolean {
  const tick = time % SECOND === 0n ? 2000 : 20;
  return Math.abs(now - Number(time / 1_000_000n)) < tick;
}
