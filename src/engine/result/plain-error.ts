/** Properties that `locatedError` copies from an error into the response. */
const COPIED_PROPERTIES = ['path', 'nodes', 'source', 'positions', 'extensions'];

/** An Error without any property that `locatedError` would copy. */
export function isPlainError(reason: unknown): reason is Error {
  return reason instanceof Error && !COPIED_PROPERTIES.some((name) => name in reason);
}
