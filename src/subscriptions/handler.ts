import { Socket } from 'node:net';
import type { SubscriptionProtocol, WebsocketHandler } from '../../types/subscriptions.ts';
import type { GraphQLCore } from '../core/core.ts';
import { resolveOptions } from '../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import { createHub } from './hub.ts';
import { connectionRules } from './settings.ts';

/** What `graphqlHTTP`'s handler offers as `websocketHandler`: for `app.ws(path, …)`, or a plain WebSocketServer. */
export function createWebsocketHandler(
  core: GraphQLCore,
  subscriptionProtocols: readonly SubscriptionProtocol[],
): WebsocketHandler {
  const hub = createHub(
    core,
    resolveOptions(SUBSCRIPTION_OPTIONS, { subscriptionProtocols }, connectionRules),
  );
  return function websocketHandler(websocket, request) {
    // The socket below is ours to write to only where the WebSocket came of this very request, over HTTP/1.
    const raw =
      request.httpVersionMajor === 1 && request.socket instanceof Socket ? request.socket : undefined;
    hub.open(websocket, request, raw);
  };
}
