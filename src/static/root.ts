import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { wrongArgument } from '../options/resolve-options.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';

/** The absolute path of the directory to serve; it must exist now. */
export function resolveRoot(dir: unknown): string {
  // An empty one, as of a variable that is not set, would be the working directory.
  if ((typeof dir !== 'string' && !(dir instanceof URL)) || dir === '') {
    throw wrongArgument(STATIC_OPTIONS, 'dir', dir, 'a path or a file: URL');
  }
  const path = resolve(typeof dir === 'string' ? dir : fileURLToPath(dir));
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() === true) return path;
  const why = found === undefined ? 'does not exist' : 'is not a directory';
  throw Object.assign(new Error(`staticFiles: ${path} ${why}`), { code: 'ERR_STATIC_ROOT', path });
}
