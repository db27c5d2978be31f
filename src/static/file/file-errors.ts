/** The code of a system error, if it is one. */
export function codeOf(error: unknown): string | undefined {
  const known = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof known === 'string' ? known : undefined;
}

// What a path can do wrong; no fault of ours, and telling which would tell too much.
const ABSENT = new Set([
  'ENOENT',
  'ENOTDIR',
  'ENAMETOOLONG',
  'ELOOP',
  'EACCES',
  'EPERM',
  'EINVAL',
  'ENXIO',
  'ENODEV',
]);
const BUSY = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN']);

/** Whether the error says that there is no such file for us. */
export function meansAbsent(error: unknown): boolean {
  return ABSENT.has(codeOf(error) ?? '');
}

/** Whether the file is there, but not for this process to read. */
export function meansForbidden(error: unknown): boolean {
  return ['EACCES', 'EPERM'].includes(codeOf(error) ?? '');
}

/** Whether the machine is out of descriptors or memory for the moment: to be tried again, never remembered. */
export function meansBusy(error: unknown): boolean {
  return BUSY.has(codeOf(error) ?? '');
}
