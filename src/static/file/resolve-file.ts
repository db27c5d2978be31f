import type { BigIntStats } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { extname, sep } from 'node:path';
import type { Settings } from '../options.ts';
import { meansAbsent } from './file-errors.ts';
import { type Identity, identityOf } from './file-version.ts';

/** A path that was looked at and the version seen there; undefined: nothing was there. */
export interface Dependency {
  readonly path: string;
  readonly identity: Identity | undefined;
}

/** A regular file that a path below the mount leads to. */
export interface LocatedFile {
  readonly kind: 'file';
  readonly path: string;
  /** Without symbolic links. */
  readonly realPath: string;
  /** Every look that led here; when one of them would be different now, so may be the answer. */
  readonly dependencies: readonly Dependency[];
}

/** Where a path below the mount leads. */
export type Located = LocatedFile | { readonly kind: 'directory' } | Missing;

export interface Missing {
  readonly kind: 'missing';
  readonly why: string;
}

/** Finds the file that answers `key`: the path itself, an index for `dir/`, or a path with an extension added. */
export async function locate(root: string, key: string, settings: Settings): Promise<Located> {
  const dependencies: Dependency[] = [];
  let why = 'no such file';
  for (const candidate of candidatesOf(key, settings)) {
    const path = root + (sep === '/' ? candidate : candidate.replaceAll('/', sep));
    const found = await look(path);
    dependencies.push(dependency(path, found));
    if (found === undefined) continue;
    // A FIFO would hold a thread of the pool until somebody writes to it, a device may never end: neither is opened.
    if (found.isFile()) return contain(root, path, settings.follow, dependencies);
    if (found.isDirectory() && candidate === key)
      return settings.html ? { kind: 'directory' } : missing('a directory');
    why = 'not a regular file';
  }
  return missing(why);
}

/** What a look at a path saw. */
export function dependency(path: string, found: Identity | undefined): Dependency {
  return { path, identity: found && identityOf(found) };
}

function missing(why: string): Missing {
  return { kind: 'missing', why };
}

function candidatesOf(key: string, settings: Settings): readonly string[] {
  if (key.endsWith('/')) return settings.index.map((name) => key + name);
  if (settings.extensions.length === 0 || extname(key) !== '') return [key];
  return [key, ...settings.extensions.map((extension) => key + extension)];
}

/** What is at a path, symbolic links followed. */
export async function look(path: string): Promise<BigIntStats | undefined> {
  try {
    return await stat(path, { bigint: true });
  } catch (error) {
    if (meansAbsent(error)) return undefined;
    throw error;
  }
}

/** Refuses what lies outside of the root as it is now: a root that is a link may be switched at any time. */
export async function contain(
  root: string,
  path: string,
  follow: boolean,
  dependencies: readonly Dependency[],
): Promise<LocatedFile | Missing> {
  const [realRoot, realPath] = await Promise.all([realpath(root), realpath(path)]);
  const prefix = realRoot.endsWith(sep) ? realRoot : realRoot + sep;
  if (!follow && !realPath.startsWith(prefix)) return missing('a link that leaves the root');
  // A file system that ignores case, or the form of Unicode, would serve `/.ENV` or `/A.TXT` past a guard.
  const asked = prefix + path.slice(root.length + 1);
  if (asked !== realPath && fold(asked) === fold(realPath)) return missing('another spelling of the name');
  return { kind: 'file', path, realPath, dependencies };
}

function fold(path: string): string {
  return path.normalize().toLowerCase();
}
