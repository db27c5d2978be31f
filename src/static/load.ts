import { type BigIntStats, fstat, type Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Precompressed } from '../../types/static.ts';
import { debug } from '../diagnostics/logging.ts';
import { toError } from '../http/reply.ts';
import { type CopyToCompare, compareCopy } from './copies.ts';
import { mediaTypeOf } from './media-types.ts';
import type { StaticSettings } from './options.ts';
import { mayBePage } from './path.ts';
import {
  type CodingFactory,
  etagForCoding,
  type LoadedFile,
  type LoadResult,
  type Metadata,
  Representation,
} from './representation.ts';
import {
  isNotFoundError,
  isPermissionError,
  isStaleError,
  type NotFound,
  notFound,
  openInsideRoot,
  openRealPath,
  type ReadableFile,
  type RootDirectory,
  resolveInsideRoot,
} from './root.ts';
import {
  etagOfBytes,
  etagOfFile,
  etagOfVersion,
  type FileVersion,
  fileVersionOf,
  isRacilyClean,
  lastModifiedOf,
  readAndHash,
  readBytes,
  sameContent,
} from './version.ts';

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
  const codings = codingsFor({ filePath, type, cacheControl }, snapshot, options.codingFactory, {
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

/** A path whose stat decided the result, with the version that was found; undefined: there was no file. */
export interface Dependency {
  readonly path: string;
  readonly version: FileVersion | undefined;
}

/** A regular file that a URL path leads to. It may still be outside the root. */
interface FoundFile {
  readonly kind: 'file';
  readonly path: string;
  /** The path below the root, with slashes: for `/dir/` it is `/dir/index.html`. */
  readonly filePath: string;
  readonly stats: BigIntStats;
  /**
   * Paths that were tried before and do not lead to a file. When one of them changes, the URL path may lead
   * elsewhere.
   */
  readonly dependencies: readonly Dependency[];
}

/** The result of resolving a URL path: a file, a directory, or nothing. */
type Resolution = FoundFile | { readonly kind: 'directory' } | NotFound;

/**
 * Finds the file for a URL path: the path itself, an index file for `dir/`, or the path with an extension
 * added.
 */
async function resolveFile(
  root: RootDirectory,
  urlPath: string,
  settings: StaticSettings,
): Promise<Resolution> {
  const dependencies: Dependency[] = [];
  let isDirectory = false;
  let reason = 'no such file';
  let lastError: Error | undefined;
  for (const filePath of candidatesFor(urlPath, settings)) {
    const path = root.join(filePath);
    const stats = await statOrUndefined(path, (error) => {
      lastError = error;
    });
    // Opening a FIFO blocks a pool thread until a writer opens it, and a device may never end. Neither is
    // opened.
    if (stats?.isFile()) return { kind: 'file', path, filePath, stats, dependencies };
    dependencies.push(dependencyOf(path, stats));
    if (stats === undefined) continue;
    reason = 'not a regular file';
    if (!stats.isDirectory() || filePath !== urlPath) continue;
    reason = 'a directory';
    isDirectory = true;
    // With a folder of the same name, the page is used for the folder's path unless the folder has an index
    // file.
    if (!settings.cleanUrls && (await hasIndex(root, urlPath, settings, dependencies))) break;
  }
  return isDirectory && settings.html ? { kind: 'directory' } : notFound(reason, lastError);
}

/** Whether a folder has an index file. Skips the check if no extension can lead to another file. */
async function hasIndex(
  root: RootDirectory,
  urlPath: string,
  settings: StaticSettings,
  dependencies: Dependency[],
): Promise<boolean> {
  if (settings.extensions.length === 0) return true;
  for (const name of settings.index) {
    const path = root.join(`${urlPath}/${name}`);
    const stats = await statOrUndefined(path);
    if (stats?.isFile()) return true;
    dependencies.push(dependencyOf(path, stats));
  }
  return false;
}

/** Records the result of a stat of a path. */
function dependencyOf(path: string, stats: FileVersion | undefined): Dependency {
  return { path, version: stats && fileVersionOf(stats) };
}

/** Returns the paths to try for a URL path, in order. */
export function candidatesFor(urlPath: string, settings: StaticSettings): readonly string[] {
  if (urlPath.endsWith('/')) return settings.index.map((name) => urlPath + name);
  if (settings.extensions.length === 0 || !mayBePage(urlPath)) return [urlPath];
  return [urlPath, ...settings.extensions.map((extension) => urlPath + extension)];
}

/** Stats a path and follows symbolic links; undefined when there is no file that may be served. */
export async function statOrUndefined(
  path: string,
  onNotFound?: (error: Error) => void,
): Promise<BigIntStats | undefined> {
  try {
    return await stat(path, { bigint: true });
  } catch (error) {
    if (!isNotFoundError(error)) throw error;
    onNotFound?.(toError(error));
    return undefined;
  }
}

const fstatAsync = promisify(fstat);

/** The settings for loading a file. */
export interface LoadOptions {
  /** Whether the file is requested so often that a large body is cached too. */
  readonly isPopular: boolean;
  /** Creates codings of the file. */
  readonly codingFactory?: CodingFactory | undefined;
}

/** One version of a file, read while it did not change. */
export interface Snapshot {
  readonly version: FileVersion;
  readonly body: Buffer | undefined;
  readonly etag: string | undefined;
  /** The ETag from the bytes, to identify the content for compression; undefined if they were not hashed. */
  readonly contentEtag: string | undefined;
  readonly stats: Stats | undefined;
  readonly isRacilyClean: boolean;
}

/**
 * Reads one version of an open file, with its bytes when it is small; undefined when the file changed
 * meanwhile.
 */
export async function takeSnapshot(
  file: ReadableFile,
  settings: StaticSettings,
  options: LoadOptions,
): Promise<Snapshot | 'not-a-file' | undefined> {
  const before = await file.version();
  if (before === undefined) return 'not-a-file';
  const snapshot = await readVersion(file.fd, before, settings, options);
  const after = await file.version();
  return snapshot !== undefined && after !== undefined && sameContent(before, after) ? snapshot : undefined;
}

async function readVersion(
  fd: number,
  version: FileVersion,
  settings: StaticSettings,
  options: LoadOptions,
): Promise<Snapshot | undefined> {
  const size = Number(version.size);
  const racilyClean = isRacilyClean(version, Date.now());
  const stats = settings.setHeaders === undefined ? undefined : await fstatAsync(fd);
  const common = { version: fileVersionOf(version), stats, isRacilyClean: racilyClean };
  const isCached = size <= maxBodyBytes(settings, options);
  if (settings.etag !== 'content') {
    const etag = settings.etag === 'stat' ? etagOfVersion(version, { weak: racilyClean }) : undefined;
    if (!isCached) {
      const isHashed =
        options.codingFactory !== undefined && !racilyClean && size <= settings.maxEagerHashBytes;
      const contentEtag = isHashed ? await etagOfFile(fd, size) : undefined;
      return { ...common, body: undefined, etag, contentEtag };
    }
    const body = await readBytes(fd, size);
    const isHashed = settings.precompressed.length > 0 || options.codingFactory !== undefined;
    return body && { ...common, body, etag, contentEtag: isHashed ? await etagOfBytes(body) : undefined };
  }
  if (isCached) {
    const content = await readAndHash(fd, size);
    return content && { ...common, ...content, contentEtag: content.etag };
  }
  // Another write could leave the timestamps of a racily clean file unchanged: the response might stream
  // other bytes than the hashed bytes.
  if (size > settings.maxEagerHashBytes || racilyClean) {
    return { ...common, body: undefined, etag: undefined, contentEtag: undefined };
  }
  const etag = await etagOfFile(fd, size);
  return etag === undefined ? undefined : { ...common, body: undefined, etag, contentEtag: etag };
}

function maxBodyBytes({ cache, maxEagerBodyBytes }: StaticSettings, { isPopular }: LoadOptions): number {
  return Math.min(isPopular ? cache.maxFileBytes : maxEagerBodyBytes, cache.maxBytes ?? Infinity);
}

/** Extensions of compressed copies. */
export const COPY_EXTENSIONS: Readonly<Record<Precompressed, string>> = {
  br: '.br',
  zstd: '.zst',
  gzip: '.gz',
};

/** A compressed copy of a file in the same directory. */
interface PrecompressedFile {
  readonly coding: Precompressed;
  readonly path: string;
  readonly realPath: string;
  readonly snapshot: Snapshot;
}

/**
 * Finds the compressed copies of a file in the order of the option, and all paths whose stat decided the
 * result.
 */
async function findPrecompressed(
  root: RootDirectory,
  path: string,
  source: Snapshot,
  settings: StaticSettings,
  options: LoadOptions,
): Promise<{ files: PrecompressedFile[]; dependencies: Dependency[] }> {
  const files: PrecompressedFile[] = [];
  const dependencies: Dependency[] = [];
  for (const coding of settings.precompressed) {
    const copyPath = path + COPY_EXTENSIONS[coding];
    const stats = await statOrUndefined(copyPath);
    if (stats?.isFile() !== true) {
      dependencies.push(dependencyOf(copyPath, stats));
      continue;
    }
    const file = await openCopy(root, copyPath, stats, settings);
    const result =
      file === undefined
        ? 'it was moved'
        : 'kind' in file
          ? file.reason
          : await readCopy({ file, coding, source, settings, options });
    if (typeof result === 'string') {
      debug.static('the compressed copy %s is ignored: %s', copyPath, result);
      dependencies.push(dependencyOf(copyPath, stats));
    } else {
      dependencies.push({ path: copyPath, version: result.snapshot.version });
      files.push({ coding, path: copyPath, ...result });
    }
  }
  return { files, dependencies };
}

/** Opens a compressed copy. The file itself is sent when the process may not read its copy. */
async function openCopy(
  ...copy: Parameters<typeof openInsideRoot>
): Promise<ReadableFile | NotFound | undefined> {
  try {
    return await openInsideRoot(...copy);
  } catch (error) {
    if (isPermissionError(error)) return notFound('no permission to read it');
    throw error;
  }
}

/** Reads a compressed copy; returns the reason if it cannot be used. */
async function readCopy({
  file,
  coding,
  source,
  settings,
  options,
}: Omit<CopyToCompare, 'copy'> & {
  settings: StaticSettings;
  options: LoadOptions;
}): Promise<{ realPath: string; snapshot: Snapshot } | string> {
  try {
    const snapshot = await takeSnapshot(file, settings, options);
    if (snapshot === undefined) return 'it changed while it was read';
    if (snapshot === 'not-a-file') return 'it is not a regular file';
    const mismatch = await compareCopy({ file, copy: snapshot, coding, source });
    return mismatch ?? { realPath: file.realPath, snapshot };
  } finally {
    file.close();
  }
}

/** The codings of one file that are created while it is served, and the headers that they need. */
interface FileCodings {
  /** The value of `Vary`; undefined for a file with one representation. */
  readonly vary: string | undefined;
  readonly useAsDictionary: string | undefined;
  /** @param identity - the representation of the file itself */
  create(realPath: string, identity: Representation): Pick<LoadedFile, 'createdCodings' | 'deltas'>;
}

interface FileToEncode {
  /** The path below the root, with slashes. */
  readonly filePath: string;
  readonly type: string;
  readonly cacheControl: string | undefined;
}

/** Decides which codings of a file are created. Files with compressed copies get no others but deltas. */
function codingsFor(
  { filePath, type, cacheControl }: FileToEncode,
  { version, contentEtag }: Pick<Snapshot, 'version' | 'contentEtag'>,
  factory: CodingFactory | undefined,
  { hasCopies }: { readonly hasCopies: boolean },
): FileCodings {
  const size = Number(version.size);
  const accepts = contentEtag !== undefined && factory?.accepts(type, size) === true;
  if (!accepts) return { vary: hasCopies ? ENCODING : undefined, useAsDictionary: undefined, create: none };
  const { deltas } = factory;
  const useAsDictionary = deltas?.headerFor(filePath, cacheControl);
  return {
    vary: useAsDictionary === undefined ? ENCODING : `${ENCODING}, Available-Dictionary`,
    useAsDictionary,
    create: (realPath, identity) => {
      const content = { size, etag: contentEtag, read: () => readContent(realPath, size, contentEtag) };
      return {
        createdCodings: hasCopies ? undefined : factory.create(content, identity),
        deltas: useAsDictionary === undefined ? undefined : deltas?.create(filePath, content, identity),
      };
    },
  };
}

const ENCODING = 'Accept-Encoding';
const none: FileCodings['create'] = () => ({ createdCodings: undefined, deltas: undefined });

/** Reads a file again; undefined if its content has changed. */
async function readContent(realPath: string, size: number, etag: string): Promise<Buffer | undefined> {
  const file = await openRealPath(realPath);
  if (file === undefined) return undefined;
  try {
    const content = await readAndHash(file.fd, size);
    return content?.etag === etag ? content.body : undefined;
  } finally {
    file.close();
  }
}
