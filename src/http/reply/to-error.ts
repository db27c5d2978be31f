/** What was thrown, for `next`: to that, nothing means "go on", and some words have a meaning of their own. */
export function toError(error: unknown): Error {
  if (typeof error === 'object' && error !== null) return error as Error;
  return new Error(`${String(error)} was thrown`, { cause: error });
}
