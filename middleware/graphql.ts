import type { GraphQLResolveInfo } from 'graphql';
import { referenceResolver } from '../src/execution/resolve-many.ts';
import { createGraphQLHandler } from '../src/graphql/create-handler.ts';
import { extensionsOf } from '../src/graphql/extensions.ts';
import type { Caller } from '../types/caller.ts';
import type { ConnectRequest, ContextSource } from '../types/connect.ts';
import type {
  GraphQLHandler,
  GraphQLOptions,
  MethodName,
  RequestOf,
  ResolveReferences,
  SchemaSource,
} from '../types/graphql.ts';

export { cacheTypeDefs, rateLimitTypeDefs } from '../src/execution/type-defs.ts';
export { idempotentTypeDefs } from '../src/idempotency/directive.ts';
export { Upload } from '../src/uploads/scalar.ts';
export type * from '../types/auth.ts';
export type * from '../types/caching.ts';
export type * from '../types/caller.ts';
export type * from '../types/execute.ts';
export type * from '../types/graphiql.ts';
export type * from '../types/graphql.ts';
export type * from '../types/idempotency.ts';
export type * from '../types/operation.ts';
export type * from '../types/redis.ts';
export type * from '../types/response-cache.ts';
export type * from '../types/uploads.ts';
export type * from '../types/usage.ts';

/** The HTTP methods that the option `methods` accepts. */
export const Method: { readonly [Name in MethodName]: Name } = {
  GET: 'GET',
  POST: 'POST',
  HEAD: 'HEAD',
  QUERY: 'QUERY',
};

/**
 * GraphQL over HTTP for one schema, as a plain middleware.
 *
 * @param schema - a schema, or a function of the request that returns it
 * @param options - every option has a default; functions among the options may declare Express's request
 * type. Over sockets `context`, `rootValue` and `introspection` get the WebSocket, with `headers`, `url`,
 * `socket`, `state` and what middleware added
 * @throws TypeError (code `ERR_OPTION`) if `schema` is not a GraphQLSchema, for an unknown option or a wrong
 * value
 * @example
 * app.use(
 *   '/graphql',
 *   graphqlHTTP(schema, {
 *     context: ({ headers }) => ({ token: headers.authorization }),
 *   }),
 * );
 */
export function graphqlHTTP<
  Source extends object = ContextSource,
  Req extends ConnectRequest = RequestOf<Source>,
  Context = unknown,
  C extends Caller = Caller,
>(schema: SchemaSource<Req>, options?: GraphQLOptions<Req, Source, Context, C>): GraphQLHandler<Context, C> {
  return createGraphQLHandler(schema, options, extensionsOf);
}

/**
 * Creates the `__resolveReference` of a subgraph (Apollo Federation) from a function that loads many entities at once. Without
 * it, each entity of a list that a router asks for is loaded alone (N+1).
 *
 * @throws TypeError (code `ERR_OPTION`) if the argument is not a function
 * @example
 * const findUsers = async (ids: string[]) => ids.map((id) => ({ id }));
 * const resolvers = {
 *   User: {
 *     __resolveReference: resolveReferences((users: readonly { id: string }[]) =>
 *       findUsers(users.map(({ id }) => id)),
 *     ),
 *   },
 * };
 */
export function resolveReferences<Reference, Entity, Context = unknown>(
  resolveMany: ResolveReferences<Reference, Entity, Context>,
): (reference: Reference, context: Context, info: GraphQLResolveInfo) => Promise<Entity | null | undefined> {
  const resolve = referenceResolver(resolveMany);
  return (...args) => resolve(...args) as Promise<Entity | null | undefined>;
}
