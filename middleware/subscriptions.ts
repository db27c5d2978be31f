import type { Server } from 'node:net';
import { attach } from '../src/subscriptions/attach.ts';
import type { SubscriptionOptions, Subscriptions, SubscriptionTarget } from '../types/subscriptions.ts';

export type {
  ConnectAnswer,
  ConnectingSubscription,
  SharedOperation,
  SubscriptionConnection,
  SubscriptionOptions,
  SubscriptionProtocol,
  SubscriptionStats,
  Subscriptions,
  SubscriptionTarget,
  WebSocketLike,
} from '../types/subscriptions.ts';

/**
 * Live subscriptions, queries and mutations over the WebSockets of one path, in both subprotocols. Takes the server's
 * `upgrade` events of that path and leaves all others to their listeners. Given a handler `graphqlHTTP` made, it shares
 * that handler's context, rules, limits and documents.
 */
export function attachSubscriptions(
  server: Server,
  target: SubscriptionTarget,
  options?: SubscriptionOptions,
): Subscriptions {
  return attach(server, target, options);
}
