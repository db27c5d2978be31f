import type { ResultQueue, ResultSource } from './result-queue.ts';

/** The message of the diagnostics channel for source streams that are open. */
export interface SubscribeMessage {
  readonly id: unknown;
  readonly origin: { readonly request?: { readonly socket?: unknown } | undefined };
}

/** The client's side of one operation over one transport. */
export interface SubscriptionClient extends ResultSource {
  readonly results: ResultQueue;
  /** Resolves when a result has arrived or the operation is complete; rejects if the connection is refused. */
  readonly responded: Promise<void>;
  /** Whether the source stream of this operation was opened. */
  isOrigin(message: SubscribeMessage): boolean;
  /** Disconnects without a message of the protocol. The next read rejects with the reason. */
  abort(reason: unknown): void;
}
