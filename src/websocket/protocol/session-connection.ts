import type { ClientLimits } from '../../subscriptions/endpoint.ts';
import type { MessageSettings, ServerMessage } from './message.ts';
import type { OperationConnection, SocketOperation } from './socket-operation.ts';

/** The limits of one client, and those of its messages. */
export type SessionLimits = ClientLimits & MessageSettings;

/** The payload of `connection_ack`, if any, or `false` to refuse the connection. */
export type Acceptance = Readonly<Record<string, unknown>> | undefined | false;

/** The members of a connection that its session uses. */
export interface SessionConnection extends OperationConnection {
  readonly limits: SessionLimits;
  write(message: ServerMessage): void;
  /** Asks the application whether to accept the connection. */
  accept(connectionParams: Readonly<Record<string, unknown>>): Promise<Acceptance>;
  startOperation(operation: SocketOperation): void;
  /** Reports an error that closes the connection with code 4500. */
  reportError(error: unknown): void;
  /** Sends `ka` now and at intervals, if the option `keepAlive` is on. */
  startKeepAlive(): void;
}
