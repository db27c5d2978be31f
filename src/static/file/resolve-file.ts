import type { BigIntStats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { extname } from 'node:path';
import { isNotFoundError } from '../disk/file-errors.ts';
import { type FileVersion, fileVersionOf } from '../disk/file-version.ts';
import { type NotFound, notFound } from '../disk/open-inside-root.ts';
import type { RootDirectory } from '../disk/root-directory.ts';
import type { StaticSettings } from '../options.ts';

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
  /** Paths that were tried before and do not lead to a file. When one of them changes, the URL path may lead elsewhere. */
  readonly dependencies: readonly Dependency[];
}

/** The file, directory or nothing at a URL path. */
export type Resolution = FoundFile | { readonly kind: 'directory' } | NotFound;

/** Finds the file for a URL path: the path itself, an index file for `dir/`, or the path with an extension added. */
export async function resolveFile(
  root: RootDirectory,
  urlPath: string,
  settings: StaticSettings,
): Promise<Resolution> {
  const dependencies: Dependency[] = [];
  let reason = 'no such file';
  for (const filePath of candidatesFor(urlPath, settings)) {
    const path = root.join(filePath);
    const stats = await statOrUndefined(path);
    // Opening a FIFO blocks a pool thread until a writer opens it, and a device may never end. Neither is opened.
    if (stats?.isFile()) return { kind: 'file', path, filePath, stats, dependencies };
    dependencies.push(dependencyOf(path, stats));
    if (stats === undefined) continue;
    if (stats.isDirectory() && filePath === urlPath)
      return settings.html ? { kind: 'directory' } : notFound('a directory');
    reason = 'not a regular file';
  }
  return notFound(reason);
}

/** Records what a stat of a path returned. */
export function dependencyOf(path: string, stats: FileVersion | undefined): Dependency {
  return { path, version: stats && fileVersionOf(stats) };
}

function candidatesFor(urlPath: string, settings: StaticSettings): readonly string[] {
  if (urlPath.endsWith('/')) return settings.index.map((name) => urlPath + name);
  if (settings.extensions.length === 0 || extname(urlPath) !== '') return [urlPath];
  return [urlPath, ...settings.extensions.map((extension) => urlPath + extension)];
}

/** Stats a path and follows symbolic links; undefined when there is no file that may be served. */
export async function statOrUndefined(path: string): Promise<BigIntStats | undefined> {
  try {
    return await stat(path, { bigint: true });
  } catch (error) {
    if (isNotFoundError(error)) return undefined;
    throw error;
  }
}
