import { AsyncLocalStorage } from 'node:async_hooks';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { GraphQLError, GraphQLFormattedError, GraphQLSchema } from 'graphql';
import type { Caller } from '../../types/caller.ts';
import type { MaybePromise } from '../../types/connect.ts';
import type {
  ConnectingSubscription,
  ConnectResult,
  SharedOperation,
  SubscriptionConnection,
  SubscriptionEnd,
  SubscriptionProtocol,
  WebSocketLike,
} from '../../types/subscriptions.ts';
import { toMilliseconds } from '../core/admission.ts';
import type { ContextFactory } from '../core/core.ts';
import type { ClientPlaces } from '../core/extension.ts';
import { events } from '../diagnostics/events.ts';
import { debug } from '../diagnostics/logging.ts';
import { inTime } from '../execution/deadline.ts';
import { refusalError } from '../execution/graphql-error.ts';
import { ObservedOperation } from '../execution/observed.ts';
import {
  type ErrorOrigin,
  type GraphQLParams,
  isThenable,
  type PreparedOperation,
  type RequestError,
} from '../execution/types.ts';
import { CLIENT_ABORTED } from '../http/body.ts';
import { HttpError } from '../http/reply.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import { isObject, settle } from '../options/values.ts';
import { type CursorRequest, cursorRequest } from './cursors.ts';
import { type EndpointSettings, type LiveConnection, OPERATION_BYTES } from './endpoint.ts';
import { isOpen, SocketQueue } from './frames.ts';
import {
  closeCodeOf,
  estimateMemory,
  LiveOperation,
  type OperationServices,
  runOperation,
} from './operation.ts';
import {
  type Acceptance,
  createSession,
  FORBIDDEN,
  type GraphQLWsProtocol,
  INIT_TIMEOUT,
  type MessageSettings,
  type OperationPayload,
  paramsOf,
  type ServerMessage,
  type Session,
  TOO_MANY_OPERATIONS,
} from './protocols.ts';
import { type Envelope, type FlushMode, type FlushScheduler, NO_ENVELOPE } from './queue.ts';
import type { EventContext } from './source.ts';
import { Deadlines, type IntervalTimer, NEVER } from './timers.ts';

// Taken when the module is loaded: fake timers of a test must not delay requests.
const { queueMicrotask } = globalThis;

/** The options of a connection, however it was opened. */
export interface ConnectionSettings extends EndpointSettings {
  readonly context: unknown;
  readonly onConnect: ((connection: ConnectingSubscription) => MaybePromise<ConnectResult>) | undefined;
  readonly onClose: ((connection: SubscriptionConnection, end: SubscriptionEnd) => unknown) | undefined;
  readonly limits: EndpointSettings['limits'] & { readonly initTimeout: number };
}

/** The services that the connections of one endpoint share. */
export interface ConnectionServices extends OperationServices {
  readonly settings: ConnectionSettings;
  readonly messages: MessageSettings;
  readonly protocol: GraphQLWsProtocol;
  readonly scheduler: FlushScheduler;
  readonly timer: IntervalTimer;
  readonly context: ContextPolicy;
  onClosed(connection: LiveConnection): void;
}

/** A new WebSocket with its request. */
interface OpenedWebSocket {
  readonly websocket: WebSocketLike;
  readonly request: IncomingMessage;
  /** The underlying socket, if we may write frames to it. */
  readonly socket: Duplex | undefined;
  readonly protocol: SubscriptionProtocol;
  /** Whether code of the application has run on the request: it may have opened an AsyncLocalStorage. */
  readonly hasContext: boolean;
  /** Whether we compress messages if the client has agreed; foreign servers compress them themselves. */
  readonly deflates: boolean;
}

