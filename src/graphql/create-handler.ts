import type { GraphQLHandler } from '../../types/graphql.ts';
import { CORE, createCore } from '../core/core.ts';
import type { CreateExtensions } from '../core/extension.ts';
import { createExecute } from '../live/direct.ts';
import { createWebsocketHandler } from '../live/websocket.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { HANDLER_MEMBERS } from './extensions.ts';
import { createHandler } from './handler.ts';
import { assertUploadScalar, type HttpSettings, resolveHttpOptions } from './options.ts';

/** Creates what `graphqlHTTP` returns. `extensionsOf` lists everything optional about operations. */
export function createGraphQLHandler(
  schema: unknown,
  options: unknown,
  extensionsOf: (settings: HttpSettings) => CreateExtensions,
): GraphQLHandler {
  const settings = resolveHttpOptions(options);
  if (settings.multipartUploadsEnabled) assertUploadScalar(schema);
  const core = createCore(GRAPHQL_OPTIONS, schema, settings, extensionsOf(settings));
  return Object.assign(createHandler(core, settings), {
    websocketHandler: createWebsocketHandler(core),
    async replace(next: unknown) {
      if (settings.multipartUploadsEnabled) assertUploadScalar(next);
      await core.replace(next);
    },
    execute: createExecute(core),
    ...HANDLER_MEMBERS,
    ...core.handler,
    [CORE]: core,
  });
}
