import type { SubscriptionProtocol } from '../../../types/subscriptions.ts';
import { GraphQLTransportWsSession } from './graphql-transport-ws.ts';
import type { Session } from './session.ts';
import type { SessionConnection } from './session-connection.ts';
import { SubscriptionsTransportWsSession } from './subscriptions-transport-ws.ts';

/** Creates the session of a connection for its subprotocol. */
export function createSession(protocol: SubscriptionProtocol, connection: SessionConnection): Session {
  return protocol === 'graphql-ws'
    ? new SubscriptionsTransportWsSession(connection)
    : new GraphQLTransportWsSession(connection);
}
