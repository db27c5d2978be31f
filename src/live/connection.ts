import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { types } from 'node:util';
import type { GraphQLError, GraphQLFormattedError, GraphQLSchema } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type {
  ConnectingSubscription,
  ConnectResult,
  SharedOperation,
  SubscriptionConnection,
  SubscriptionProtocol,
  WebSocketLike,
} from '../../types/subscriptions.ts';
import type { ContextFactory } from '../core/core.ts';
import type { OnOperation } from '../core/options.ts';
import { debug } from '../diagnostics/logging.ts';
import { type ErrorOrigin, type ExecutionOutcome, isThenable } from '../execution/types.ts';
import { wrongReturnValue } from '../options/rules.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import type { EndpointSettings, LiveConnection } from './endpoint.ts';
import type { FrameScheduler, SendPrivateResult } from './frames.ts';
import {
  type ClientOperation,
  type FlushMode,
  formatErrorsSafely,
  type OperationServices,
  startOperation,
} from './operation.ts';
import {
  type Acceptance,
  createSession,
  type ServerMessage,
  type Session,
  type SessionConnection,
  type SessionLimits,
  type SocketOperation,
} from './protocols.ts';
import { isOpen, SendQueue } from './queue.ts';
import {
  ConnectionDeadlines,
  type DeadlineSettings,
  type IntervalTimer,
  type TimedConnection,
} from './timers.ts';

/** One WebSocket connection. A class, so that methods take no memory per connection. */
export class Connection implements SessionConnection, TimedConnection, LiveConnection {
  readonly websocket: WebSocketLike;
  readonly queue: SendQueue;
  readonly session: Session;
  readonly deadlines: ConnectionDeadlines;
  queuedOperations: ClientOperation[] | undefined;
  /** A copy of the session's closed state, so that sending an event does not have to read the session. */
  isClosing = false;
  isAccepted = false;
  pendingChecks: (() => void)[] | undefined;
  readonly #context: ConnectionContext;
  readonly #services: ConnectionServices;
  /** The upgrade request, until the connection is accepted. */
  #request: IncomingMessage | undefined;
  #schema: GraphQLSchema | undefined;

  constructor(services: ConnectionServices, { websocket, request, socket, protocol }: OpenedWebSocket) {
    this.#services = services;
    this.#request = request;
    this.websocket = websocket;
    websocket.request = request;
    this.#context = new ConnectionContext(services.context, websocket);
    if (services.context.exposesRequest) exposeRequest(websocket, request);
    this.queue = new SendQueue(websocket, socket, services.scheduler);
    this.session = createSession(protocol, this);
    this.deadlines = new ConnectionDeadlines(this, socket, services.timer, services.settings);
  }

  get limits(): SessionLimits {
    return this.#services.limits;
  }
  get operationCount(): number {
    return this.session.operationCount;
  }
  /** Set before the connection is acknowledged. */
  get schema(): GraphQLSchema {
    return this.#schema as GraphQLSchema;
  }
  get rootValue(): unknown {
    return this.#services.core.rootValueFor(this.websocket);
  }
  get source(): WebSocketLike {
    return this.websocket;
  }
  get hasContextPerEvent(): boolean {
    return this.#services.context.perEvent;
  }
  get origin(): ErrorOrigin {
    const request = this.#request;
    return { transport: 'websocket', operationName: undefined, request, socket: this.websocket };
  }

  describe(): SubscriptionConnection {
    const { params: connectionParams, value: context } = this.#context;
    return { connectionParams, context, protocol: this.session.name, websocket: this.websocket };
  }

  async accept(connectionParams: Readonly<Record<string, unknown>>): Promise<Acceptance> {
    const { core, settings, context } = this.#services;
    this.deadlines.onInit();
    this.pendingChecks = [];
    this.#schema = await core.schemaFor(this.#request);
    await this.#context.create(connectionParams);
    const request = this.#request;
    if (request === undefined || this.isClosing) return false;
    const returned = await this.#context.connect(() => settings.onConnect?.({ ...this.describe(), request }));
    const { acceptance, expiresAt } = decisionOf(returned);
    if (!context.perOperation) this.#releaseRequest();
    if (expiresAt !== undefined) this.deadlines.expireAt(expiresAt);
    if (acceptance !== false) this.#onAccepted();
    return acceptance;
  }

