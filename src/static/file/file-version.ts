import type { BigIntStats } from 'node:fs';

/** What tells one version of a file from another: a write or a replacement changes at least one of these. */
export type Identity = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs' | 'ctimeNs'>;

/** What is worth remembering of a look: the rest would take a kilobyte more for each file. */
export function identityOf({ dev, ino, size, mtimeNs, ctimeNs }: Identity): Identity {
  return { dev, ino, size, mtimeNs, ctimeNs };
}

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

/** What an open descriptor tells of its file. */
export type OpenIdentity = Identity & Pick<BigIntStats, 'nlink'>;

/**
 * Whether two looks at one descriptor saw the same bytes. A new ctime together with a new link count is no write: the name
 * was taken away, as an atomic replacement does. The kernel may count the link first and set the ctime a moment later.
 */
export function sameBytes(then: OpenIdentity, now: OpenIdentity): boolean {
  if (then.size !== now.size || then.mtimeNs !== now.mtimeNs) return false;
  return then.ctimeNs === now.ctimeNs || then.nlink !== now.nlink || then.nlink === 0n;
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
