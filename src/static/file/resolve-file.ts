import type { BigIntStats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { toError } from '../../http/reply/http-error.ts';
import { isNotFoundError } from '../disk/file-errors.ts';
import { type FileVersion, fileVersionOf } from '../disk/file-version.ts';
import { type NotFound, notFound } from '../disk/open-inside-root.ts';
import type { RootDirectory } from '../disk/root-directory.ts';
import type { StaticSettings } from '../options.ts';
import { mayBePage } from '../request/navigation.ts';

/** A path whose stat decided the result, with the version that was found; undefined: there was no file. */
export interface Dependency {
  readonly path: string;
  readonly version: FileVersion | undefined;
}

/** A regular file that a URL path leads to. It may still be outside the root. */
export interface FoundFile {
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
export async function resolveFile(
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
export function dependencyOf(path: string, stats: FileVersion | undefined): Dependency {
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
