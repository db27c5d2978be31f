/** Converts a thrown value to an Error for `next`, for which undefined, 'route' and 'router' have other meanings. */
export function toError(error: unknown): Error {
  if (typeof error === 'object' && error !== null) return error as Error;
  return new Error(`A value was thrown that is not an Error: ${String(error)}`, { cause: error });
}
