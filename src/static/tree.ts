import type { Files, FolderName } from './files.ts';
import type { StaticSettings } from './options.ts';
import { isHidden, isServedName } from './path.ts';
import { hasRules } from './rules.ts';
import type { FileVersion } from './version.ts';

/** A file or folder that requests can reach. */
export interface TreeEntry {
  readonly name: string;
  /** The path below the root, without a slash at the end. */
  readonly path: string;
  readonly kind: 'file' | 'directory';
  readonly version: FileVersion;
}

/**
 * Whether requests can name a file or folder: it is no dotfile, and a name that a request can have. Links that leave the root
 * have no names in `Files`.
 *
 * @param folder - its path below the root, with a slash at the end
 */
export const isReachable = (folder: string, name: string, settings: StaticSettings): boolean =>
  isServedName(name, settings) &&
  !(settings.rules !== undefined && hasRules(folder + name)) &&
  !/\p{Surrogate}/u.test(name) &&
  !isHidden(folder + name, settings);

/** Stats the names of a folder. Those that are gone are left out. */
export async function statNames(
  files: Files,
  folder: string,
  names: readonly FolderName[],
): Promise<TreeEntry[]> {
  const entries: TreeEntry[] = [];
  for (const { name } of names) {
    const path = folder + name;
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
  const names = (await files.names(folder)) ?? [];
  const reachable = names.filter(({ name }) => isReachable(folder, name, settings));
  for (const entry of await statNames(files, folder, reachable)) {
    if (entry.kind === 'file') yield entry;
    else folders.push(`${entry.path}/`);
  }
  if (depth === MAX_DEPTH) return;
  for (const each of folders) yield* walkFiles(files, settings, each, depth + 1);
}

/** Finds the folders above a path that exist, from the nearest one up to the root. A slash ends each of them. */
export async function existingFolders(files: Files, urlPath: string): Promise<readonly string[]> {
  const folders = ['/'];
  for (let end = urlPath.indexOf('/', 1); end > 0; end = urlPath.indexOf('/', end + 1)) {
    const found = await files.stat(files.pathOf(urlPath.slice(0, end)));
    if (found?.kind !== 'directory') break;
    folders.unshift(urlPath.slice(0, end + 1));
  }
  return folders;
}
