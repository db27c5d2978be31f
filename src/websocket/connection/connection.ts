import type { IncomingMessage } from 'node:http';
import type { GraphQLError, GraphQLFormattedError, GraphQLSchema } from 'graphql';
import type { MaybePromise } from '../../../types/connect.ts';
import type { SharedOperation, SubscriptionConnection, WebSocketLike } from '../../../types/subscriptions.ts';
import type { ErrorOrigin, ExecutionOutcome } from '../../execution/types.ts';
import { debug } from '../../logging/debug.ts';
import type { LiveConnection } from '../../subscriptions/endpoint.ts';
import { formatErrorsSafely } from '../../subscriptions/format-errors.ts';
import type { ClientOperation, FlushMode } from '../../subscriptions/live-operation.ts';
import { startOperation } from '../../subscriptions/start.ts';
import { createSession } from '../protocol/create-session.ts';
import type { ServerMessage } from '../protocol/message.ts';
import type { Session } from '../protocol/session.ts';
import type { Acceptance, SessionConnection, SessionLimits } from '../protocol/session-connection.ts';
import type { SocketOperation } from '../protocol/socket-operation.ts';
import { isOpen } from '../write/ready-state.ts';
import { SendQueue } from '../write/send-queue.ts';
import { decisionOf } from './acceptance.ts';
import { cutReason } from './close-reason.ts';
import { ConnectionContext } from './connection-context.ts';
import { ConnectionDeadlines, type TimedConnection } from './connection-deadlines.ts';
import { exposeRequest, type OpenedWebSocket } from './opened-websocket.ts';
import type { ConnectionServices } from './services.ts';

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