/** One WebSocket connection. A class, so that methods take no memory per connection. */
export class Connection implements LiveConnection {
  readonly websocket: WebSocketLike;
  readonly queue: SocketQueue;
  readonly services: ConnectionServices;
  readonly session: Session;
  /** Resolves when the operations before the next one have started; undefined when all have. */
  starting: Promise<unknown> | undefined;
  /** A copy of the session's closed state, so that sending an event does not have to read the session. */
  isClosing = false;
  isAccepted = false;
  /** Whether the application is deciding about the connection. */
  #isDeciding = false;
  pendingChecks: (() => void)[] | undefined;
  readonly #context: ConnectionContext;
  readonly #socket: Duplex | undefined;
  readonly #deadlines: Deadlines;
  #initBy: number;
  #keepAliveAt = NEVER;
  /** The time in milliseconds since 1970 at which the connection is closed. */
  #expiresAt = NEVER;
  /** Bytes received and drains at the last ping; -1 before the first. */
  #activity = -1;
  /** The upgrade request, until the connection is accepted. */
  #request: IncomingMessage | undefined;
  #schema: GraphQLSchema | undefined;
  #caller: Caller | null | undefined;
  /** Undefined if clients have no limits. */
  #place: ClientPlaces | undefined;
  /** Runs a function in the asynchronous context of the upgrade request; undefined if it has none. */
  readonly #inContext: (<T>(run: () => T) => T) | undefined;
  /** The close code and reason of a closed socket. */
  #closed: { readonly code: number; readonly reason: string } | undefined;
  /** The operations by the client's id as JSON, which distinguishes numbers from strings. */
  #operations: Map<string, SocketOperation> | undefined;
  /** The estimated memory of `#operations`. */
  #operationBytes = 0;
  /** The number of consecutively refused operations. */
  #refusals = 0;

  constructor(services: ConnectionServices, opened: OpenedWebSocket) {
    const { websocket, request, socket, protocol, hasContext, deflates } = opened;
    const { context, scheduler, timer, settings } = services;
    this.#inContext = hasContext ? AsyncLocalStorage.snapshot() : undefined;
    this.services = services;
    this.#request = request;
    this.#socket = socket;
    this.websocket = websocket;
    websocket.request = request;
    this.#context = new ConnectionContext(context, websocket);
    if (context.exposesRequest) exposeRequest(websocket, request);
    this.queue = new SocketQueue(websocket, socket, scheduler, deflates);
    this.session = createSession(protocol, this);
    this.#deadlines = new Deadlines(timer, settings.ping);
    this.#initBy = timer.now() + settings.limits.initTimeout;
  }

  get operations(): Iterable<SocketOperation> {
    return this.#operations?.values() ?? [];
  }
  get operationCount(): number {
    return this.#operations?.size ?? 0;
  }
  /** Set before the connection is acknowledged. */
  get schema(): GraphQLSchema {
    return this.services.core.currentSchema ?? (this.#schema as GraphQLSchema);
  }
  get origin(): ErrorOrigin {
    const request = this.#request;
    return { transport: 'websocket', operationName: undefined, request, socket: this.websocket };
  }

  get connectionParams(): Readonly<Record<string, unknown>> {
    return this.#context.params;
  }

  describe(): SubscriptionConnection {
    const { params: connectionParams, value: context } = this.#context;
    return { connectionParams, context, protocol: this.session.name, websocket: this.websocket };
  }

  receive(text: string): void {
    if (this.#inContext === undefined) this.session.receive(text);
    else this.#inContext(() => this.session.receive(text));
  }

  /**
   * Asks the application whether to accept the connection. Its functions continue after the time has elapsed, so that
   * `onClose` follows each `onConnect`.
   */
  async accept(connectionParams: Readonly<Record<string, unknown>>): Promise<Acceptance> {
    const isGone = (): boolean => this.isClosing;
    const origin: ErrorOrigin = {
      ...this.origin,
      get aborted() {
        return isGone();
      },
    };
    const subject = 'acceptance of a connection';
    this.#isDeciding = true;
    const decided = this.#accept(connectionParams).finally(() => {
      this.#isDeciding = false;
      this.#callOnClose();
    });
    return inTime(this.services.core.timeLimit, decided, origin, { subject });
  }

