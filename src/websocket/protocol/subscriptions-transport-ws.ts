import type { GraphQLFormattedError } from 'graphql';
import { isObject } from '../../options/rules.ts';
import { estimateMemory } from '../../subscriptions/memory-estimate.ts';
import {
  type Closure,
  FORBIDDEN,
  INTERNAL_ERROR,
  TOO_MANY_OPERATIONS,
  UNAUTHORIZED,
} from './graphql-ws-adapter.ts';
import { isOperationPayload } from './message.ts';
import { Session } from './session.ts';

/** The close code of subscriptions-transport-ws for a connection that was not accepted. */
const REFUSED = 1011;

/** A `start` message. */
type StartMessage = Readonly<Record<string, unknown>>;

/**
 * The legacy subprotocol `graphql-ws` (PROTOCOL.md of subscriptions-transport-ws). Messages that its clients
 * never send are ignored and leave the socket open. Nothing is executed before the connection is accepted
 * (CVE-2026-35523).
 */
export class SubscriptionsTransportWsSession extends Session {
  readonly name = 'graphql-ws';
  readonly resultType = 'data';
  /** Operations that wait for the acknowledgement: clients send `connection_init` and `start` together. */
  #earlyStarts: StartMessage[] | undefined;
  #earlyBytes = 0;

  protected handle(message: unknown): void {
    if (!isObject(message)) return;
    switch (message['type']) {
      case 'connection_init':
        this.#init(message['payload']);
        break;
      case 'start':
        this.#start(message);
        break;
      case 'stop':
        this.#stop(message['id']);
        break;
      case 'connection_terminate':
        this.connection.closeSocket(1000, '');
    }
  }

  /**
   * Returns the first error only: clients expect one object, and Apollo Kotlin casts the payload to a map.
   */
  protected errorPayload(errors: readonly GraphQLFormattedError[]): unknown {
    return errors[0];
  }

  /** Sends `ka` after the acknowledgement: some clients read exactly one message after `connection_init`. */
  protected onAcknowledged(): void {
    this.connection.startKeepAlive();
    const starts = this.#earlyStarts ?? [];
    this.#earlyStarts = undefined;
    for (const message of starts) this.#start(message);
  }

  refuse(closure: Closure): void {
    const { code, reason } = closure;
    if (code !== FORBIDDEN.code && code !== INTERNAL_ERROR.code) {
      this.closeSocket(closure);
      return;
    }
    this.connection.write({ type: 'connection_error', payload: { message: reason } });
    this.connection.closeSocket(REFUSED, reason);
  }

  override close(): void {
    this.#earlyStarts = undefined;
    super.close();
  }

  #init(payload: unknown): void {
    if (this.state !== 'opened') return;
    if (payload === undefined || payload === null) this.initialise({});
    else if (isObject(payload)) this.initialise(payload);
    else {
      this.connection.write({
        type: 'connection_error',
        payload: { message: 'The payload must be an object' },
      });
      this.connection.closeSocket(1000, '');
    }
  }

  #start(message: StartMessage): void {
    if (this.state === 'opened') this.closeSocket(UNAUTHORIZED);
    else if (this.state === 'initialising') this.#startLater(message);
    else if (this.state === 'acknowledged') this.#startNow(message);
  }

  #startNow({ id, payload }: StartMessage): void {
    const key = keyOf(id);
    if (key === undefined || String(id).length > this.connection.limits.maxIdLength) return;
    if (!isOperationPayload(payload)) {
      this.refuseOperation(key, 'The payload of "start" is malformed');
      return;
    }
    // A client that reconnects uses its ids again, so the newer operation replaces the older one.
    this.cancel(key);
    this.begin(key, payload);
  }

  /** Queues an early `start`. The queue is bounded, because the client is not authenticated yet. */
  #startLater(message: StartMessage): void {
    const { maxOperations, maxBufferedBytes } = this.connection.limits;
    this.#earlyStarts ??= [];
    this.#earlyBytes += estimateMemory(message);
    if (this.#earlyStarts.length < maxOperations && this.#earlyBytes <= maxBufferedBytes) {
      this.#earlyStarts.push(message);
    } else this.closeSocket(TOO_MANY_OPERATIONS);
  }

  #stop(id: unknown): void {
    this.#earlyStarts = this.#earlyStarts?.filter((message) => message['id'] !== id);
    const key = keyOf(id);
    if (key !== undefined) this.cancel(key);
  }
}

/** Formats an id as JSON, which keeps its type for messages to the client. */
const keyOf = (id: unknown): string | undefined =>
  (typeof id === 'string' && id !== '') || Number.isFinite(id) ? JSON.stringify(id) : undefined;
