import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { wrongArgument } from '../options/resolve-options.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { RootDirectory } from './disk/root-directory.ts';

/** Checks the `dir` argument. The directory must exist when the middleware is created. */
export function resolveRoot(dir: unknown): RootDirectory {
  // An empty string, for example from an unset environment variable, would mean the working directory.
  if ((typeof dir !== 'string' && !(dir instanceof URL)) || dir === '') {
    throw wrongArgument(STATIC_OPTIONS, 'dir', dir, 'a path or a file: URL');
  }
  const path = resolve(typeof dir === 'string' ? dir : fileURLToPath(dir));
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return new RootDirectory(path);
  const reason = stats === undefined ? 'does not exist' : 'is not a directory';
  throw Object.assign(new Error(`staticFiles: ${path} ${reason}`), { code: 'ERR_STATIC_ROOT', path });
}