  async #accept(connectionParams: Readonly<Record<string, unknown>>): Promise<Acceptance> {
    const { core, settings, context } = this.services;
    this.#initBy = NEVER;
    this.pendingChecks = [];
    if (core.findCaller !== undefined) {
      this.#caller = await core.findCaller(this.websocket, { transport: 'websocket', connectionParams });
      // An anonymous one that is still counted gets its place later.
      if (this.#caller !== null || this.#place !== undefined) await this.enter();
    }
    const origin = { transport: 'websocket', connectionParams, caller: this.#caller } as const;
    this.#schema = await core.schemaFor(this.#request, origin);
    core.onSocket(this.websocket, connectionParams);
    await this.#context.create(connectionParams, this.#caller);
    const request = this.#request;
    if (request === undefined || this.isClosing) return false;
    const returned = await this.#context.connect(() => settings.onConnect?.({ ...this.describe(), request }));
    const { acceptance, expiresAt } = decisionOf(returned);
    if (!context.perOperation) this.#releaseRequest();
    if (expiresAt !== undefined) this.expireBy(expiresAt);
    if (acceptance !== false) this.#onAccepted();
    return acceptance;
  }

  /** Counts the connection for its client, and takes a place. @throws HttpError 429 if it may not open another one. */
  async enter(): Promise<void> {
    const refusal = await this.services.core.clients?.connect(this.websocket, this.#caller, this.#place);
    if (refusal !== undefined) throw refusal;
    this.hold();
  }

  /**
   * Takes a place among the open connections of the client: first without its caller, and again as soon as it is known.
   *
   * @throws HttpError 429 if there is none.
   */
  hold(): void {
    this.#releasePlace();
    if (this.#closed === undefined)
      this.#place = this.services.core.clients?.hold(this.websocket, this.#caller, 'connections');
  }

  #releasePlace(): void {
    if (this.#place !== undefined) this.services.core.clients?.release(this.#place, 'connections');
    this.#place = undefined;
  }

  /** May close the connection. */
  #onAccepted(): void {
    const checks = this.pendingChecks;
    this.isAccepted = true;
    this.pendingChecks = undefined;
    for (const check of checks ?? []) check();
  }

  /** Closes the connection at a time, in milliseconds since 1970, unless it is closed earlier. */
  expireBy(time: number): void {
    this.#expiresAt = Math.min(this.#expiresAt, time);
  }

  contextFor(operation: SharedOperation, caller: Caller | null | undefined): MaybePromise<unknown> {
    return this.#context.forOperation(operation, caller);
  }

  /** The caller of the WebSocket; undefined without the option `caller`. */
  get caller(): Caller | null | undefined {
    return this.#caller;
  }

  /** Starts an operation, unless the connection has too many. */
  begin(key: string, payload: OperationPayload): void {
    const { settings, messages } = this.services;
    // Without `extensions`, which would stay in memory until the operation ends, except for the cursor.
    const params = paramsOf(payload, messages);
    if (params instanceof HttpError) {
      this.refuseOperation(key, params.message, params.code);
      return;
    }
    const bytes = estimateMemory(params);
    const refusal = this.#refusalOf(bytes);
    if (refusal !== undefined) {
      if (++this.#refusals > settings.limits.operations) {
        this.closeSocket(TOO_MANY_OPERATIONS.code, TOO_MANY_OPERATIONS.reason);
      } else this.refuseOperation(key, refusal);
      return;
    }
    this.#refusals = 0;
    this.#operationBytes += bytes;
    const observed = events.operation.hasSubscribers ? this.#observe(payload.extensions) : undefined;
    const cursor = cursorRequest(payload.extensions);
    const operation = new SocketOperation(this, key, params, { bytes, observed, cursor });
    this.#operations ??= new Map();
    this.#operations.set(key, operation);
    // In a microtask: an operation that the client cancels in the same packet never starts.
    queueMicrotask(() => {
      if (operation.isLive) runOperation(operation);
    });
  }

  /** Lets subscribers of `espalier:graphql:operation` observe an operation. */
  #observe(extensions: unknown): ObservedOperation {
    const { connectionParams, websocket } = this.describe();
    return new ObservedOperation({
      transport: 'websocket',
      socket: websocket,
      connectionParams,
      extensions: isObject(extensions) ? extensions : undefined,
    });
  }

  hasOperation(key: string): boolean {
    return this.#operations?.has(key) === true;
  }

  /** Stops an operation that the client has cancelled. */
  cancel(key: string): void {
    this.#operations?.get(key)?.cancel();
  }

  /** Sends `error` for an id that has no operation. */
  refuseOperation(key: string, message: string, code = 'OPERATION_REFUSED'): void {
    this.#sendError(key, this.formatErrors([refusalError(message, code)], this.origin));
  }

  /** Ends an operation with `complete`, or with `error` if there are errors. */
  endOperation(operation: SocketOperation, errors: readonly GraphQLFormattedError[] | undefined): void {
    // Frees the id before the client receives the message that ends the operation.
    operation.release();
    if (errors !== undefined) this.#sendError(operation.key, errors);
    else this.write({ id: operation.id, type: 'complete' });
  }

  forgetOperation(operation: SocketOperation): void {
    // The id may already belong to a newer operation.
    if (this.#operations?.get(operation.key) !== operation) return;
    this.#operations.delete(operation.key);
    this.#operationBytes -= operation.bytes;
  }

  /** Returns why an operation of this size may not start; undefined if it may. */
  #refusalOf(bytes: number): string | undefined {
    const { operations } = this.services.settings.limits;
    if (this.operationCount >= operations) return 'Too many operations at a time';
    if (this.#operationBytes + bytes <= OPERATION_BYTES) return undefined;
    return 'The documents and variables of the operations in progress are too large together';
  }

  #sendError(key: string, errors: readonly GraphQLFormattedError[]): void {
    this.write({ id: JSON.parse(key), type: 'error', payload: this.session.errorPayload(errors) });
  }

  formatErrors(errors: readonly GraphQLError[], origin: ErrorOrigin): readonly GraphQLFormattedError[] {
    return this.services.core.formatErrors(errors, origin);
  }

  /** Reports an error that closes the connection with code 4500. */
  reportError(error: unknown): void {
    this.services.core.reportError(error, this.origin);
  }

  write(message: ServerMessage): void {
    this.send(undefined, Buffer.from(JSON.stringify(message)), 'soon');
  }

  /** Queues a result of an operation, or a message of the protocol. */
  send(operation: SocketOperation | undefined, body: Buffer, mode: FlushMode): void {
    if (this.isClosing) return;
    if (this.queue.makeRoom(this.services.settings.limits.bufferedBytes, operation)) {
      this.queue.push(operation ?? NO_ENVELOPE, body, mode);
    } else this.closeSlowClient();
  }

  checkDeadlines(now: number): void {
    if (this.isClosing) this.#deadlines.check(now, this);
    else if (now >= this.#initBy) this.session.refuse(INIT_TIMEOUT);
    else if (Date.now() >= this.#expiresAt) this.closeSocket(FORBIDDEN.code, FORBIDDEN.reason);
    else {
      this.#deadlines.check(now, this);
      if (now >= this.#keepAliveAt) this.startKeepAlive();
    }
  }

  /** Sends `ka` now and at intervals: a legacy client that has received one expects the next. */
  startKeepAlive(): void {
    const { settings, timer } = this.services;
    if (settings.ping === 0) return;
    this.write({ type: 'ka' });
    this.#keepAliveAt = timer.now() + settings.ping;
  }

  /**
   * Data received or drained since the last ping also proves that the client is alive: large messages delay
   * its pong.
   */
  ping(): void {
    const activity = hasByteCount(this.#socket) ? this.#socket.bytesRead + this.queue.drains : -1;
    if (activity !== -1 && activity === this.#activity) {
      this.websocket.terminate();
      return;
    }
    this.#activity = activity;
    this.websocket.ping();
    this.#sendPositions();
  }

  terminate(): void {
    this.websocket.terminate();
  }

  /** Closes the socket after the queued messages. Operations end immediately. */
  closeSocket(code: number, reason: string): void {
    if (this.isClosing) return;
    this.#sendPositions();
    this.#deadlines.onClosing();
    this.#close(code, reason);
  }

  /** Closes a slow client whose queue is full, with code 1013: clients try again later. */
  closeSlowClient(): void {
    if (this.isClosing) return;
    this.queue.discard();
    this.#deadlines.onClosing({ isSlow: true });
    this.#close(1013, 'Too slow a reader');
  }

  onClosed(code: number, reason: string): void {
    this.#closed = { code, reason };
    this.queue.discard();
    this.#endOperations();
    this.#callOnClose();
    this.#releaseRequest();
    this.#releasePlace();
    this.services.onClosed(this);
  }

  /** Calls the option once the socket is closed and the application has decided about it. Its errors are reported. */
  #callOnClose(): void {
    const { onClose } = this.services.settings;
    const closed = this.#closed;
    if (onClose === undefined || closed === undefined || this.#isDeciding) return;
    const end = { ...closed, accepted: this.isAccepted };
    const call = async (): Promise<unknown> => onClose(this.describe(), end);
    const { origin } = this;
    (this.#inContext?.(call) ?? call()).catch((error) => this.services.core.reportError(error, origin));
  }

  #close(code: number, reason: string): void {
    debug.subscriptions('closed with %d %j', code, reason);
    this.#endOperations();
    this.queue.flushAll();
    if (isOpen(this.websocket)) this.websocket.close(code, cutReason(reason));
  }

  /** Ends all operations without a message. */
  #endOperations(): void {
    this.isClosing = true;
    this.session.close();
    for (const operation of this.#operations?.values() ?? []) operation.cancel();
  }

  /** Sends the positions of subscriptions whose cursor has changed. */
  #sendPositions(): void {
    for (const operation of this.#operations?.values() ?? []) operation.sendPosition();
  }

  /** Releases the upgrade request, which would be most of the memory of an idle connection. */
  #releaseRequest(): void {
    this.#request = undefined;
    this.websocket.request = undefined;
  }
}

/** Whether the socket counts the bytes that it has received, as those of `node:net` do. */
const hasByteCount = (socket: Duplex | undefined): socket is Duplex & { readonly bytesRead: number } =>
  socket !== undefined && 'bytesRead' in socket;

interface OperationDetails {
  readonly bytes: number;
  readonly observed: ObservedOperation | undefined;
  readonly cursor: CursorRequest | undefined;
}

/** An operation of a WebSocket client. It is the envelope of its own results. */
class SocketOperation extends LiveOperation implements Envelope {
  readonly client: Connection;
  /** The client's id as JSON. */
  readonly key: string;
  readonly before: string;
  /** The estimated memory of its document and variables. */
  readonly bytes: number;
  /** Undefined if it is no subscription, or clients have no limits. */
  #place: ClientPlaces | undefined;
  #hasEnded = false;

  constructor(
    client: Connection,
    key: string,
    params: GraphQLParams,
    { bytes, observed, cursor }: OperationDetails,
  ) {
    super(params, observed, cursor);
    this.client = client;
    this.key = key;
    this.bytes = bytes;
    const before = `{"id":${key},"type":"${client.session.resultType}","payload":`;
    // One character per UTF-8 byte.
    this.before = Buffer.from(before).toString('latin1');
  }

  get services(): ConnectionServices {
    return this.client.services;
  }
  get after(): string {
    return '}';
  }
  get origin(): ErrorOrigin {
    const { operationName } = this.params;
    const { contextValue, caller, isLive } = this;
    return { ...this.client.origin, operationName, aborted: !isLive, contextValue, caller };
  }
  override get contextForEvent(): (() => MaybePromise<EventContext>) | undefined {
    return this.services.context.perEvent ? () => this.freshContext() : undefined;
  }
  get rootValue(): unknown {
    return this.core.rootValueFor(this.source);
  }
  get source(): WebSocketLike {
    return this.client.websocket;
  }
  get id(): unknown {
    return JSON.parse(this.key);
  }
  override get connectionParams(): Readonly<Record<string, unknown>> {
    return this.client.connectionParams;
  }

  get transport(): 'websocket' {
    return 'websocket';
  }

  override findCaller(): Caller | null {
    return this.client.caller ?? null;
  }

  override findSchema(): GraphQLSchema {
    return this.client.schema;
  }

  /** A long new document is prepared asynchronously. Later operations of the client are executed after it, in order. */
  override inTurn(
    prepared: MaybePromise<PreparedOperation | RequestError>,
  ): MaybePromise<PreparedOperation | RequestError> {
    const { client } = this;
    if (client.starting === undefined && !isThenable(prepared)) return prepared;
    const turn = Promise.allSettled([prepared, client.starting]).then(([own]) => {
      if (!this.isLive) throw CLIENT_ABORTED;
      if (own.status === 'rejected') throw own.reason;
      return own.value;
    });
    const onTurn = (): void => {
      if (client.starting === turn) client.starting = undefined;
    };
    client.starting = turn;
    turn.then(onTurn, onTurn);
    return turn;
  }

  override accept({ operation }: PreparedOperation): undefined {
    // The client may have cancelled it while it was counted.
    if (!this.isLive) throw CLIENT_ABORTED;
    if (operation.operation === 'subscription')
      this.#place = this.core.clients?.hold(this.source, this.caller, 'subscriptions');
  }

  override createContext(caller: Caller | null | undefined = this.caller): MaybePromise<unknown> {
    return this.client.contextFor(this.params, caller);
  }

  send(body: string | Buffer, mode: FlushMode): void {
    if (!this.isLive) return;
    this.client.send(this, typeof body === 'string' ? Buffer.from(body) : body, mode);
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
    this.client.forgetOperation(this);
    if (this.#place !== undefined) this.core.clients?.release(this.#place, 'subscriptions');
  }

  expireBy(time: number): void {
    this.client.expireBy(time);
  }

  /**
   * Sends the last message in a microtask, so that the id stays in use for all messages that arrived in the
   * same packet.
   */
  #end(errors: readonly GraphQLFormattedError[] | undefined): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    queueMicrotask(() => {
      if (this.isLive) this.client.endOperation(this, errors);
    });
  }
}

/**
 * Returns the decision of `onConnect`; `expiresAt` is in milliseconds since 1970.
 *
 * @throws TypeError (code `ERR_OPTION`) if it is not a valid time.
 */
function decisionOf(returned: ConnectResult): { acceptance: Acceptance; expiresAt: number | undefined } {
  if (typeof returned !== 'object' || returned === null) {
    return { acceptance: returned === false ? false : undefined, expiresAt: undefined };
  }
  const { expiresAt: time, ...payload } = returned;
  const expiresAt = time === undefined ? undefined : toMilliseconds(time, SUBSCRIPTION_OPTIONS, 'onConnect');
  // Refuses a connection that has expired already: it could run operations until the next check.
  if (expiresAt !== undefined && expiresAt <= Date.now()) return { acceptance: false, expiresAt };
  return { acceptance: Object.keys(payload).length === 0 ? undefined : payload, expiresAt };
}

type Params = Readonly<Record<string, unknown>>;
type Members = Record<PropertyKey, PropertyDescriptor>;

/** The settings for the contexts of an endpoint. */
export interface ContextPolicy {
  readonly create: ContextFactory;
  readonly isFunction: boolean;
  /** Whether functions read the WebSocket, which then gets the members of its upgrade request. */
  readonly exposesRequest: boolean;
  /** Whether each operation gets its own context. */
  readonly perOperation: boolean;
  /** Whether each event of a subscription gets its own context. */
  readonly perEvent: boolean;
}

const NO_MEMBERS: Members = {};

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

  async create(params: Params, caller: Caller | null | undefined): Promise<void> {
    this.#params = params;
    const created = await this.#policy.create(this.#websocket, {
      transport: 'websocket',
      connectionParams: params,
      caller,
    });
    this.#value = withParams(created, params);
  }

  /** Runs the hook. Members that it adds to the context become part of the context of each operation. */
  async connect<T>(hook: () => MaybePromise<T>): Promise<T> {
    if (!this.#policy.perOperation) return hook();
    const before = membersOf(this.#value);
    const returned = await hook();
    this.#added = addedMembers(before, membersOf(this.#value));
    return returned;
  }

  forOperation(operation: SharedOperation, caller: Caller | null | undefined): MaybePromise<unknown> {
    const { create, perOperation } = this.#policy;
    if (!perOperation) return this.#value;
    const details = { transport: 'websocket', operation, connectionParams: this.#params, caller } as const;
    return settle(create(this.#websocket, details), (value) => this.#complete(value));
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
  for (const name of ['connection_params', 'connectionParams']) define(context, name, params);
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

/** The members that every request has, and internal members of Express. */
const OWN_MEMBERS: ReadonlySet<string> = new Set([
  ...Object.keys(new IncomingMessage(new Socket())),
  'res',
  'next',
]);

/**
 * Gives the WebSocket the members of the upgrade request that context functions read: `headers`, `url`,
 * `socket`, `state`, `get`, and the members that middleware has added. Does not change members of the WebSocket
 * itself.
 */
function exposeRequest(websocket: WebSocketLike, request: IncomingMessage & { state?: unknown }): void {
  const { headers, url, socket } = request;
  request.state ??= {};
  define(websocket, 'headers', headers);
  define(websocket, 'url', url);
  define(websocket, 'socket', socket);
  define(websocket, 'get', getHeader);
  for (const name of Object.keys(request)) {
    if (OWN_MEMBERS.has(name) || name in websocket) continue;
    define(websocket, name, request[name as keyof IncomingMessage]);
  }
}

/** The method `get` of Express's requests. */
function getHeader(this: Pick<IncomingMessage, 'headers'>, name: string): string | string[] | undefined {
  const key = name.toLowerCase();
  return this.headers[key === 'referrer' ? 'referer' : key];
}

function define(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
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
