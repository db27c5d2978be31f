import type { Settings } from '../options.ts';
import { meansAbsent, meansForbidden } from './file-errors.ts';
import type { Entry } from './loaded-file.ts';
import { mediaTypeOf } from './media-type.ts';
import { findCoded } from './precompressed.ts';
import { codedTag, type Representation, represent } from './representation.ts';
import { contain, type LocatedFile, locate, type Missing } from './resolve-file.ts';
import { type Snapshot, takeSnapshot } from './snapshot.ts';

/** What a path below the mount turned out to be. */
export type Found = Entry | { readonly kind: 'directory' } | Missing | Busy;

/** The file kept changing while it was read. */
export interface Busy {
  readonly kind: 'busy';
}

const ATTEMPTS = 16;

/** Resolves, opens, reads and tags what `key` leads to, from one descriptor, until nothing changed meanwhile. */
export async function load(root: string, key: string, settings: Settings): Promise<Found> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    try {
      const found = await loadOnce(root, key, settings);
      if (found !== undefined) return found;
    } catch (error) {
      // Taken away between two steps: looked at again. What may not be read is not there.
      if (!meansAbsent(error)) throw error;
      if (meansForbidden(error)) return { kind: 'missing', why: 'not readable' };
    }
  }
  return { kind: 'busy' };
}

/**
 * Whether the names of an entry still lead to where they led. A directory that is moved, and a link put in its place,
 * show in no look at the files in it.
 */
export async function isInPlace(root: string, entry: Entry, settings: Settings): Promise<boolean> {
  for (const { path, realPath } of [entry.plain, ...entry.coded]) {
    const located = await contain(root, path, settings.follow, []);
    if (located.kind === 'missing' || located.realPath !== realPath) return false;
  }
  return true;
}

async function loadOnce(root: string, key: string, settings: Settings): Promise<Found | undefined> {
  const located = await locate(root, key, settings);
  if (located.kind !== 'file') return located;
  const snapshot = await takeSnapshot(located.realPath, settings);
  if (snapshot === 'not-a-file') return { kind: 'missing', why: 'not a regular file' };
  return snapshot && assemble(root, key, located, snapshot, settings);
}

async function assemble(
  root: string,
  key: string,
  located: LocatedFile,
  snapshot: Snapshot,
  settings: Settings,
): Promise<Entry> {
  const siblings = await findCoded(root, located, snapshot.identity, settings);
  const vary = siblings.coded.length > 0 ? 'Accept-Encoding' : undefined;
  const describeAs = (
    { path, realPath }: Pick<Representation, 'path' | 'realPath'>,
    read: Snapshot,
    coding: string | undefined,
  ): Representation =>
    represent(
      {
        coding,
        type: mediaTypeOf(located.path),
        size: Number(read.identity.size),
        cacheControl: settings.cacheControl(key),
        vary,
        acceptRanges: settings.acceptRanges,
      },
      { path, realPath, identity: read.identity, body: read.body },
      {
        tag: read.tag && codedTag(read.tag, coding),
        modified: settings.lastModified ? Number(read.identity.mtimeNs / 1_000_000_000n) * 1000 : undefined,
      },
    );
  const plain = describeAs(located, snapshot, undefined);
  const coded = siblings.coded.map((sibling) => describeAs(sibling, sibling.snapshot, sibling.coding));
  const all = [snapshot, ...siblings.coded.map((sibling) => sibling.snapshot)];
  return {
    kind: 'entry',
    dependencies: [...located.dependencies, ...siblings.dependencies],
    plain,
    coded,
    stat: snapshot.stat,
    bytes: all.reduce((sum, { body }) => sum + (body?.length ?? 0), 0),
    young: all.some((read) => read.young),
    changedAt: Math.max(...all.map(({ identity }) => Number(identity.ctimeNs / 1_000_000n))),
  };
}
