import type { MaybePromise } from '../../../types/connect.ts';
import type {
  ConnectingSubscription,
  ConnectResult,
  SubscriptionProtocol,
} from '../../../types/subscriptions.ts';
import type { OnOperation } from '../../core/options.ts';
import type { EndpointSettings } from '../../subscriptions/endpoint.ts';
import type { DeadlineSettings } from './connection-deadlines.ts';

/** The options of a connection, however it was opened. */
export interface ConnectionSettings extends EndpointSettings, DeadlineSettings {
  readonly context: unknown;
  readonly contextPer: 'operation' | 'event' | 'connection';
  readonly subscriptionProtocols: readonly SubscriptionProtocol[];
  readonly onOperation: OnOperation | undefined;
  readonly onConnect: ((connection: ConnectingSubscription) => MaybePromise<ConnectResult>) | undefined;
}
