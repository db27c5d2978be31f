import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import {
  CloseCode,
  type CompleteMessage,
  type ConnectionInitMessage,
  MessageType,
  type PingMessage,
  type PongMessage,
  type SubscribeMessage,
  validateMessage,
} from 'graphql-ws';
import type { MaybePromise } from '../../types/connect.ts';
import type { SubscriptionConnection, SubscriptionProtocol } from '../../types/subscriptions.ts';
import { readReference } from '../core/document-id.ts';
import { events } from '../diagnostics/events.ts';
import { debug, readError } from '../diagnostics/logging.ts';
import { isGraphQLError, refusalError } from '../execution/graphql-error.ts';
import { ObservedOperation } from '../execution/observed.ts';
import type { ErrorOrigin, ExecutionOutcome, GraphQLParams } from '../execution/types.ts';
import { assertJsonTextWithinLimits } from '../http/body.ts';
import { HttpError } from '../http/reply.ts';
import { isObject } from '../options/rules.ts';
import { type CursorRequest, cursorRequest } from './cursors.ts';
import type { ClientLimits } from './endpoint.ts';
import type { FrameEnvelope, ResultTarget } from './frames.ts';
import {
  closeCodeOf,
  estimateMemory,
  type FlushMode,
  LiveOperation,
  type OperationClient,
} from './operation.ts';
import type { SendQueue } from './queue.ts';

/** Creates the session of a connection for its subprotocol. */
export function createSession(protocol: SubscriptionProtocol, connection: SessionConnection): Session {
  return protocol === 'graphql-ws'
    ? new SubscriptionsTransportWsSession(connection)
    : new GraphQLTransportWsSession(connection);
}

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

/** The subprotocol `graphql-transport-ws` (PROTOCOL.md of graphql-ws). */
class GraphQLTransportWsSession extends Session {
  readonly name = 'graphql-transport-ws';
  readonly resultType = 'next';

  protected handle(value: unknown): void {
    const message = toClientMessage(value);
    switch (message?.type) {
      case MessageType.ConnectionInit:
        if (this.state !== 'opened') this.closeSocket(SECOND_INIT);
        else this.initialise(message.payload ?? {});
        break;
      case MessageType.Ping:
        this.connection.write(
          message.payload ? { type: MessageType.Pong, payload: message.payload } : { type: MessageType.Pong },
        );
        break;
      case MessageType.Pong:
        break;
      case MessageType.Subscribe:
        this.#subscribe(message.id, message.payload);
        break;
      case MessageType.Complete:
        this.cancel(JSON.stringify(message.id));
        break;
      default:
        this.closeSocket(INVALID_MESSAGE);
    }
  }

  protected errorPayload(errors: readonly GraphQLFormattedError[]): unknown {
    return errors;
  }

  protected onAcknowledged(): void {
    // Clients of this protocol send the first operation after the acknowledgement only.
  }

  refuse(closure: Closure): void {
    this.closeSocket(closure);
  }

  #subscribe(id: string, payload: OperationPayload): void {
    const key = JSON.stringify(id);
    if (id.length > this.connection.limits.maxIdLength) this.closeSocket(INVALID_MESSAGE);
    else if (this.state !== 'acknowledged') this.closeSocket(UNAUTHORIZED);
    else if (this.isInUse(key)) this.closeSocket(duplicateId(id));
    else this.begin(key, payload);
  }
}

/** The close code of subscriptions-transport-ws for a connection that was not accepted. */
const REFUSED = 1011;

/** A `start` message. */
type StartMessage = Readonly<Record<string, unknown>>;

/**
 * The legacy subprotocol `graphql-ws` (PROTOCOL.md of subscriptions-transport-ws). Messages that its clients
 * never send are ignored and leave the socket open. Nothing is executed before the connection is accepted
 * (CVE-2026-35523).
 */
