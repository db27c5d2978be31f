import type { ContextSource, Hook, MaybePromise, OperationTransport } from './connect.ts';
import type { UsageClient } from './usage.ts';

/** Who sends an operation: what the option `caller` returns. It may have further members of your own. */
export interface Caller {
  /** The id of the user or service: not empty, and not shared with another one. */
  readonly id: string;
  /** What the caller may do, for the option `auth`. @default none */
  readonly scopes?: readonly string[] | ReadonlySet<string> | undefined;
  /**
   * The application that the caller uses, for the option `usage`.
   * @default the headers `graphql-client-name` and `graphql-client-version`, or those of Apollo; over a WebSocket members of
   * `connection_init` with these names take precedence
   */
  readonly client?: string | UsageClient | undefined;
}

/** The user whom the cursors of the option `cursors` and the keys of `idempotency` belong to. */
export interface UserOptions<Source = ContextSource, Context = unknown> {
  /**
   * Returns the id of a user, or null for an anonymous one. It gets the request or, over sockets, the WebSocket, and the
   * context.
   * @default the id of the option `caller`
   */
  user?: Hook<[source: Source, context: Context], string | null | undefined> | undefined;
}

/** What the function of the option `caller` gets besides the request. */
export interface CallerDetails {
  readonly transport: OperationTransport;
  /** The payload of the client's `connection_init`; undefined over HTTP. */
  readonly connectionParams: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Returns who sends a request or, over sockets, opens a WebSocket; null or undefined if nobody is signed in. It may throw a
 * GraphQLError to refuse the request.
 */
export type CallerFunction<Source = ContextSource, C extends Caller = Caller> = Hook<
  [source: Source, details: CallerDetails],
  MaybePromise<C | null | undefined>
>;
