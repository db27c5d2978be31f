import type { LiveConnection } from '../../subscriptions/endpoint.ts';
import type { IntervalTimer } from '../../subscriptions/interval-timer.ts';
import type { OperationServices } from '../../subscriptions/subscribe.ts';
import type { SessionLimits } from '../protocol/session-connection.ts';
import type { FrameScheduler } from '../write/frames.ts';
import type { SendPrivateResult } from '../write/large-results.ts';
import type { ContextPolicy } from './connection-context.ts';
import type { ConnectionSettings } from './settings.ts';

/** The services that the connections of one endpoint share. */
export interface ConnectionServices extends OperationServices {
  readonly settings: ConnectionSettings;
  readonly limits: SessionLimits;
  readonly scheduler: FrameScheduler;
  readonly timer: IntervalTimer;
  readonly sendPrivateResult: SendPrivateResult;
  readonly context: ContextPolicy;
  onClosed(connection: LiveConnection): void;
}
