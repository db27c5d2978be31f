import { constants } from 'node:os';

// libuv has no names for these errors: the code of Node's error is, for example, `Unknown system error -116`.
const { ESTALE, EDQUOT } = constants.errno;
const UNNAMED = new Map<unknown, string>([
  [-ESTALE, 'ESTALE'],
  [-EDQUOT, 'EDQUOT'],
]);

/** The `code` of a system error; undefined for other values. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  const name = 'errno' in error ? UNNAMED.get(error.errno) : undefined;
  return name ?? (typeof error.code === 'string' ? error.code : undefined);
}

const OUT_OF_RESOURCES = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN']);

/**
 * Whether the system has run out of descriptors or memory. The client may retry, and the result is not
 * cached.
 */
export function isResourceError(error: unknown): boolean {
  return OUT_OF_RESOURCES.has(codeOf(error) ?? '');
}
