import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { wrongArgument } from '../options/resolve-options.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';

/** Returns the absolute path of the directory to serve, which must exist when the middleware is created. */
export function resolveRoot(dir: unknown): string {
  // An empty string, for example from an unset environment variable, would mean the working directory.
  if ((typeof dir !== 'string' && !(dir instanceof URL)) || dir === '') {
    throw wrongArgument(STATIC_OPTIONS, 'dir', dir, 'a path or a file: URL');
  }
  const path = resolve(typeof dir === 'string' ? dir : fileURLToPath(dir));
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return path;
  const reason = stats === undefined ? 'does not exist' : 'is not a directory';
  throw Object.assign(new Error(`staticFiles: ${path} ${reason}`), { code: 'ERR_STATIC_ROOT', path });
}
