import type { Server } from 'node:net';
import { attach } from '../src/websocket/attach.ts';
import type { SubscriptionTarget } from '../types/graphql.ts';
import type { SubscriptionOptions, Subscriptions } from '../types/subscriptions.ts';

export type { SubscriptionTarget } from '../types/graphql.ts';
export type * from '../types/subscriptions.ts';

/**
 * Live subscriptions, queries and mutations over the WebSockets of one path, in both subprotocols. Takes the server's
 * `upgrade` events of that path and leaves all others to their listeners. Given a handler `graphqlHTTP` made, it shares
 * that handler's context, rules, limits and documents.
 *
 * @param server - what `app.listen()` and `createServer(app)` return
 * @param target - a schema, or the handler that `graphqlHTTP` made
 * @throws TypeError (code `ERR_OPTION`) for what is no server or schema, an unknown option, a wrong value or a path that is taken
 * @example
 * const subscriptions = attachSubscriptions(app.listen(3000), handler);
 * process.once('SIGTERM', () => subscriptions.close({ drain: 10_000 }));
 */
export function attachSubscriptions(
  server: Server,
  target: SubscriptionTarget,
  options?: SubscriptionOptions,
): Subscriptions {
  return attach(server, target, options);
}
