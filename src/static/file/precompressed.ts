import type { Precompressed } from '../../../types/static.ts';
import type { StaticSettings } from '../options.ts';
import {
  type Dependency,
  dependencyOf,
  type ResolvedFile,
  resolveInsideRoot,
  statOrUndefined,
} from './resolve-file.ts';
import { type Snapshot, takeSnapshot } from './snapshot.ts';

const EXTENSIONS: Readonly<Record<Precompressed, string>> = { br: '.br', zstd: '.zst', gzip: '.gz' };

/** A compressed copy of a file in the same directory. */
export interface PrecompressedFile {
  readonly coding: Precompressed;
  readonly path: string;
  readonly realPath: string;
  readonly snapshot: Snapshot;
}

/** Finds the compressed copies of a file in the order of the option, and all paths whose stat decided it. */
export async function findPrecompressed(
  root: string,
  source: ResolvedFile,
  sourceSnapshot: Snapshot,
  settings: StaticSettings,
): Promise<{ files: PrecompressedFile[]; dependencies: Dependency[] }> {
  const files: PrecompressedFile[] = [];
  const dependencies: Dependency[] = [];
  for (const coding of settings.precompressed) {
    const path = source.path + EXTENSIONS[coding];
    const stats = await statOrUndefined(path);
    dependencies.push(dependencyOf(path, stats));
    // A copy that is older than its source was made from another version.
    if (stats === undefined || !stats.isFile() || stats.mtimeNs < sourceSnapshot.version.mtimeNs) continue;
    const realPath = await resolveInsideRoot(root, path, settings);
    if (typeof realPath !== 'string') continue;
    const snapshot = await takeSnapshot(realPath, settings);
    if (snapshot === undefined || snapshot === 'not-a-file') continue;
    files.push({ coding, path, realPath, snapshot });
  }
  return { files, dependencies };
}
