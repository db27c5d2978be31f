import type { MaybePromise } from '../../types/connect.ts';
import type { ContextDetails, SharedOperation } from '../../types/subscriptions.ts';

/** Returns the context value of a request, a connection or an operation. */
export type ContextFactory = (
  source: unknown,
  operation?: SharedOperation,
  connectionParams?: Readonly<Record<string, unknown>>,
) => MaybePromise<unknown>;

type ContextFunction = (source: unknown, details: ContextDetails) => unknown;

/** Creates the factory of the option `context`: a value, or a function of the source and its details. */
export function createContextFactory(context: unknown): ContextFactory {
  if (typeof context !== 'function') return () => context;
  return (source, operation, connectionParams) => {
    const transport = connectionParams === undefined ? 'http' : 'websocket';
    return (context as ContextFunction)(source, { transport, connectionParams, operation });
  };
}
