import type { GraphQLResolveInfo, GraphQLSchema } from 'graphql';
import type { ContextSource, Hook, MaybePromise, OperationTransport } from './connect.ts';

/** What the functions of the option `auth` get besides the request. */
export interface AuthDetails<Context = unknown> {
  readonly transport: OperationTransport;
  /** The parameters of the connection; undefined over HTTP. */
  readonly connectionParams: Readonly<Record<string, unknown>> | undefined;
  /**
   * The context value of the operation. Undefined when `schemaFor` needs the scopes: the schema is chosen
   * before the context is created.
   */
  readonly context: Context | undefined;
}

/** The names that a function of the option `auth` returns. */
export type AuthNames = readonly string[] | ReadonlySet<string>;

/**
 * Options of authorization. The directives `@authenticated`, `@requiresScopes` and `@policy` in the schema say
 * what a field requires.
 */
export interface AuthOptions<Source = ContextSource, Context = unknown> {
  /**
   * Returns the scopes of the caller; null means not signed in. It gets the request or, over sockets, the
   * WebSocket. Called once per operation, and per event if the context is per event.
   * @default the scopes of the option `caller`, without which the function is required
   */
  scopes?:
    | Hook<[source: Source, details: AuthDetails<Context>], MaybePromise<AuthNames | null | undefined>>
    | undefined;
  /**
   * Decides about the policies that the operation names, and returns those that the caller meets. Called once
   * per operation that names some. @default none, so that `@policy` in the schema is an error
   */
  policies?:
    | Hook<[names: readonly string[], source: Source, details: AuthDetails<Context>], MaybePromise<AuthNames>>
    | undefined;
  /**
   * `'reject'` refuses an operation that selects what the caller may not see, before anything runs; `'null'`
   * executes it, and such fields are null with an error each. @default 'reject'
   */
  mode?: 'reject' | 'null' | undefined;
  /**
   * Returns the part of the schema that callers with these scopes see, which validation, suggestions and introspection
   * then use; operations are executed by the whole schema. Called once per set of scopes and schema, before there is a
   * context. `visibleSchema` of `espalier/auth` creates such a part. A schema with more than the whole one is an error of
   * the server. @default the schema of the handler
   */
  schemaFor?:
    | ((scopes: readonly string[] | null, schema: GraphQLSchema) => MaybePromise<GraphQLSchema>)
    | undefined;
}

/** `info.auth` of a resolver, with the option `auth`. Its functions may be destructured. */
export interface AuthCheck {
  /** Whether the caller is signed in. */
  readonly isAuthenticated: boolean;
  /** Whether the caller has all these scopes. */
  has(...scopes: string[]): boolean;
  /**
   * Throws an error with the code `UNAUTHENTICATED` or `FORBIDDEN` unless the caller is signed in and has all
   * these scopes.
   */
  assert(...scopes: string[]): void;
}

/** The `info` argument of resolvers when the option `auth` is set. */
export type AuthResolveInfo = GraphQLResolveInfo & { readonly auth: AuthCheck };
