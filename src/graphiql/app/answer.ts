import type { FetcherReturnType } from '@graphiql/toolkit';

/** An answer of our own, in the form of the server's. */
export function refusal(message: string, extensions?: Record<string, unknown>): Awaited<FetcherReturnType> {
  return { errors: [extensions === undefined ? { message } : { message, extensions }] } as never;
}
