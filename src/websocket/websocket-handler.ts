import { Socket } from 'node:net';
import type { SubscriptionProtocol, WebsocketHandler } from '../../types/subscriptions.ts';
import type { GraphQLCore } from '../core/core.ts';
import { resolveOptions } from '../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import { WebSocketEndpoint } from './endpoint.ts';
import { connectionRules } from './options.ts';

/**
 * Creates the `websocketHandler` of a `graphqlHTTP` handler, for `app.ws(path, ...)` of express-ws or a
 * WebSocketServer.
 */
export function createWebsocketHandler(
  core: GraphQLCore,
  subscriptionProtocols: readonly SubscriptionProtocol[],
): WebsocketHandler {
  const endpoint = new WebSocketEndpoint(
    core,
    resolveOptions(SUBSCRIPTION_OPTIONS, { subscriptionProtocols }, connectionRules),
  );
  return function websocketHandler(websocket, request) {
    // We may write to the socket only if the WebSocket was opened by this request, over HTTP/1.
    const socket =
      request.httpVersionMajor === 1 && request.socket instanceof Socket ? request.socket : undefined;
    endpoint.open(websocket, request, socket);
  };
}
