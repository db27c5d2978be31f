import type { BigIntStats } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { extname, sep } from 'node:path';
import type { StaticSettings } from '../options.ts';
import { isNotFoundError } from './file-errors.ts';
import { type FileVersion, fileVersionOf } from './file-version.ts';

/** A path whose stat decided the result, with the version that was found; undefined: there was no file. */
export interface Dependency {
  readonly path: string;
  readonly version: FileVersion | undefined;
}

/** A regular file that a URL path leads to. */
export interface ResolvedFile {
  readonly kind: 'file';
  readonly path: string;
  /** The path below the root, with slashes: for `/dir/` it is `/dir/index.html`. */
  readonly filePath: string;
  /** The path without symbolic links. */
  readonly realPath: string;
  /** All paths whose stat led to this file. When one of them changes, the URL path may lead elsewhere. */
  readonly dependencies: readonly Dependency[];
}

/** The URL path leads to no file that may be served. */
export interface NotFound {
  readonly kind: 'not-found';
  /** For the debug log; never sent to the client. */
  readonly reason: string;
}

/** What a URL path leads to. */
export type Resolution = ResolvedFile | { readonly kind: 'directory' } | NotFound;

/** Finds the file for a URL path: the path itself, an index file for `dir/`, or the path with an extension added. */
export async function resolveFile(
  root: string,
  urlPath: string,
  settings: StaticSettings,
): Promise<Resolution> {
  const dependencies: Dependency[] = [];
  let reason = 'no such file';
  for (const candidate of candidatesFor(urlPath, settings)) {
    const path = root + (sep === '/' ? candidate : candidate.replaceAll('/', sep));
    const stats = await statOrUndefined(path);
    dependencies.push(dependencyOf(path, stats));
    if (stats === undefined) continue;
    // Opening a FIFO blocks a pool thread until a writer opens it, and a device may never end. Neither is opened.
    if (stats.isFile()) {
      const resolved = await resolveInsideRoot(root, path, settings);
      return typeof resolved === 'string'
        ? { kind: 'file', path, filePath: candidate, realPath: resolved, dependencies }
        : resolved;
    }
    if (stats.isDirectory() && candidate === urlPath)
      return settings.html ? { kind: 'directory' } : notFound('a directory');
    reason = 'not a regular file';
  }
  return notFound(reason);
}

/** Records what a stat of a path returned. */
export function dependencyOf(path: string, stats: FileVersion | undefined): Dependency {
  return { path, version: stats && fileVersionOf(stats) };
}

function notFound(reason: string): NotFound {
  return { kind: 'not-found', reason };
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

/**
 * Returns the path without symbolic links, and refuses files outside the root directory. The root is resolved each time, because a
 * deployment may switch a root that is a symbolic link.
 */
export async function resolveInsideRoot(
  root: string,
  path: string,
  settings: StaticSettings,
): Promise<string | NotFound> {
  const [realRoot, realPath] = await Promise.all([realpath(root), realpath(path)]);
  const prefix = realRoot.endsWith(sep) ? realRoot : realRoot + sep;
  if (!settings.followSymlinks && !realPath.startsWith(prefix))
    return notFound('a symbolic link that leaves the root');
  // A file system that ignores case or the Unicode form would serve `/.ENV` or `/A.TXT` past a guard.
  const requested = prefix + path.slice(root.length + 1);
  if (requested !== realPath && fold(requested) === fold(realPath))
    return notFound('another spelling of the name');
  return realPath;
}

function fold(path: string): string {
  return path.normalize().toLowerCase();
}
