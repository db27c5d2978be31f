import type { GraphQLFormattedError } from 'graphql';
import type * as GraphQLWs from 'graphql-ws';
import type { CloseCode } from 'graphql-ws';
import type { SubscriptionProtocol } from '../../types/subscriptions.ts';
import { missingQuery, readReference } from '../core/document-id.ts';
import { debug, readError } from '../diagnostics/logging.ts';
import type { packages } from '../diagnostics/packages.ts';
import { isTimeout } from '../execution/deadline.ts';
import { isGraphQLError } from '../execution/graphql-error.ts';
import type { GraphQLParams } from '../execution/types.ts';
import { assertJsonTextWithinLimits } from '../http/body.ts';
import { HttpError } from '../http/reply.ts';
import { isObject } from '../options/values.ts';
import type { Connection } from './connection.ts';
import { estimateMemory } from './operation.ts';

/**
 * The package graphql-ws, whose `validateMessage` checks the messages of graphql-transport-ws. Its server (`makeServer`)
 * is not used: it supports one of our two subprotocols, parses each message again, keeps each message until its
 * operation ends, and sends every result through several promises; `Session` replaces it.
 */
export type GraphQLWsProtocol = ReturnType<typeof packages.graphqlWs>;

/** A close code with its reason. The reasons equal those of graphql-ws, since clients log them. */
interface Closure {
  readonly code: CloseCode | 1013;
  readonly reason: string;
}

/** The most UTF-16 code units of an operation's id. */
const MAX_ID_LENGTH = 256;

const INVALID_MESSAGE: Closure = { code: 4400, reason: 'Invalid message received' };
const UNAUTHORIZED: Closure = { code: 4401, reason: 'Unauthorized' };
export const FORBIDDEN: Closure = { code: 4403, reason: 'Forbidden' };
const INTERNAL_ERROR: Closure = { code: 4500, reason: 'Internal server error' };
export const UNKNOWN_SUBPROTOCOL: Closure = { code: 4406, reason: 'Subprotocol not acceptable' };
export const INIT_TIMEOUT: Closure = { code: 4408, reason: 'Connection initialisation timeout' };
/** Clients of graphql-ws close with this code themselves, and reconnect after it. */
const ACCEPT_TIMEOUT: Closure = { code: 4504, reason: 'Connection acknowledgement timeout' };
const SECOND_INIT: Closure = { code: 4429, reason: 'Too many initialisation requests' };
/** Clients of graphql-ws connect again later, and would give up after 4429. */
const TOO_MANY_CONNECTIONS: Closure = { code: 1013, reason: 'Too many connections' };
/** graphql-ws has no limit of operations. Its clients do not reconnect after this code. */
export const TOO_MANY_OPERATIONS: Closure = { code: 4429, reason: 'Too many operations' };
const duplicateId = (id: string): Closure => ({ code: 4409, reason: `Subscriber for ${id} already exists` });

/** The payload of `connection_ack`, if any, or `false` to refuse the connection. */
export type Acceptance = Readonly<Record<string, unknown>> | undefined | false;

export function createSession(protocol: SubscriptionProtocol, connection: Connection): Session {
  return protocol === 'graphql-ws'
    ? new SubscriptionsTransportWsSession(connection)
    : new GraphQLTransportWsSession(connection);
}

/**
 * `opened` until `connection_init` arrives, `initialising` while `onConnect` runs, `acknowledged` while
 * operations may run, `closed` as soon as the connection begins to close the socket.
 */
type SessionState = 'opened' | 'initialising' | 'acknowledged' | 'closed';

/** The protocol state of one connection. A subclass per subprotocol translates the messages. */
export abstract class Session {
  abstract readonly name: SubscriptionProtocol;
  /** The type of the messages that carry results. */
  abstract readonly resultType: 'next' | 'data';
  protected readonly connection: Connection;
  protected state: SessionState = 'opened';

  constructor(connection: Connection) {
    this.connection = connection;
  }

  receive(text: string): void {
    if (this.state === 'closed') return;
    this.handle(parseMessage(text, this.connection.services.messages));
  }

