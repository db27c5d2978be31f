import type { DocumentNode, GraphQLError, GraphQLSchema, OperationDefinitionNode } from 'graphql';
import type { Caller } from './caller.ts';
import type { ContextSource, OperationTransport } from './connect.ts';

/** An operation as `onOperation` sees it: valid, with valid variables, and not yet executed. */
export interface OperationDetails<Source = ContextSource, Context = unknown, C extends Caller = Caller> {
  readonly schema: GraphQLSchema;
  /** The document, which may contain other operations. */
  readonly document: DocumentNode;
  /** The operation of the document that is executed. */
  readonly operation: OperationDefinitionNode;
  /** The name of the operation; undefined for an anonymous one. */
  readonly operationName: string | undefined;
  /**
   * The variables as the client sent them; `{}` if it sent none. For packages that coerce variables
   * themselves.
   */
  readonly variables: Readonly<Record<string, unknown>>;
  /** The variables as resolvers get them: with defaults, and coerced. */
  readonly coercedVariables: Readonly<Record<string, unknown>>;
  /** The request; over sockets the WebSocket, as for `context` functions. */
  readonly request: Source;
  /** The context value of the operation. */
  readonly context: Context;
  /** What the option `caller` has returned: null if nobody is signed in, undefined without the option. */
  readonly caller: C | null | undefined;
  readonly transport: OperationTransport;
}

/**
 * The return value of `onOperation`. `errors` refuse the operation, unless the list is empty. `extensions`
 * are added to the response, or to each result of a subscription; they must have a JSON form. `expiresAt` is the
 * time at which the caller's token ends: a Date, milliseconds since 1970, or seconds as in a JWT's `exp`. At that
 * time a socket with the subscription is closed with 4403, and an event stream ends, so that clients connect again
 * with a new token. An operation whose token has ended already is refused (401, `UNAUTHENTICATED`).
 */
export type OperationDecision =
  | undefined
  | ReturnType<() => void>
  | {
      readonly errors?: readonly GraphQLError[] | undefined;
      readonly extensions?: Readonly<Record<string, unknown>> | undefined;
      readonly expiresAt?: Date | number | undefined;
    };

/**
 * Several results of one operation: an async iterable, or the form that graphql 17 returns for incremental
 * delivery.
 */
export type StreamedResults =
  | AsyncIterable<object>
  | { readonly initialResult: object; readonly subsequentResults: AsyncIterator<object, unknown> };

/** The result of a query or mutation as `onResult` sees it: executed, and not sent yet. */
export interface ResultDetails<Source = ContextSource, Context = unknown, C extends Caller = Caller> {
  /** The document, which may contain other operations. */
  readonly document: DocumentNode;
  /** The operation of the document that was executed. */
  readonly operation: OperationDefinitionNode;
  /** The name of the operation; undefined for an anonymous one. */
  readonly operationName: string | undefined;
  /** The request; over sockets the WebSocket; with `execute` of the handler the request that it got, or an empty one. */
  readonly request: Source | undefined;
  /** The context value of the operation. */
  readonly context: Context;
  /** What the option `caller` has returned: null if nobody is signed in, undefined without the option. */
  readonly caller: C | null | undefined;
  readonly transport: OperationTransport;
  /** `data`: no errors. `partial`: errors and a member `data`. `refused`: no `data`, for example because of its variables. */
  readonly kind: 'data' | 'partial' | 'refused';
  /** The errors before masking. */
  readonly errors: readonly GraphQLError[];
  /** The status that the errors ask for, or 200; undefined if the operation did not come over HTTP. */
  readonly status: number | undefined;
}

/**
 * The return value of `onResult`: `extensions` of the result, as JSON, and `headers` of the HTTP response, such as
 * `Set-Cookie`. Other transports ignore the headers.
 */
export type ResultAdditions =
  | undefined
  | ReturnType<() => void>
  | {
      readonly extensions?: Readonly<Record<string, unknown>> | undefined;
      readonly headers?: Readonly<Record<string, string | readonly string[]>> | undefined;
    };
