import { stat, statSync } from 'node:fs';
import { isNotFoundError, isStaleError } from '../disk/file-errors.ts';
import { type FileVersion, sameVersion } from '../disk/file-version.ts';
import type { Mounts } from '../disk/mounts.ts';
import type { LoadedFile, LoadResult } from '../file/loaded-file.ts';
import type { Dependency } from '../file/resolve-file.ts';
import type { LoadOptions } from '../file/snapshot.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';
import type { CacheEntry } from './entry.ts';
import type { FileCache } from './file-cache.ts';

/** Dependencies of the check of a cache entry. */
export interface CheckContext {
  readonly cache: FileCache;
  readonly load: (urlPath: string, options: LoadOptions) => Promise<LoadResult>;
  /** Whether the symbolic links on the path still lead to the same place inside the root. */
  readonly stillResolves: (file: LoadedFile) => Promise<boolean>;
  /** The device whose files may be checked on the event loop; undefined if there is none. */
  readonly localDevice: bigint | undefined;
  readonly breaker: CircuitBreaker;
  readonly mounts: Mounts;
  /** Milliseconds for which the result of a check is valid. */
  readonly revalidateAfter: number;
  /** Called for each file that is added to the cache. */
  readonly onCached: (entry: CacheEntry, file: LoadedFile) => void;
}

/** Called once, with an error or with a result. */
type CheckCallback = (error: unknown, result: LoadResult | undefined) => void;

// Milliseconds after which the symbolic links on the path of a cached file are resolved again.
const PATH_VERIFIED_FOR = 60_000;

const SYNC_STAT = { bigint: true, throwIfNoEntry: false } as const;

/** Checks a cache entry on the event loop. Returns false if the thread pool has to check it. */
export function isUnchangedSync(context: CheckContext, entry: CacheEntry, now: number): boolean {
  const { file } = entry;
  if (file === undefined || now >= entry.pathVerifiedUntil || !areUnchangedSync(file.dependencies))
    return false;
  entry.freshUntil = freshUntil(file, context.revalidateAfter);
  return true;
}

/**
 * Stats the dependencies of a file on the event loop. Returns true if none has changed, and false if the thread
 * pool has to check them.
 */
export function areUnchangedSync(dependencies: readonly Dependency[]): boolean {
  try {
    for (const { path, version } of dependencies) {
      const stats = statSync(path, SYNC_STAT);
      if (stats === undefined || version === undefined) {
        if (stats !== version) return false;
      } else if (!sameVersion(version, stats)) return false;
    }
    return true;
  } catch {
    // The check in the thread pool handles the error.
    return false;
  }
}

/**
 * Whether the event loop may check a file. When the kernel has the inode in memory, a synchronous stat takes
 * less of the event loop's time than handing it to the thread pool and receiving the result.
 *
 * @param localDevice - the device whose files may be checked this way; undefined if there is none
 */
export function canCheckSync(dependencies: readonly Dependency[], localDevice: bigint | undefined): boolean {
  if (localDevice === undefined) return false;
  return dependencies.every(({ version }) => version === undefined || version.dev === localDevice);
}

/** Checks a cache entry in the thread pool, and loads the file when it is not cached or has changed. */
export function revalidate(context: CheckContext, entry: CacheEntry, done: CheckCallback): void {
  const { file } = entry;
  if (file === undefined || file.isRacilyClean) {
    reload(context, entry, done);
    return;
  }
  const mountGeneration = context.mounts.generation;
  const keep = (): void => {
    entry.mountGeneration = mountGeneration;
    entry.freshUntil = freshUntil(file, context.revalidateAfter);
    done(undefined, file);
  };
  areUnchanged(file.dependencies, (error, unchanged) => {
    if (error !== undefined) done(error, undefined);
    else if (!unchanged) reload(context, entry, done);
    else if (performance.now() < entry.pathVerifiedUntil) keep();
    else
      verifyPath(context, entry, file, (isVerified) => (isVerified ? keep() : reload(context, entry, done)));
  });
}

function verifyPath(
  context: CheckContext,
  entry: CacheEntry,
  file: LoadedFile,
  done: (isVerified: boolean) => void,
): void {
  const until = performance.now() + PATH_VERIFIED_FOR;
  context.stillResolves(file).then(
    (isVerified) => {
      entry.pathVerifiedUntil = isVerified ? until : 0;
      done(isVerified);
    },
    // The error is reported when the file is loaded again.
    () => done(false),
  );
}

function reload(context: CheckContext, entry: CacheEntry, done: CheckCallback): void {
  context.cache.invalidate(entry);
  const until = performance.now() + PATH_VERIFIED_FOR;
  const mountGeneration = context.mounts.generation;
  context.load(entry.urlPath, { isPopular: entry.isPopular }).then(
    (result) => {
      if (result.kind === 'file') {
        context.cache.set(entry, result);
        context.onCached(entry, result);
        entry.isCheckedSync = !result.isRacilyClean && canCheckSync(result.dependencies, context.localDevice);
        entry.mountGeneration = mountGeneration;
        entry.pathVerifiedUntil = until;
        entry.freshUntil = freshUntil(result, context.revalidateAfter);
      }
      done(undefined, result);
    },
    (error: unknown) => done(error, undefined),
  );
}

/**
 * Returns the new `freshUntil`. A file that changed within `revalidateAfter` is likely to change again and is
 * always checked.
 */
function freshUntil(file: LoadedFile, revalidateAfter: number): number {
  if (revalidateAfter === 0 || file.isRacilyClean || Date.now() - file.changedAt <= revalidateAfter) return 0;
  return performance.now() + revalidateAfter;
}

/**
 * Stats the dependencies of a file in the thread pool, one after the other: a check whose file system hangs
 * blocks one thread.
 */
function areUnchanged(
  dependencies: readonly Dependency[],
  done: (error: unknown, unchanged: boolean) => void,
  index = 0,
): void {
  const dependency = dependencies[index];
  if (dependency === undefined) {
    done(undefined, true);
    return;
  }
  const { path, version } = dependency;
  stat(path, { bigint: true }, (error, stats) => {
    if (error !== null && !isNotFoundError(error) && !isStaleError(error)) done(error, false);
    else if (error === null ? isVersion(version, stats) : version === undefined && !isStaleError(error))
      areUnchanged(dependencies, done, index + 1);
    else done(undefined, false);
  });
}

const isVersion = (version: FileVersion | undefined, stats: FileVersion): boolean =>
  version !== undefined && sameVersion(version, stats);
