import type { GraphQLFormattedError } from 'graphql';
import type { SubscriptionProtocol } from '../../../types/subscriptions.ts';
import { events } from '../../core/diagnostics.ts';
import { cursorRequest } from '../../cursors/operation-cursors.ts';
import { readError } from '../../diagnostics/error-facts.ts';
import { isGraphQLError, refusalError } from '../../execution/graphql-error.ts';
import { HttpError } from '../../http/reply/http-error.ts';
import { debug } from '../../logging/debug.ts';
import { estimateMemory } from '../../subscriptions/memory-estimate.ts';
import {
  type Closure,
  FORBIDDEN,
  INTERNAL_ERROR,
  MessageType,
  TOO_MANY_OPERATIONS,
} from './graphql-ws-adapter.ts';
import { type OperationPayload, paramsOf, parseMessage } from './message.ts';
import type { Acceptance, SessionConnection } from './session-connection.ts';
import { type OperationSession, queueMicrotask, SocketOperation } from './socket-operation.ts';

/**
 * `opened` until `connection_init` arrives, `initialising` while `onConnect` runs, `acknowledged` while
 * operations may run, `closed` as soon as the connection begins to close the socket.
 */
type SessionState = 'opened' | 'initialising' | 'acknowledged' | 'closed';

/**
 * The protocol state of one connection, and its operations by id. A subclass per subprotocol translates the
 * messages.
 */
export abstract class Session implements OperationSession {
  abstract readonly name: SubscriptionProtocol;
  abstract readonly resultType: 'next' | 'data';
  protected readonly connection: SessionConnection;
  /**
   * The operations by the client's id as JSON, which distinguishes numbers from strings. Created for the
   * first operation.
   */
  #operations: Map<string, SocketOperation> | undefined;
  #state: SessionState = 'opened';
  /** The estimated memory of `#operations`. */
  #operationBytes = 0;
  /** The number of consecutively refused operations. */
  #refusals = 0;

  constructor(connection: SessionConnection) {
    this.connection = connection;
  }

  get state(): SessionState {
    return this.#state;
  }
  get operationCount(): number {
    return this.#operations?.size ?? 0;
  }

  /** Sends the positions of subscriptions whose cursor has changed. */
  sendPositions(): void {
    for (const operation of this.#operations?.values() ?? []) operation.sendPosition();
  }

  receive(text: string): void {
    if (this.#state === 'closed') return;
    this.handle(parseMessage(text, this.connection.limits));
  }

  /** Handles a message; `undefined` stands for text that is not acceptable JSON. */
  protected abstract handle(message: unknown): void;
  /** The payload of an `error` message. */
  protected abstract errorPayload(errors: readonly GraphQLFormattedError[]): unknown;
  /** Called after the acknowledgement was sent. */
  protected abstract onAcknowledged(): void;
  /** Closes a connection that was not accepted. */
  abstract refuse(closure: Closure): void;

  /**
   * Ends all operations without a message. The connection calls this when it closes its socket or the socket
   * has closed.
   */
  close(): void {
    this.#state = 'closed';
    for (const operation of this.#operations?.values() ?? []) operation.cancel();
  }

  /** opened, then initialising, then acknowledged. */
  protected initialise(connectionParams: Readonly<Record<string, unknown>>): void {
    this.#state = 'initialising';
    this.connection
      .accept(connectionParams)
      .then((acceptance) => this.#onAccepted(acceptance))
      .catch((error) => this.#refuseFor(error));
  }

  /** Starts an operation, unless the connection has too many. */
  protected begin(key: string, payload: OperationPayload): void {
    // Without `extensions`, which would stay in memory until the operation ends, except for the cursor.
    const params = paramsOf(payload, this.connection.limits);
    if (params instanceof HttpError) {
      this.refuseOperation(key, params.message);
      return;
    }
    const bytes = estimateMemory(params);
    const refusal = this.#refusalOf(bytes);
    if (refusal !== undefined) {
      if (++this.#refusals > this.connection.limits.maxOperations) this.closeSocket(TOO_MANY_OPERATIONS);
      else this.refuseOperation(key, refusal);
      return;
    }
    this.#refusals = 0;
    this.#operationBytes += bytes;
    const operation = new SocketOperation(this.connection, this, {
      key,
      params,
      bytes,
      cursorRequest: cursorRequest(payload.extensions),
    });
    if (events.operation.hasSubscribers) operation.observe(payload.extensions);
    this.#operations ??= new Map();
    this.#operations.set(key, operation);
    // In a microtask: an operation that the client cancels in the same packet never starts.
    queueMicrotask(() => {
      if (operation.isLive) this.connection.startOperation(operation);
    });
  }

  protected isInUse(key: string): boolean {
    return this.#operations?.has(key) === true;
  }

  /** Stops an operation that the client has cancelled. */
  protected cancel(key: string): void {
    this.#operations?.get(key)?.cancel();
  }

  /** Sends `error` for an id that has no operation. */
  protected refuseOperation(key: string, message: string): void {
    const errors = [refusalError(message, 'OPERATION_REFUSED')];
    this.#sendError(key, this.connection.formatErrors(errors, this.connection.origin));
  }

  protected closeSocket({ code, reason }: Closure): void {
    this.connection.closeSocket(code, reason);
  }

  endOperation(operation: SocketOperation, errors: readonly GraphQLFormattedError[] | undefined): void {
    // Frees the id before the client receives the message that ends the operation.
    operation.release();
    if (errors === undefined) {
      this.connection.write({ id: JSON.parse(operation.key), type: MessageType.Complete });
    } else this.#sendError(operation.key, errors);
  }

  forgetOperation(operation: SocketOperation): void {
    // The id may already belong to a newer operation.
    if (this.#operations?.get(operation.key) !== operation) return;
    this.#operations.delete(operation.key);
    this.#operationBytes -= operation.bytes;
  }

  /** Returns why an operation of this size may not start; undefined if it may. */
  #refusalOf(bytes: number): string | undefined {
    const { maxOperations, maxOperationBytes } = this.connection.limits;
    if (this.operationCount >= maxOperations) return 'Too many operations at a time';
    if (this.#operationBytes + bytes <= maxOperationBytes) return undefined;
    return 'The documents and variables of the operations in progress are too large together';
  }

  #sendError(key: string, errors: readonly GraphQLFormattedError[]): void {
    const payload = this.errorPayload(errors);
    this.connection.write({ id: JSON.parse(key), type: MessageType.Error, payload });
  }

  #onAccepted(acceptance: Acceptance): void {
    if (this.#state === 'closed') return;
    if (acceptance === false) {
      this.refuse(FORBIDDEN);
      return;
    }
    this.connection.write(
      acceptance === undefined
        ? { type: MessageType.ConnectionAck }
        : { type: MessageType.ConnectionAck, payload: acceptance },
    );
    this.#state = 'acknowledged';
    this.onAcknowledged();
  }

  /** Refuses the connection. The client sees the message of a GraphQLError; any other error is hidden. */
  #refuseFor(error: unknown): void {
    const isPublic = isGraphQLError(error);
    if (isPublic) debug.subscriptions('connection refused: %O', error);
    else this.connection.reportError(error);
    const { code, reason } = isPublic ? FORBIDDEN : INTERNAL_ERROR;
    this.refuse({ code, reason: (isPublic && readError(error).message) || reason });
  }
}
