import type { Server } from 'node:net';
import { extensionsOf } from '../src/graphql/extensions.ts';
import { attach } from '../src/live/websocket.ts';
import type { SubscriptionTarget } from '../types/graphql.ts';
import type { SubscriptionOptions, Subscriptions } from '../types/subscriptions.ts';

export type { SubscriptionTarget } from '../types/graphql.ts';
export type * from '../types/operation.ts';
export type * from '../types/subscriptions.ts';

/**
 * Serves subscriptions, queries and mutations over WebSockets at one path, with both subprotocols. It handles
 * the server's `upgrade` events for that path and leaves all others to their listeners. Given a handler that
 * `graphqlHTTP` created, it uses the context, rules, limits and document cache of that handler.
 *
 * @param server - the return value of `app.listen()`, or a server of `createServer(app)`
 * @param target - the handler that `graphqlHTTP` created, or a schema
 * @throws TypeError (code `ERR_OPTION`) if `server` is not a server, `target` neither a schema nor a handler,
 * an option is unknown or has a wrong value, or the path already has subscriptions attached
 * @example
 * const server = createServer(app).listen(3000);
 * attachSubscriptions(server, handler);
 * process.once('SIGTERM', () => server.drain());
 */
export function attachSubscriptions<Context = unknown>(
  server: Server,
  target: SubscriptionTarget,
  options?: SubscriptionOptions<Context>,
): Subscriptions {
  return attach(server, target, options, extensionsOf({}));
}
