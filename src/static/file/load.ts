import { isNotFoundError, isPermissionError, isStaleError } from '../disk/file-errors.ts';
import { isRacilyClean, lastModifiedOf } from '../disk/file-version.ts';
import { notFound, openInsideRoot, type ReadableFile, resolveInsideRoot } from '../disk/open-inside-root.ts';
import type { RootDirectory } from '../disk/root-directory.ts';
import type { StaticSettings } from '../options.ts';
import { codingsFor } from './created-codings.ts';
import type { LoadedFile, LoadResult } from './loaded-file.ts';
import { mediaTypeOf } from './media-type.ts';
import { findPrecompressed } from './precompressed.ts';
import { etagForCoding, type Metadata, Representation } from './representation.ts';
import { type FoundFile, resolveFile } from './resolve-file.ts';
import { type LoadOptions, type Snapshot, takeSnapshot } from './snapshot.ts';

const MAX_ATTEMPTS = 16;
// Shared by all files without compressed copies.
const NONE: readonly Representation[] = [];

/** Resolves, opens, reads and hashes the file for a URL path. Repeats this if the file changes meanwhile. */
export async function loadFile(
  root: RootDirectory,
  urlPath: string,
  settings: StaticSettings,
  options: LoadOptions,
): Promise<LoadResult> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    try {
      // A file that is written all the time would never be read as a whole: then large bodies are streamed.
      const current = attempt === 0 ? options : { ...options, isPopular: false };
      const result = await loadOnce(root, urlPath, settings, current);
      if (result !== undefined) return result;
    } catch (error) {
      // The file was deleted or replaced between two steps; the next attempt resolves the path again.
      if (!isNotFoundError(error) && !isStaleError(error)) throw error;
      if (isPermissionError(error)) return notFound('no permission to read the file');
    }
  }
  return { kind: 'busy' };
}

/**
 * Whether the paths of a loaded file still lead to the same real paths. A stat of the files cannot show that
 * one of their directories was moved and replaced by a link to its new place.
 */
export async function stillResolves(
  root: RootDirectory,
  file: LoadedFile,
  settings: StaticSettings,
): Promise<boolean> {
  for (const { path, realPath } of [file.uncompressed, ...file.precompressed]) {
    if ((await resolveInsideRoot(root, path, settings)) !== realPath) return false;
  }
  return true;
}

async function loadOnce(
  root: RootDirectory,
  urlPath: string,
  settings: StaticSettings,
  options: LoadOptions,
): Promise<LoadResult | undefined> {
  const found = await resolveFile(root, urlPath, settings);
  if (found.kind !== 'file') return found;
  const file = await openInsideRoot(root, found.path, found.stats, settings);
  if (file === undefined || 'kind' in file) return file;
  try {
    const snapshot = await takeSnapshot(file, settings, options);
    if (snapshot === 'not-a-file') return notFound('not a regular file');
    return snapshot && (await assemble({ root, found, file, snapshot, settings, options }));
  } finally {
    file.close();
  }
}

interface Parts {
  readonly root: RootDirectory;
  readonly found: FoundFile;
  readonly file: ReadableFile;
  readonly snapshot: Snapshot;
  readonly settings: StaticSettings;
  readonly options: LoadOptions;
}

async function assemble({ root, found, file, snapshot, settings, options }: Parts): Promise<LoadedFile> {
  const { path, filePath } = found;
  const { realPath } = file;
  const type = mediaTypeOf(path);
  const copies = await findPrecompressed(root, path, snapshot, settings, options);
  const cacheControl = settings.cacheControl(filePath);
  const codings = codingsFor({ root, filePath, type, cacheControl }, snapshot, options.codingFactory, {
    hasCopies: copies.files.length > 0,
  });
  const common = {
    type,
    cacheControl,
    vary: codings.vary,
    acceptRanges: settings.acceptRanges,
    useAsDictionary: codings.useAsDictionary,
  };
  const snapshots = [snapshot, ...copies.files.map((copy) => copy.snapshot)];
  // Depends on the version that was read, not on that of the first stat: the file may have been replaced in
  // between.
  const uncompressed = representationOf(
    { path, realPath },
    snapshot,
    { ...common, coding: undefined },
    settings,
  );
  const now = Date.now();
  return {
    kind: 'file',
    dependencies: [...found.dependencies, uncompressed, ...copies.dependencies],
    uncompressed,
    ...codings.create(realPath, uncompressed),
    precompressed:
      copies.files.length === 0
        ? NONE
        : copies.files.map((copy) =>
            representationOf(copy, copy.snapshot, { ...common, coding: copy.coding }, settings),
          ),
    stats: snapshot.stats,
    canStream: true,
    isRacilyClean:
      snapshots.some((read) => read.isRacilyClean) ||
      copies.dependencies.some(({ version }) => version !== undefined && isRacilyClean(version, now)),
    changedAt: Math.max(...snapshots.map(({ version }) => Number(version.ctimeNs / 1_000_000n))),
  };
}

function representationOf(
  { path, realPath }: Pick<Representation, 'path' | 'realPath'>,
  { version, body, etag }: Snapshot,
  metadata: Omit<Metadata, 'size'>,
  settings: StaticSettings,
): Representation {
  const { coding, type, cacheControl, vary, acceptRanges, useAsDictionary } = metadata;
  const modified = settings.lastModified ? lastModifiedOf(version) : undefined;
  return new Representation(
    { coding, type, size: Number(version.size), cacheControl, vary, acceptRanges, useAsDictionary },
    { path, realPath, version, body },
    {
      tag: etag && etagForCoding(etag, coding),
      modified,
      ambiguousUntil: modified !== undefined && settings.etag === 'content' ? modified + 1000 : 0,
    },
  );
}