class SubscriptionsTransportWsSession extends Session {
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

// Taken when the module is loaded: fake timers of a test must not delay requests.
const queueMicrotask: typeof globalThis.queueMicrotask = globalThis.queueMicrotask;

/** The members of a connection that its operations use. */
interface OperationConnection extends OperationClient {
  readonly queue: SendQueue;
  describe(): SubscriptionConnection;
  /** Whether each event of a subscription gets its own context from `contextFor`. */
  readonly hasContextPerEvent: boolean;
  sendResult(operation: SocketOperation, body: Buffer, mode: FlushMode): void;
  sendPrivateResult(operation: SocketOperation, outcome: ExecutionOutcome): void;
  readonly origin: ErrorOrigin;
  formatErrors(errors: readonly GraphQLError[], origin: ErrorOrigin): readonly GraphQLFormattedError[];
  closeSocket(code: number, reason: string): void;
}

/** The members of a protocol session that its operations use. */
interface OperationSession {
  /** The type of the messages that carry results. */
  readonly resultType: string;
  /** Ends the operation with `complete`, or with `error` if there are errors. */
  endOperation(operation: SocketOperation, errors: readonly GraphQLFormattedError[] | undefined): void;
  /** Frees the operation's id. */
  forgetOperation(operation: SocketOperation): void;
}

/** The message that starts an operation. */
interface SocketOperationRequest {
  /** The client's id as JSON. */
  readonly key: string;
  readonly params: GraphQLParams;
  /** The estimated memory of the document and variables. */
  readonly bytes: number;
  readonly cursorRequest: CursorRequest | undefined;
}

/** An operation of a WebSocket client. */
export class SocketOperation extends LiveOperation implements FrameEnvelope, ResultTarget {
  readonly client: OperationConnection;
  /** The client's id as JSON. */
  readonly key: string;
  readonly prefix: string;
  /** The estimated memory of its document and variables. */
  readonly bytes: number;
  readonly #session: OperationSession;
  #hasEnded = false;

  constructor(
    client: OperationConnection,
    session: OperationSession,
    { key, params, bytes, cursorRequest }: SocketOperationRequest,
  ) {
    super(params, cursorRequest);
    this.client = client;
    this.key = key;
    this.bytes = bytes;
    this.#session = session;
    const prefix = `{"id":${key},"type":"${session.resultType}","payload":`;
    // One character per UTF-8 byte.
    this.prefix = Buffer.from(prefix).toString('latin1');
  }

  get origin(): ErrorOrigin {
    const { operationName } = this.params;
    return { ...this.client.origin, operationName, aborted: !this.isLive };
  }
  override get contextForEvent(): (() => MaybePromise<unknown>) | undefined {
    return this.client.hasContextPerEvent ? () => this.client.contextFor(this.params) : undefined;
  }
  get rootValue(): unknown {
    return this.client.rootValue;
  }
  get source(): unknown {
    return this.client.source;
  }
  get queue(): SendQueue {
    return this.client.queue;
  }
  get id(): unknown {
    return JSON.parse(this.key);
  }

  /** Lets subscribers of `espalier:graphql:operation` observe the operation. */
  observe(extensions: unknown): void {
    const { connectionParams, websocket } = this.client.describe();
    this.observed = new ObservedOperation({
      transport: 'websocket',
      request: undefined,
      socket: websocket,
      connectionParams,
      extensions: isObject(extensions) ? extensions : undefined,
    });
  }

  send(body: string | Buffer, mode: FlushMode): void {
    if (!this.isLive) return;
    this.client.sendResult(this, typeof body === 'string' ? Buffer.from(body) : body, mode);
  }

  onResult(outcome: ExecutionOutcome): void {
    this.client.sendPrivateResult(this, outcome);
  }

  complete(): void {
    this.#end(undefined);
  }

  fail(errors: readonly GraphQLError[]): void {
    this.observed?.fail(errors);
    const code = this.isLive ? closeCodeOf(errors) : undefined;
    if (code === undefined) this.#end(this.client.formatErrors(errors, this.origin));
    else this.client.closeSocket(code, errors[0]?.message ?? '');
  }

  protected waitForClient(): Promise<void> | undefined {
    return this.client.queue.waitForDrain();
  }

  protected onRelease(): void {
    this.#session.forgetOperation(this);
  }

  /**
   * Sends the last message in a microtask, so that the id stays in use for all messages that arrived in the
   * same packet.
   */
  #end(errors: readonly GraphQLFormattedError[] | undefined): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    queueMicrotask(() => {
      if (this.isLive) this.#session.endOperation(this, errors);
    });
  }
}

/** A message to the client. */
export interface ServerMessage {
  readonly type: string;
  readonly id?: unknown;
  readonly payload?: unknown;
}

/** The payload of the message that starts an operation, after its types were checked. */
interface OperationPayload {
  readonly query: string;
  readonly operationName?: string | null | undefined;
  readonly variables?: Readonly<Record<string, unknown>> | null | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | null | undefined;
}

/** The settings of messages. */
interface MessageSettings {
  /** The limit of values in the variables of one operation. */
  readonly maxVariables: number;
  /** Whether operations may name their documents by id. */
  readonly acceptsIds: boolean;
}

