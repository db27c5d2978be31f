import type { Precompressed } from '../../../types/static.ts';
import type { Settings } from '../options.ts';
import type { Identity } from './file-version.ts';
import { contain, type Dependency, dependency, type LocatedFile, look } from './resolve-file.ts';
import { type Snapshot, takeSnapshot } from './snapshot.ts';

const EXTENSIONS: Readonly<Record<Precompressed, string>> = { br: '.br', zstd: '.zst', gzip: '.gz' };

/** A file that lies compressed beside its source. */
export interface Sibling {
  readonly coding: Precompressed;
  readonly path: string;
  readonly realPath: string;
  readonly snapshot: Snapshot;
}

/** The siblings of a file that may stand in for it, best coding first, and every look taken. */
export async function findCoded(
  root: string,
  source: LocatedFile,
  identity: Identity,
  settings: Settings,
): Promise<{ coded: Sibling[]; dependencies: Dependency[] }> {
  const coded: Sibling[] = [];
  const dependencies: Dependency[] = [];
  for (const coding of settings.precompressed) {
    const path = source.path + EXTENSIONS[coding];
    const found = await look(path);
    dependencies.push(dependency(path, found));
    // Older than its source: made from another version, or planted.
    if (found === undefined || !found.isFile() || found.mtimeNs < identity.mtimeNs) continue;
    const located = await contain(root, path, settings.follow, []);
    if (located.kind === 'missing') continue;
    const snapshot = await takeSnapshot(located.realPath, settings);
    if (snapshot === undefined || snapshot === 'not-a-file') continue;
    coded.push({ coding, path, realPath: located.realPath, snapshot });
  }
  return { coded, dependencies };
}
