import type { ContextSource, Hook, MaybePromise, OperationTransport } from './connect.ts';
import type { UsageClient } from './usage.ts';

/** Who sent an operation, as the option `caller` says. It may have further members, for the application. */
export interface Caller {
  /** Identifies the caller among all: a user, or a service. Not empty. */
  readonly id: string;
  /** What the caller may do, for the option `auth`. @default none */
  readonly scopes?: readonly string[] | ReadonlySet<string> | undefined;
  /** The application that the caller uses, for the option `usage`. @default what the client says of itself */
  readonly client?: string | UsageClient | undefined;
}

/** What the function of the option `caller` gets besides the request. */
export interface CallerDetails {
  readonly transport: OperationTransport;
  /** The payload of the client's `connection_init`; undefined over HTTP. */
  readonly connectionParams: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Returns the caller of a request or, over sockets, of a WebSocket; null or undefined for one that is not signed in. It may
 * throw a GraphQLError to refuse the request.
 */
export type CallerFunction<Source = ContextSource, C extends Caller = Caller> = Hook<
  [source: Source, details: CallerDetails],
  MaybePromise<C | null | undefined>
>;