/** Values of a message that are not variables. */
const MAX_OTHER_VALUES = 1000;

/**
 * Parses a message; undefined for text that is not JSON, or that contains more values than any operation may.
 */
function parseMessage(text: string, { maxVariables, acceptsIds }: MessageSettings): unknown {
  try {
    assertJsonTextWithinLimits(text, maxVariables + MAX_OTHER_VALUES);
    const message: unknown = JSON.parse(text);
    return acceptsIds ? withQuery(message) : message;
  } catch {
    return undefined;
  }
}

/** Adds an empty `query` to a message that starts an operation by the id of its document. */
function withQuery(message: unknown): unknown {
  if (!isObject(message) || (message['type'] !== 'subscribe' && message['type'] !== 'start')) return message;
  const { payload } = message;
  if (!isObject(payload) || (payload['query'] ?? undefined) !== undefined) return message;
  return { ...message, payload: { ...payload, query: '' } };
}

/**
 * Returns the parameters of an operation, or the client's mistake. They stay in memory until the operation ends, so
 * they have no `extensions`.
 */
function paramsOf(
  payload: OperationPayload,
  { acceptsIds }: Pick<MessageSettings, 'acceptsIds'>,
): GraphQLParams | HttpError {
  const { query, operationName, variables, extensions } = payload;
  const members: object = payload;
  try {
    const member = (name: string): unknown =>
      Object.hasOwn(members, name) ? (members as Record<string, unknown>)[name] : undefined;
    return {
      query,
      document: acceptsIds ? readReference(member, isObject(extensions) ? extensions : undefined) : undefined,
      operationName: operationName ?? undefined,
      variables: variables ?? undefined,
      extensions: undefined,
    };
  } catch (error) {
    if (error instanceof HttpError) return error;
    throw error;
  }
}

function isOperationPayload(value: unknown): value is OperationPayload {
  if (!isObject(value)) return false;
  const { query, variables, operationName } = value;
  return (
    typeof query === 'string' &&
    (variables === undefined || variables === null || isObject(variables)) &&
    (operationName === undefined || operationName === null || typeof operationName === 'string')
  );
}

/**
 * The only imports from the graphql-ws package: the message types and close codes of the protocol, and the
 * check of a message (`validateMessage`). The build copies these parts into dist/. Its server (`makeServer`) is
 * not used: it supports one of our two subprotocols, parses each message again, keeps each message until its
 * operation ends, and sends every result through several promises; session.ts replaces it. The reasons of close
 * frames equal those of graphql-ws, since clients log them.
 */

/** A valid message of a client. */
type ClientMessage = CompleteMessage | ConnectionInitMessage | PingMessage | PongMessage | SubscribeMessage;

/** Returns the value as a client message, or undefined if the protocol does not allow clients to send it. */
function toClientMessage(value: unknown): ClientMessage | undefined {
  try {
    const message = validateMessage(value);
    switch (message.type) {
      case MessageType.ConnectionAck:
      case MessageType.Next:
      case MessageType.Error:
        return undefined;
      default:
        return message;
    }
  } catch {
    return undefined;
  }
}

/** A close code with the reason that graphql-ws sends. */
interface Closure {
  readonly code: number;
  readonly reason: string;
}

const INVALID_MESSAGE: Closure = { code: CloseCode.BadRequest, reason: 'Invalid message received' };
const UNAUTHORIZED: Closure = { code: CloseCode.Unauthorized, reason: 'Unauthorized' };
export const FORBIDDEN: Closure = { code: CloseCode.Forbidden, reason: 'Forbidden' };
const INTERNAL_ERROR: Closure = {
  code: CloseCode.InternalServerError,
  reason: 'Internal server error',
};
export const UNKNOWN_SUBPROTOCOL: Closure = {
  code: CloseCode.SubprotocolNotAcceptable,
  reason: 'Subprotocol not acceptable',
};
export const INIT_TIMEOUT: Closure = {
  code: CloseCode.ConnectionInitialisationTimeout,
  reason: 'Connection initialisation timeout',
};
const SECOND_INIT: Closure = {
  code: CloseCode.TooManyInitialisationRequests,
  reason: 'Too many initialisation requests',
};
/** graphql-ws has no limit of operations. Its clients do not reconnect after this code. */
const TOO_MANY_OPERATIONS: Closure = {
  code: CloseCode.TooManyInitialisationRequests,
  reason: 'Too many operations',
};
const duplicateId = (id: string): Closure => ({
  code: CloseCode.SubscriberAlreadyExists,
  reason: `Subscriber for ${id} already exists`,
});
