import { createInvalidate } from '../src/cache/invalidations.ts';
import { CORE, createCore } from '../src/core/core.ts';
import { createHandler } from '../src/graphql/handler.ts';
import { assertUploadScalar, resolveHttpOptions } from '../src/graphql/options.ts';
import { createWebsocketHandler } from '../src/live/websocket.ts';
import { delay, resolveOptions } from '../src/options/rules.ts';
import { GRAPHQL_OPTIONS } from '../src/options/scopes.ts';
import { NO_USAGE } from '../src/usage/options.ts';
import type { ConnectRequest, ContextSource } from '../types/connect.ts';
import type {
  GraphQLHandler,
  GraphQLOptions,
  MethodName,
  ReplaceOptions,
  RequestOf,
  SchemaSource,
} from '../types/graphql.ts';

export { idempotentTypeDefs } from '../src/idempotency/directive.ts';
export { Upload } from '../src/uploads/scalar.ts';
export type * from '../types/auth.ts';
export type * from '../types/caching.ts';
export type * from '../types/graphiql.ts';
export type * from '../types/graphql.ts';
export type * from '../types/idempotency.ts';
export type * from '../types/operation.ts';
export type * from '../types/redis.ts';
export type * from '../types/response-cache.ts';
export type * from '../types/uploads.ts';
export type * from '../types/usage.ts';

const REPLACE = { ...GRAPHQL_OPTIONS, name: 'replace' };

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
>(schema: SchemaSource<Req>, options?: GraphQLOptions<Req, Source>): GraphQLHandler {
  const settings = resolveHttpOptions(options);
  if (settings.multipartUploadsEnabled) assertUploadScalar(schema);
  const core = createCore(GRAPHQL_OPTIONS, schema, settings);
  const graphqlMiddleware = createHandler(core, settings);
  const websocketHandler = createWebsocketHandler(core, settings.subscriptionProtocols);
  return Object.assign(graphqlMiddleware, {
    websocketHandler,
    invalidate: createInvalidate(core),
    async replace(next: unknown, options?: ReplaceOptions) {
      const { timeout } = resolveOptions(REPLACE, options, { timeout: delay(60_000, 0) });
      if (settings.multipartUploadsEnabled) assertUploadScalar(next);
      await core.replace(next, timeout);
    },
    usage: core.usage ?? NO_USAGE,
    [CORE]: core,
  });
}