  /** May close the connection. */
  #onAccepted(): void {
    const checks = this.pendingChecks;
    this.isAccepted = true;
    this.pendingChecks = undefined;
    for (const check of checks ?? []) check();
  }

  contextFor(operation: SharedOperation): MaybePromise<unknown> {
    return this.#context.forOperation(operation);
  }

  startOperation(operation: SocketOperation): void {
    startOperation(operation, this.#services);
  }

  startKeepAlive(): void {
    this.deadlines.startKeepAlive();
  }

  checkDeadlines(now: number): void {
    this.deadlines.check(now);
  }

  sendKeepAlive(): void {
    this.write({ type: 'ka' });
  }

  write(message: ServerMessage): void {
    this.#push(undefined, Buffer.from(JSON.stringify(message)), 'soon');
  }

  sendResult(operation: SocketOperation, body: Buffer, mode: FlushMode): void {
    this.#push(operation, body, mode);
  }

  sendPrivateResult(operation: SocketOperation, outcome: ExecutionOutcome): void {
    this.#services.sendPrivateResult(operation, outcome);
  }

  formatErrors(errors: readonly GraphQLError[], origin: ErrorOrigin): readonly GraphQLFormattedError[] {
    return formatErrorsSafely(this.#services.core, errors, origin);
  }

  reportError(error: unknown): void {
    this.#services.core.reportError(error, this.origin);
  }

  /** Closes the socket after the queued messages. Operations end immediately. */
  closeSocket(code: number, reason: string): void {
    if (this.isClosing) return;
    this.session.sendPositions();
    this.deadlines.onClosing();
    this.#close(code, reason);
  }

  /** Closes a slow client whose queue is full, with code 1013: clients try again later. */
  closeSlowClient(): void {
    if (this.isClosing) return;
    this.queue.discard();
    this.deadlines.onClosingSlowClient();
    this.#close(1013, 'Too slow a reader');
  }

  onClosed(): void {
    this.isClosing = true;
    this.queue.discard();
    this.session.close();
    this.#releaseRequest();
    this.#services.onClosed(this);
  }

  #close(code: number, reason: string): void {
    debug.subscriptions('closed with %d %j', code, reason);
    this.isClosing = true;
    this.session.close();
    this.queue.flushAll();
    if (isOpen(this.websocket)) this.websocket.close(code, cutReason(reason));
  }

  #push(operation: SocketOperation | undefined, body: Buffer, mode: FlushMode): void {
    if (this.isClosing) return;
    const { queue } = this;
    const { maxBufferedBytes } = this.#services.limits;
    if (queue.exceeds(maxBufferedBytes)) {
      queue.flush();
      if (operation?.droppable === true) queue.dropOldest(maxBufferedBytes);
      else if (operation?.appliesBackpressure !== true && queue.exceeds(maxBufferedBytes)) {
        this.closeSlowClient();
        return;
      }
    }
    queue.push(operation, body, mode);
  }

  /** Releases the upgrade request, which would be most of the memory of an idle connection. */
  #releaseRequest(): void {
    this.#request = undefined;
    this.websocket.request = undefined;
  }
}

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

/** The options of a connection, however it was opened. */
export interface ConnectionSettings extends EndpointSettings, DeadlineSettings {
  readonly context: unknown;
  readonly contextPer: 'operation' | 'event' | 'connection';
  readonly subscriptionProtocols: readonly SubscriptionProtocol[];
  readonly onOperation: OnOperation | undefined;
  readonly onConnect: ((connection: ConnectingSubscription) => MaybePromise<ConnectResult>) | undefined;
}

/** The decision of `onConnect`. */
interface ConnectDecision {
  readonly acceptance: Acceptance;
  /** Milliseconds since 1970 after which the connection is closed. */
  readonly expiresAt: number | undefined;
}

/** @throws TypeError (code `ERR_OPTION`) if `expiresAt` is not a valid time. */
function decisionOf(returned: ConnectResult): ConnectDecision {
  if (typeof returned !== 'object' || returned === null) {
    return { acceptance: returned === false ? false : undefined, expiresAt: undefined };
  }
  const { expiresAt: time, ...payload } = returned;
  const expiresAt = time === undefined ? undefined : toMilliseconds(time);
  // Refuses a connection that has expired already: it could run operations until the next check.
  if (expiresAt !== undefined && expiresAt <= Date.now()) return { acceptance: false, expiresAt };
  return { acceptance: Object.keys(payload).length === 0 ? undefined : payload, expiresAt };
}

/** Smaller numbers are seconds, as in a JWT's `exp`. */
const MAX_SECONDS = 1e11;

function toMilliseconds(time: Date | number): number {
  const value = typeof time === 'number' || types.isDate(time) ? Number(time) : Number.NaN;
  if (Number.isNaN(value)) {
    const accepted = 'a Date or a number as expiresAt';
    throw wrongReturnValue(SUBSCRIPTION_OPTIONS, 'onConnect', { expiresAt: time }, accepted);
  }
  return value < MAX_SECONDS ? value * 1000 : value;
}

type Params = Readonly<Record<string, unknown>>;
type Members = Record<PropertyKey, PropertyDescriptor>;

/** The settings for the contexts of an endpoint. */
export interface ContextPolicy {
  readonly create: ContextFactory;
  /** Whether `context` is a function. */
  readonly isFunction: boolean;
  /** Whether functions read the WebSocket, which then gets the members of its upgrade request. */
  readonly exposesRequest: boolean;
  /** Whether each operation gets its own context. */
  readonly perOperation: boolean;
  /** Whether each event of a subscription gets its own context. */
  readonly perEvent: boolean;
}