  /** Handles a message; `undefined` stands for text that is not acceptable JSON. */
  protected abstract handle(message: unknown): void;
  abstract errorPayload(errors: readonly GraphQLFormattedError[]): unknown;
  /** Called after the acknowledgement was sent. */
  protected abstract onAcknowledged(): void;
  /** Closes a connection that was not accepted. */
  abstract refuse(closure: Closure): void;

  /** Called when the connection closes its socket, or the socket has closed. */
  close(): void {
    this.state = 'closed';
  }

  /** opened, then initialising, then acknowledged. */
  protected initialise(connectionParams: Readonly<Record<string, unknown>>): void {
    this.state = 'initialising';
    this.connection
      .accept(connectionParams)
      .then((acceptance) => this.#onAccepted(acceptance))
      .catch((error) => this.refuseFor(error));
  }

  protected closeSocket({ code, reason }: Closure): void {
    this.connection.closeSocket(code, reason);
  }

  #onAccepted(acceptance: Acceptance): void {
    if (this.state === 'closed') return;
    if (acceptance === false) {
      this.refuse(FORBIDDEN);
      return;
    }
    this.connection.write(
      acceptance === undefined ? { type: 'connection_ack' } : { type: 'connection_ack', payload: acceptance },
    );
    this.state = 'acknowledged';
    this.onAcknowledged();
  }

  /** Refuses the connection. The client sees the message of a GraphQLError; any other error is hidden. */
  refuseFor(error: unknown): void {
    if (isTimeout(error)) {
      this.refuse(ACCEPT_TIMEOUT);
      return;
    }
    if (HttpError.is(error) && error.status === 429) {
      this.refuse(TOO_MANY_CONNECTIONS);
      return;
    }
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
    const { MessageType, validateMessage } = this.connection.services.protocol;
    const message = validMessage(value, validateMessage);
    switch (message?.type) {
      case MessageType.ConnectionInit:
        if (this.state !== 'opened') this.closeSocket(SECOND_INIT);
        else this.initialise(message.payload ?? {});
        break;
      case MessageType.Ping:
        this.connection.write(
          message.payload ? { type: 'pong', payload: message.payload } : { type: 'pong' },
        );
        break;
      case MessageType.Pong:
        break;
      case MessageType.Subscribe:
        this.#subscribe(message.id, message.payload);
        break;
      case MessageType.Complete:
        this.connection.cancel(JSON.stringify(message.id));
        break;
      default:
        this.closeSocket(INVALID_MESSAGE);
    }
  }

  errorPayload(errors: readonly GraphQLFormattedError[]): unknown {
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
    if (id.length > MAX_ID_LENGTH) this.closeSocket(INVALID_MESSAGE);
    else if (this.state !== 'acknowledged') this.closeSocket(UNAUTHORIZED);
    else if (this.connection.hasOperation(key)) this.closeSocket(duplicateId(id));
    else this.connection.begin(key, payload);
  }
}

/** Returns the value as a message, or undefined if the protocol has no such message. */
function validMessage(
  value: unknown,
  validate: typeof GraphQLWs.validateMessage,
): GraphQLWs.Message | undefined {
  try {
    return validate(value);
  } catch {
    return undefined;
  }
}

/** The close code of subscriptions-transport-ws for a connection that was not accepted. */
const REFUSED = 1011;

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

  /** Returns the first error only: clients expect one object, and Apollo Kotlin casts the payload to a map. */
  errorPayload(errors: readonly GraphQLFormattedError[]): unknown {
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
    if (code === INIT_TIMEOUT.code) {
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
    if (key === undefined || String(id).length > MAX_ID_LENGTH) return;
    if (!isOperationPayload(payload)) {
      this.connection.refuseOperation(key, 'The payload of "start" is malformed');
      return;
    }
    // A client that reconnects uses its ids again, so the newer operation replaces the older one.
    this.connection.cancel(key);
    this.connection.begin(key, payload);
  }

  /** Queues an early `start`. The queue is bounded, because the client is not authenticated yet. */
  #startLater(message: StartMessage): void {
    const { operations, bufferedBytes } = this.connection.services.settings.limits;
    this.#earlyStarts ??= [];
    this.#earlyBytes += estimateMemory(message);
    if (this.#earlyStarts.length < operations && this.#earlyBytes <= bufferedBytes) {
      this.#earlyStarts.push(message);
    } else this.closeSocket(TOO_MANY_OPERATIONS);
  }

  #stop(id: unknown): void {
    this.#earlyStarts = this.#earlyStarts?.filter((message) => message['id'] !== id);
    const key = keyOf(id);
    if (key !== undefined) this.connection.cancel(key);
  }
}

