import type { Files } from './load.ts';
import type { StaticSettings } from './options.ts';
import { hasDotSegment, isServedName } from './path.ts';
import type { FileVersion } from './root.ts';

/** A file or folder that requests can reach. */
export interface TreeEntry {
  readonly name: string;
  /** The path below the root, without a slash at the end. */
  readonly path: string;
  readonly kind: 'file' | 'directory';
  readonly version: FileVersion;
}

/**
 * Lists a folder as requests see it: without dotfiles, links that leave the root, names that no request can have, and what
 * is neither a file nor a folder. Undefined if there is no such folder.
 *
 * @param folder - its path below the root, with a slash at the end
 * @param max - the number of entries, which are the first ones by their name
 */
export async function readFolder(
  files: Files,
  folder: string,
  settings: StaticSettings,
  max: number = Number.POSITIVE_INFINITY,
): Promise<TreeEntry[] | undefined> {
  const names = await files.names(folder, settings);
  if (names === undefined) return undefined;
  const entries: TreeEntry[] = [];
  for (const name of Number.isFinite(max) ? [...names].sort() : names) {
    if (entries.length === max) break;
    const path = folder + name;
    if (!isServedName(name, settings) || /\p{Surrogate}/u.test(name)) continue;
    if (settings.dotfiles !== 'allow' && hasDotSegment(path)) continue;
    const found = await files.stat(files.pathOf(path));
    if (found === undefined || found.kind === 'other') continue;
    entries.push({ name, path, kind: found.kind, version: found.version });
  }
  return entries;
}

// Links could lead in a circle.
const MAX_DEPTH = 16;

/** Iterates over all files that requests can reach, folder by folder. */
export async function* walkFiles(
  files: Files,
  settings: StaticSettings,
  folder = '/',
  depth = 0,
): AsyncGenerator<TreeEntry> {
  const folders: string[] = [];
  for (const entry of (await readFolder(files, folder, settings)) ?? []) {
    if (entry.kind === 'file') yield entry;
    else folders.push(`${entry.path}/`);
  }
  if (depth === MAX_DEPTH) return;
  for (const each of folders) yield* walkFiles(files, settings, each, depth + 1);
}
