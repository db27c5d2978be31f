/**
 * Returns a function that loads a package or files at its first call, and then returns the same promise. A failure is
 * not kept: there may have been no descriptor for the files.
 */
export function loadOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}
