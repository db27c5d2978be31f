/** The `code` of a system error; undefined for other values. */
export function codeOf(error: unknown): string | undefined {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

const OUT_OF_RESOURCES = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN']);

/**
 * Whether the system has run out of descriptors or memory. The client may retry, and the result is not
 * cached.
 */
export function isResourceError(error: unknown): boolean {
  return OUT_OF_RESOURCES.has(codeOf(error) ?? '');
}
