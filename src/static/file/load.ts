import type { StaticSettings } from '../options.ts';
import { isNotFoundError, isPermissionError } from './file-errors.ts';
import { lastModifiedOf } from './file-version.ts';
import type { LoadedFile, LoadResult } from './loaded-file.ts';
import { mediaTypeOf } from './media-type.ts';
import { findPrecompressed } from './precompressed.ts';
import { createRepresentation, etagForCoding, type Metadata, type Representation } from './representation.ts';
import { type ResolvedFile, resolveFile, resolveInsideRoot } from './resolve-file.ts';
import { type Snapshot, takeSnapshot } from './snapshot.ts';

const MAX_ATTEMPTS = 16;

/** Resolves, opens, reads and hashes the file for a URL path, and repeats that while the file changes meanwhile. */
export async function loadFile(root: string, urlPath: string, settings: StaticSettings): Promise<LoadResult> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    try {
      const result = await loadOnce(root, urlPath, settings);
      if (result !== undefined) return result;
    } catch (error) {
      // The file was deleted between two steps: the next attempt finds what is there now.
      if (!isNotFoundError(error)) throw error;
      if (isPermissionError(error)) return { kind: 'not-found', reason: 'no permission to read the file' };
    }
  }
  return { kind: 'busy' };
}

/**
 * Whether the paths of a loaded file still lead to the same real paths. A stat of the files cannot show that one of their
 * directories was moved and replaced by a link to its new place.
 */
export async function stillResolves(
  root: string,
  file: LoadedFile,
  settings: StaticSettings,
): Promise<boolean> {
  for (const { path, realPath } of [file.uncompressed, ...file.precompressed]) {
    if ((await resolveInsideRoot(root, path, settings)) !== realPath) return false;
  }
  return true;
}

async function loadOnce(
  root: string,
  urlPath: string,
  settings: StaticSettings,
): Promise<LoadResult | undefined> {
  const resolved = await resolveFile(root, urlPath, settings);
  if (resolved.kind !== 'file') return resolved;
  const snapshot = await takeSnapshot(resolved.realPath, settings);
  if (snapshot === 'not-a-file') return { kind: 'not-found', reason: 'not a regular file' };
  return snapshot && assemble(root, resolved, snapshot, settings);
}

async function assemble(
  root: string,
  resolved: ResolvedFile,
  snapshot: Snapshot,
  settings: StaticSettings,
): Promise<LoadedFile> {
  const siblings = await findPrecompressed(root, resolved, snapshot, settings);
  const common = {
    type: mediaTypeOf(resolved.path),
    cacheControl: settings.cacheControl(resolved.filePath),
    vary: siblings.files.length > 0 ? 'Accept-Encoding' : undefined,
    acceptRanges: settings.acceptRanges,
  };
  const snapshots = [snapshot, ...siblings.files.map((sibling) => sibling.snapshot)];
  return {
    kind: 'file',
    dependencies: [...resolved.dependencies, ...siblings.dependencies],
    uncompressed: representationOf(resolved, snapshot, { ...common, coding: undefined }, settings),
    precompressed: siblings.files.map((sibling) =>
      representationOf(sibling, sibling.snapshot, { ...common, coding: sibling.coding }, settings),
    ),
    stats: snapshot.stats,
    bodyBytes: snapshots.reduce((sum, { body }) => sum + (body?.length ?? 0), 0),
    isRacilyClean: snapshots.some((read) => read.isRacilyClean),
    changedAt: Math.max(...snapshots.map(({ version }) => Number(version.ctimeNs / 1_000_000n))),
  };
}

function representationOf(
  { path, realPath }: Pick<Representation, 'path' | 'realPath'>,
  { version, body, etag }: Snapshot,
  metadata: Omit<Metadata, 'size'>,
  settings: StaticSettings,
): Representation {
  const { coding, type, cacheControl, vary, acceptRanges } = metadata;
  return createRepresentation(
    { coding, type, size: Number(version.size), cacheControl, vary, acceptRanges },
    { path, realPath, version, body },
    {
      tag: etag && etagForCoding(etag, coding),
      modified: settings.lastModified ? lastModifiedOf(version) : undefined,
    },
  );
}
