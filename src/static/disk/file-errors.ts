import { codeOf } from '../../http/reply/system-error.ts';

// Errors that a request path can cause. All of them become a 404, which reveals nothing about the disk.
const NOT_FOUND = new Set([
  'ENOENT',
  'ENOTDIR',
  'ENAMETOOLONG',
  'ELOOP',
  'EACCES',
  'EPERM',
  'EINVAL',
  'ENXIO',
  'ENODEV',
  // The permission model of Node (`--permission`).
  'ERR_ACCESS_DENIED',
]);

/** Whether the error means that there is no file to serve at a path. */
export function isNotFoundError(error: unknown): boolean {
  return NOT_FOUND.has(codeOf(error) ?? '');
}

/** Whether the file exists but this process may not read it. */
export function isPermissionError(error: unknown): boolean {
  return ['EACCES', 'EPERM', 'ERR_ACCESS_DENIED'].includes(codeOf(error) ?? '');
}

/**
 * Whether the file was replaced or deleted on the server of a network file system. Opening the path again
 * finds the new file.
 */
export function isStaleError(error: unknown): boolean {
  return codeOf(error) === 'ESTALE';
}
