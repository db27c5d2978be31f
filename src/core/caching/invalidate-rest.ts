import type { ExecutionCaching, RemainingResults } from '../../execution/types.ts';

/**
 * Invalidates the tags that the deferred parts of a mutation add, before the payload with them is sent. The tags of
 * the first payload have to be invalidated before.
 */
export function invalidateRest(rest: RemainingResults, caching: ExecutionCaching): RemainingResults {
  let known = caching.tags().length;

  async function invalidateNew(): Promise<void> {
    const { length } = caching.tags();
    if (length === known) return;
    known = length;
    await caching.invalidate();
  }

  async function afterwards(
    reading: Promise<IteratorResult<string, undefined>>,
  ): Promise<IteratorResult<string, undefined>> {
    try {
      return await reading;
    } finally {
      await invalidateNew();
    }
  }

  return { next: () => afterwards(rest.next()), return: () => afterwards(rest.return()) };
}