/** Formats an id as JSON, which keeps its type for messages to the client. */
const keyOf = (id: unknown): string | undefined =>
  (typeof id === 'string' && id !== '') || Number.isFinite(id) ? JSON.stringify(id) : undefined;

export interface ServerMessage {
  readonly type: string;
  readonly id?: unknown;
  readonly payload?: unknown;
}

/** The payload of the message that starts an operation, after its types were checked. */
export interface OperationPayload {
  readonly query: string;
  readonly operationName?: string | null | undefined;
  readonly variables?: Readonly<Record<string, unknown>> | null | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | null | undefined;
}

export interface MessageSettings {
  /** The limit of values in the variables of one operation. */
  readonly maxVariables: number;
  /** Whether operations may name their documents by id. */
  readonly acceptsIds: boolean;
}

/** Values of a message that are not variables. */
const MAX_OTHER_VALUES = 1000;

/** Parses a message; undefined for text that is not JSON, or that contains more values than any operation may. */
function parseMessage(text: string, { maxVariables, acceptsIds }: MessageSettings): unknown {
  try {
    assertJsonTextWithinLimits(text, maxVariables + MAX_OTHER_VALUES);
    return withQuery(JSON.parse(text), acceptsIds);
  } catch {
    return undefined;
  }
}

/** Adds an empty `query` to a message that starts an operation by the id or the hash of its document. */
function withQuery(message: unknown, acceptsIds: boolean): unknown {
  if (!isObject(message) || (message['type'] !== 'subscribe' && message['type'] !== 'start')) return message;
  const { payload } = message;
  if (!isObject(payload) || (payload['query'] ?? undefined) !== undefined) return message;
  if (!acceptsIds && !hasHash(payload['extensions'])) return message;
  return { ...message, payload: { ...payload, query: '' } };
}

/** Whether a client of Apollo's protocol tries a hash. Without the option, the answer tells it to send the text. */
const hasHash = (extensions: unknown): boolean =>
  isObject(extensions) && extensions['persistedQuery'] !== undefined;

/**
 * Returns the parameters of an operation, or the client's mistake. They stay in memory until the operation ends, so
 * they have no `extensions`.
 */
export function paramsOf(
  payload: OperationPayload,
  { acceptsIds }: Pick<MessageSettings, 'acceptsIds'>,
): GraphQLParams | HttpError {
  const { query, operationName, variables, extensions } = payload;
  const members: object = payload;
  try {
    const member = (name: string): unknown =>
      Object.hasOwn(members, name) ? (members as Record<string, unknown>)[name] : undefined;
    const document = acceptsIds
      ? readReference(member, isObject(extensions) ? extensions : undefined)
      : undefined;
    if (query === '' && document === undefined) {
      if (acceptsIds || !hasHash(extensions)) return missingQuery();
      return new HttpError(200, 'PersistedQueryNotSupported', { code: 'PERSISTED_QUERY_NOT_SUPPORTED' });
    }
    return {
      query,
      document,
      // Empty is absent, as over HTTP.
      operationName: operationName || undefined,
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
  const { query, variables, operationName, extensions } = value;
  return (
    typeof query === 'string' &&
    (variables === undefined || variables === null || isObject(variables)) &&
    (extensions === undefined || extensions === null || isObject(extensions)) &&
    (operationName === undefined || operationName === null || typeof operationName === 'string')
  );
}