const NO_MEMBERS: Members = {};

/** The context of one connection, and the contexts of its operations. */
class ConnectionContext {
  readonly #policy: ContextPolicy;
  readonly #websocket: WebSocketLike;
  #params: Params = {};
  #value: unknown;
  /** The members that `onConnect` added to the context of the connection. */
  #added: Members = NO_MEMBERS;

  constructor(policy: ContextPolicy, websocket: WebSocketLike) {
    this.#policy = policy;
    this.#websocket = websocket;
  }

  get params(): Params {
    return this.#params;
  }
  /** The context of the connection. */
  get value(): unknown {
    return this.#value;
  }

  async create(params: Params): Promise<void> {
    this.#params = params;
    this.#value = withParams(await this.#policy.create(this.#websocket, undefined, params), params);
  }

  /** Runs the hook. Members that it adds to the context become part of the context of each operation. */
  async connect<T>(hook: () => MaybePromise<T>): Promise<T> {
    if (!this.#policy.perOperation) return hook();
    const before = membersOf(this.#value);
    const returned = await hook();
    this.#added = addedMembers(before, membersOf(this.#value));
    return returned;
  }

  forOperation(operation: SharedOperation): MaybePromise<unknown> {
    const { create, perOperation } = this.#policy;
    if (!perOperation) return this.#value;
    const given = create(this.#websocket, operation, this.#params);
    return isThenable(given) ? given.then((value) => this.#complete(value)) : this.#complete(given);
  }

  #complete(given: unknown): unknown {
    const context = withParams(given, this.#params);
    if (this.#added !== NO_MEMBERS && isRecord(context)) Object.defineProperties(context, this.#added);
    return context;
  }
}

/**
 * Copies a context and adds the client's parameters, so that one client's parameters never reach another
 * through a shared value. The copy keeps the prototype; a value without members (an array, a Map, a string)
 * is returned unchanged. The parameters become single members and are never merged, so that a client cannot
 * choose the names of other members.
 */
function withParams(given: unknown, params: Params): unknown {
  if (given !== undefined && given !== null && !isRecord(given)) return given;
  const source: object = given ?? {};
  const context = Object.create(Object.getPrototypeOf(source), Object.getOwnPropertyDescriptors(source));
  for (const name of ['connection_params', 'connectionParams']) {
    Object.defineProperty(context, name, {
      value: params,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  return context;
}

const membersOf = (context: unknown): Members =>
  isRecord(context) ? Object.getOwnPropertyDescriptors(context) : {};

/** Returns the members that were added or changed. */
function addedMembers(before: Members, after: Members): Members {
  const names = Reflect.ownKeys(after).filter((name) => after[name]?.value !== before[name]?.value);
  if (names.length === 0) return NO_MEMBERS;
  return Object.fromEntries(names.map((name) => [name, after[name]])) as Members;
}

const isRecord = (value: unknown): value is object =>
  Object.prototype.toString.call(value) === '[object Object]';

/** A new WebSocket with its request. */
interface OpenedWebSocket {
  readonly websocket: WebSocketLike;
  readonly request: IncomingMessage;
  /** The underlying socket, if we may write frames to it. */
  readonly socket: Duplex | undefined;
  readonly protocol: SubscriptionProtocol;
}

/** The members that every request has, and internal members of Express. */
const OWN_MEMBERS: ReadonlySet<string> = new Set([
  ...Object.keys(new IncomingMessage(new Socket())),
  'res',
  'next',
]);

/**
 * Gives the WebSocket the members of the upgrade request that context functions read: `headers`, `url`,
 * `socket`, `state`, and the members that middleware has added. Does not change members of the WebSocket
 * itself.
 */
function exposeRequest(websocket: WebSocketLike, request: IncomingMessage & { state?: unknown }): void {
  const { headers, url, socket } = request;
  request.state ??= {};
  define(websocket, 'headers', headers);
  define(websocket, 'url', url);
  define(websocket, 'socket', socket);
  for (const name of Object.keys(request)) {
    if (OWN_MEMBERS.has(name) || name in websocket) continue;
    define(websocket, name, request[name as keyof IncomingMessage]);
  }
}

function define(websocket: WebSocketLike, name: string, value: unknown): void {
  Object.defineProperty(websocket, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Bytes of the reason in a close frame (RFC 6455 §5.5). */
const MAX_REASON = 123;

/** Shortens a reason to the bytes that a close frame can contain, without splitting a character. */
function cutReason(reason: string): string {
  const bytes = Buffer.from(reason);
  if (bytes.length <= MAX_REASON) return reason;
  let end = MAX_REASON;
  while (((bytes[end] as number) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
