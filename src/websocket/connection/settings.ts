import type { MaybePromise } from '../../../types/connect.ts';
import type {
  ConnectingSubscription,
  ConnectResult,
  SubscriptionProtocol,
} from '../../../types/subscriptions.ts';
import type { OnOperation } from '../../core/options.ts';
import type { OperationSettings } from '../../subscriptions/subscribe.ts';
import type { SessionLimits } from '../protocol/session-connection.ts';
import type { DeadlineSettings } from './connection-deadlines.ts';

/** The options of a connection, however it was opened. */
export interface ConnectionSettings
  extends OperationSettings,
    DeadlineSettings,
    Omit<SessionLimits, 'maxVariables' | 'acceptsIds'> {
  readonly context: unknown;
  readonly contextPer: 'operation' | 'event' | 'connection';
  readonly subscriptionProtocols: readonly SubscriptionProtocol[];
  readonly onOperation: OnOperation | undefined;
  readonly onConnect: ((connection: ConnectingSubscription) => MaybePromise<ConnectResult>) | undefined;
}
