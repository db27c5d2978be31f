import type { StreamConnection, SubscriptionConnection } from '../../types/subscriptions.ts';
import { assertSync } from '../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';

/** A connection that `disconnect` may close. */
export interface DisconnectableConnection {
  readonly isClosing: boolean;
  /** False until the application has accepted the client and its context is complete. */
  readonly isAccepted: boolean;
  /** The checks that are repeated when the client is accepted; undefined while the application does not decide. */
  readonly pendingChecks?: (() => void)[] | undefined;
  /** Returns the object that `disconnect` passes to its predicate. */
  describe(): SubscriptionConnection | StreamConnection;
  /** Ends all operations and closes the connection. Event streams have neither a code nor a reason. */
  closeSocket(code: number, reason: string): void;
}

/** The arguments of `disconnect`. */
interface DisconnectRequest {
  readonly predicate: (connection: SubscriptionConnection | StreamConnection) => boolean;
  readonly code: number;
  readonly reason: string;
}

/**
 * Closes the connections that the predicate selects; returns their number. Connections that are not accepted yet have
 * no complete context, so the predicate may throw for them. It decides again when a socket is accepted: `onConnect` may
 * have checked its session before the logout.
 */
export function disconnect(
  connections: Iterable<DisconnectableConnection>,
  { predicate, code, reason }: DisconnectRequest,
): number {
  const scope = { ...SUBSCRIPTION_OPTIONS, name: 'disconnect' };
  const isSelected = (connection: DisconnectableConnection): boolean =>
    !connection.isClosing && assertSync(predicate(connection.describe()), scope, 'predicate');
  const isSelectedEarly = (connection: DisconnectableConnection): boolean => {
    try {
      if (isSelected(connection)) return true;
    } catch {
      // A member of a user that the context does not have yet.
    }
    connection.pendingChecks?.push(() => {
      if (isSelected(connection)) connection.closeSocket(code, reason);
    });
    return false;
  };
  // Selected before any of them closes, so that a predicate that throws closes no connection.
  const selected = [...connections].filter((connection) =>
    connection.isAccepted ? isSelected(connection) : isSelectedEarly(connection),
  );
  for (const connection of selected) connection.closeSocket(code, reason);
  return selected.length;
}
