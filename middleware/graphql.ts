import { CORE, createCore } from '../src/graphql/core.ts';
import { createHandler, type Handler } from '../src/graphql/handler.ts';
import { settleHttp } from '../src/graphql/http-settings.ts';
import { createMount } from '../src/graphql/mount.ts';
import { createOpenApi } from '../src/graphql/openapi.ts';
import { createWebsocketHandler } from '../src/subscriptions/handler.ts';
import type { GraphQLHandler, GraphQLOptions, SchemaSource } from '../types/graphql.ts';

export { Upload } from '../src/uploads/scalar.ts';
export type { GraphiQLOption, GraphiQLOptions } from '../types/graphiql.ts';
export type { GraphQLHandler, GraphQLOptions } from '../types/graphql.ts';
export type { UploadedFile, UploadedFileInfo, UploadOptions, UploadReadOptions } from '../types/uploads.ts';

/** The HTTP methods `graphqlHTTP` can be mounted for. */
export const Method: { readonly GET: 'GET'; readonly POST: 'POST'; readonly HEAD: 'HEAD' } = {
  GET: 'GET',
  POST: 'POST',
  HEAD: 'HEAD',
};

/** GraphQL over HTTP for one schema, as a plain middleware. */
export function graphqlHTTP(schema: SchemaSource, options?: GraphQLOptions): GraphQLHandler {
  const settings = settleHttp(options);
  const core = createCore('graphqlHTTP', schema, settings);
  const handle = createMount(settings, createHandler(core, settings));
  const graphqlMiddleware: Handler = (req, res, next) => handle(req, res, next);
  const websocketHandler = createWebsocketHandler(core, settings.subscriptionProtocols);
  return Object.assign(graphqlMiddleware, {
    websocketHandler,
    openapi: createOpenApi(settings),
    [CORE]: core,
  });
}
