import { statSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { formatValue } from '../options/format-value.ts';
import { optionError, wrongArgument } from '../options/resolve-options.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { RootDirectory } from './disk/root-directory.ts';
import type { StaticSettings } from './options.ts';

/** Checks the `dir` argument. The directory must exist when the middleware is created. */
export function resolveRoot(dir: unknown): RootDirectory {
  if (!isPath(dir)) throw wrongArgument(STATIC_OPTIONS, 'dir', dir, 'a path or a file: URL');
  const path = resolve(typeof dir === 'string' ? dir : fileURLToPath(dir));
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return new RootDirectory(path);
  const reason = stats === undefined ? 'does not exist' : 'is not a directory';
  const hint =
    isAbsolute(`${dir}`) || dir instanceof URL
      ? ''
      : `; relative paths start at the working directory, ${process.cwd()}`;
  const message = `staticFiles: ${path} ${reason}. Create the directory before the call${hint}`;
  throw Object.assign(new Error(message), { code: 'ERR_STATIC_ROOT', path });
}

/** An empty string, for example from an unset environment variable, would mean the working directory. */
function isPath(dir: unknown): dir is string | URL {
  return typeof dir === 'string' ? dir !== '' : dir instanceof URL && dir.protocol === 'file:';
}

/** Checks that the pages of the options exist: a page that is missing would be a 404 for every navigation. */
export function assertPages(root: RootDirectory, pages: Pick<StaticSettings, 'fallback' | 'notFound'>): void {
  for (const name of ['fallback', 'notFound'] as const) {
    const page = pages[name];
    if (page === undefined || statSync(root.join(page), { throwIfNoEntry: false })?.isFile() === true)
      continue;
    const message = `option "${name}" is ${formatValue(page.slice(1))}, which is not a file in ${root.path}; create it before the call, for example with the build of your front end, and pass its path below this directory`;
    throw optionError(STATIC_OPTIONS, message);
  }
}
