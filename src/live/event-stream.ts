import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import type { StreamConnection } from '../../types/subscriptions.ts';
import type { GraphQLCore } from '../core/core.ts';
import { toGraphQLError } from '../execution/graphql-error.ts';
import type { ErrorOrigin, ExecutionOutcome, GraphQLParams, PreparedOperation } from '../execution/types.ts';
import { HttpError } from '../http/reply.ts';
import { StreamWriter } from '../http/stream.ts';
import { type CursorRequest, cursorRequest } from './cursors.ts';
import {
  attachedEndpoint,
  type EndpointSettings,
  LIVE_DEFAULTS,
  type LiveConnection,
  LiveEndpoint,
} from './endpoint.ts';
import {
  closeCodeOf,
  estimateMemory,
  type FlushMode,
  formatErrorsSafely,
  LiveOperation,
  type OperationServices,
  runWithContext,
} from './operation.ts';
import type { EventStreamSettings } from './options.ts';
import { createFlushScheduler, createJoin, type Envelope, type JoinMessages, StreamQueue } from './queue.ts';
import type { StreamFormat } from './stream-formats.ts';
import { createIntervalTimer, type IntervalTimer, StreamDeadlines } from './timers.ts';

/** Milliseconds between two checks of deadlines. */
const PERIOD = 1000;

/** The event streams of one handler. */
export class EventStreams {
  readonly settings: EventStreamSettings;
  readonly #core: GraphQLCore;
  /** Whether the option `eventStreams` is set, rather than on by default. */
  readonly #isExplicit: boolean;
  readonly #streams = new Set<EventStream>();
  readonly #timer: IntervalTimer;
  readonly #join = createJoin();
  #handlerEndpoint: LiveEndpoint | undefined;

  constructor(core: GraphQLCore, settings: EventStreamSettings, { isExplicit }: { isExplicit: boolean }) {
    this.#core = core;
    this.settings = settings;
    this.#isExplicit = isExplicit;
    const period = Math.max(5, Math.min(PERIOD, settings.ping / 4));
    this.#timer = createIntervalTimer(period, (now) => this.#ping(now));
  }

  /**
   * Creates a stream, which is not open yet.
   *
   * @throws HttpError 400 if streams would avoid the checks of `onConnect`, 503 at the maximum number of
   * connections.
   */
  create(
    request: IncomingMessage,
    format: StreamFormat,
    onClosed: () => void = () => undefined,
  ): EventStream {
    const services = {
      endpoint: this.#endpoint(),
      join: this.#join,
      onClosed: (closed: EventStream) => {
        this.#streams.delete(closed);
        onClosed();
      },
    };
    return new EventStream(services, { request, format });
  }

  /** Begins the response of a stream. */
  open(stream: EventStream, request: IncomingMessage, res: ServerResponse): void {
    const { ping } = this.settings;
    this.#streams.add(stream);
    stream.open(request, res);
    if (ping === 0) return;
    // Spread at random: all clients reconnect together after a restart and would always be pinged together.
    stream.pingAt = this.#timer.now() + ping * (0.5 + Math.random() / 2);
    this.#timer.start();
  }

  /** Opens a stream for one operation. */
  openFor(
    { req, res }: { readonly req: IncomingMessage; readonly res: ServerResponse },
    format: StreamFormat,
    params: GraphQLParams,
  ): StreamOperation {
    const stream = this.create(req, format);
    const operation = stream.addOperation(streamOperationRequest(req, params, undefined));
    this.open(stream, req, res);
    return operation;
  }

  /** Runs a prepared operation. Its results, and its errors, are sent in the stream. */
  run(operation: StreamOperation, prepared: PreparedOperation, context: unknown): void {
    try {
      runWithContext(operation, operation.stream.services, prepared, context);
    } catch (error) {
      operation.fail([toGraphQLError(error)]);
    }
  }

  #endpoint(): LiveEndpoint {
    const attached = attachedEndpoint(this.#core);
    if (attached?.hasOnConnect === true && !this.#isExplicit) {
      const message =
        'Subscriptions over HTTP are off because attachSubscriptions has the option "onConnect", which they do not ' +
        'call; use a WebSocket, or set the option "eventStreams" of graphqlHTTP';
      throw new HttpError(400, message, { code: 'SUBSCRIPTION_OVER_HTTP' });
    }
    const endpoint = attached?.endpoint ?? this.#endpointOfHandler();
    if (
      endpoint.isClosed ||
      endpoint.connectionCount >= (attached?.maxConnections ?? LIVE_DEFAULTS.maxConnections)
    ) {
      throw new HttpError(503, 'Too many connections, or the server is about to stop', {
        headers: { 'retry-after': '5' },
        code: 'TOO_MANY_CONNECTIONS',
      });
    }
    return endpoint;
  }

  /** The endpoint of a handler without `attachSubscriptions`. */
  #endpointOfHandler(): LiveEndpoint {
    this.#handlerEndpoint ??= new LiveEndpoint(this.#core, LIVE_DEFAULTS, createFlushScheduler(), PERIOD);
    return this.#handlerEndpoint;
  }

  #ping(now: number): boolean {
    const { ping } = this.settings;
    for (const stream of this.#streams) {
      if (now < stream.pingAt) continue;
      stream.pingAt = now + ping;
      stream.keepAlive();
    }
    return this.#streams.size > 0;
  }
}

/** One streaming response with its operations, or the reservation of one. */
export class EventStream implements LiveConnection, OperationStream {
  readonly format: StreamFormat;
  isClosing = false;
  isAccepted = false;
  #context: unknown;
  /** The time of the next keep-alive message, by the timer of the event streams. */
  pingAt: number = Number.POSITIVE_INFINITY;
  readonly endpoint: LiveEndpoint;
  readonly services: OperationServices;
  readonly #queue: StreamQueue;
  readonly #operations = new StreamOperations();
  #request: IncomingMessage;
  #writer: StreamWriter | undefined;
  readonly #deadlines = new StreamDeadlines();
  readonly #onClosed: (stream: EventStream) => void;

  constructor(
    { endpoint, join, onClosed }: StreamServices,
    { request, format }: { request: IncomingMessage; format: StreamFormat },
  ) {
    this.endpoint = endpoint;
    const { core, groups, counters, settings } = endpoint;
    this.services = { core, groups, counters, settings, onOperation: core.operationHookFor() };
    this.#queue = new StreamQueue(endpoint.scheduler, join);
    this.#request = request;
    this.#onClosed = onClosed;
    this.format = format;
    endpoint.add(this);
  }

  get operationCount(): number {
    return this.#operations.size;
  }
  get isOpen(): boolean {
    return this.#writer !== undefined;
  }

  describe(): StreamConnection {
    const [context, request, { protocol }] = [this.#context, this.#request, this.format];
    return { connectionParams: {}, context, protocol, websocket: undefined, request };
  }

  accept(context: unknown): void {
    this.#context = context;
    this.isAccepted = true;
  }

  /** Begins the response. */
  open(request: IncomingMessage, res: ServerResponse): void {
    this.#request = request;
    const writer = new StreamWriter(res, this.format.framing);
    this.#writer = writer;
    writer.onClosed(() => this.#close());
    writer.open(200);
    this.#queue.open(writer);
  }

  /**
   * Adds an operation.
   *
   * @throws HttpError 409, 413, 429.
   */
  addOperation(request: StreamOperationRequest): StreamOperation {
    const operation = new StreamOperation(this, request, this.format.resultEnvelope(request.id));
    this.#operations.add(operation, this.endpoint.settings);
    return operation;
  }

  cancelOperation(id: string): void {
    this.#operations.get(id)?.cancel();
  }

  push(operation: StreamOperation, { envelope, body, mode }: StreamMessage): void {
    if (this.isClosing) return;
    const queue = this.#queue;
    const { maxBufferedBytes } = this.endpoint.settings;
    if (queue.pendingBytes > maxBufferedBytes) {
      queue.flush();
      if (operation.droppable) queue.dropOldest(maxBufferedBytes);
      else if (!operation.appliesBackpressure && queue.pendingBytes > maxBufferedBytes) {
        this.#closeSlowClient();
        return;
      }
    }
    queue.push(envelope, body, mode);
  }

  waitForDrain(): Promise<void> | undefined {
    return this.#queue.waitForDrain();
  }

  rootValueFor(request: IncomingMessage): unknown {
    return this.endpoint.core.rootValueFor(request);
  }

  formatErrors(errors: readonly GraphQLError[], origin: ErrorOrigin): readonly GraphQLFormattedError[] {
    return formatErrorsSafely(this.endpoint.core, errors, origin);
  }

  endOperation(operation: StreamOperation, errors: readonly GraphQLFormattedError[] | undefined): void {
    const { id, hasResults } = operation;
    if (errors !== undefined) {
      const envelope = this.format.errorEnvelope(id, hasResults);
      this.#queue.push(envelope, Buffer.from(JSON.stringify(errors)), 'soon');
    }
    // Frees the id before the client receives the message that ends the operation.
    operation.release();
    if (id === undefined) this.#end();
    else this.#queue.push(NO_ENVELOPE, Buffer.from(this.format.completion(id)), 'soon');
  }

  forgetOperation(operation: StreamOperation): void {
    this.#operations.delete(operation);
  }

  /** Ends the response without its ending, and its connection, so that the client connects again. */
  closeSocket(): void {
    if (this.isClosing) return;
    this.#sendPositions();
    this.#cancelOperations();
    this.#queue.flushAll();
    if (this.endpoint.core.cursors !== undefined) this.#writer?.write(this.format.retryMessage());
    if (this.#writer === undefined) this.#close();
    else this.#writer.endConnection();
  }

  keepAlive(): void {
    if (this.isClosing) return;
    this.#sendPositions();
    this.#writer?.keepAlive();
  }

  checkDeadlines(now: number): void {
    const { isClosing, isOpen } = this;
    if (!this.#deadlines.isLate(now, { queue: this.#queue, isClosing, isOpen })) return;
    if (isClosing) this.#writer?.destroy();
    else this.#closeSlowClient();
  }

  /** Ends the response after its last message. */
  #end(): void {
    this.isClosing = true;
    this.#queue.flushAll();
    this.#writer?.end();
  }

  /** Disconnects a client whose queue is full. Its messages are lost. */
  #closeSlowClient(): void {
    this.#cancelOperations();
    this.#queue.discard();
    if (this.#writer === undefined) this.#close();
    else this.#writer.destroy();
  }

  #sendPositions(): void {
    for (const operation of this.#operations.all()) operation.sendPosition();
  }

  #cancelOperations(): void {
    this.isClosing = true;
    for (const operation of this.#operations.all()) operation.cancel();
  }

  /** Called when the response has ended, or the reservation is not used any more. */
  #close(): void {
    this.#cancelOperations();
    this.#queue.discard();
    this.endpoint.remove(this);
    this.#onClosed(this);
  }
}

/** The services that the event streams of one handler share. */
interface StreamServices {
  readonly endpoint: LiveEndpoint;
  readonly join: JoinMessages;
  onClosed(stream: EventStream): void;
}

const NO_ENVELOPE = { before: '', after: '', droppable: false };

/** The members of an event stream that its operations use. */
interface OperationStream {
  readonly services: OperationServices;
  readonly format: StreamFormat;
  /** Sets the context for `disconnect`. */
  accept(context: unknown): void;
  push(operation: StreamOperation, message: StreamMessage): void;
  waitForDrain(): Promise<void> | undefined;
  rootValueFor(request: IncomingMessage): unknown;
  formatErrors(errors: readonly GraphQLError[], origin: ErrorOrigin): readonly GraphQLFormattedError[];
  /** Ends an operation with the message that it is complete, or with errors. */
  endOperation(operation: StreamOperation, errors: readonly GraphQLFormattedError[] | undefined): void;
  /** Frees the operation's id. */
  forgetOperation(operation: StreamOperation): void;
  /** Ends the stream, so that the client connects again. */
  closeSocket(): void;
}

/** A result of an operation. */
interface StreamMessage {
  readonly envelope: Envelope;
  readonly body: Buffer;
  readonly mode: FlushMode;
}

const NO_BODY = Buffer.alloc(0);

/** The request of an operation. */
interface StreamOperationRequest {
  readonly cursorRequest: CursorRequest | undefined;
  readonly request: IncomingMessage;
  readonly params: GraphQLParams;
  /** The client's id; undefined if the stream has one operation only. */
  readonly id: string | undefined;
}

/**
 * Returns the request of an operation. The parameters stay in memory until the operation ends, so the request
 * has no extensions except the cursor.
 */
export function streamOperationRequest(
  request: IncomingMessage,
  params: GraphQLParams,
  id: string | undefined,
): StreamOperationRequest {
  return {
    request,
    params: { ...params, extensions: undefined },
    id,
    cursorRequest: cursorRequest(params.extensions, request.headers['last-event-id']),
  };
}

/** An operation whose results are sent in an event stream. */
export class StreamOperation extends LiveOperation implements Envelope {
  readonly stream: OperationStream;
  readonly request: IncomingMessage;
  readonly id: string | undefined;
  readonly before: string;
  readonly after: string;
  /** The estimated memory of its document and variables. */
  readonly bytes: number;
  /** Whether a result was sent. */
  hasResults = false;

  constructor(
    stream: OperationStream,
    { request, params, id, cursorRequest }: StreamOperationRequest,
    around: Envelope,
  ) {
    super(params, cursorRequest);
    this.stream = stream;
    this.request = request;
    this.id = id;
    this.before = around.before;
    this.after = around.after;
    this.bytes = estimateMemory(params);
  }

  get origin(): ErrorOrigin {
    const { request, params, isLive } = this;
    const { operationName } = params;
    return { transport: 'http', operationName, request, socket: undefined, aborted: !isLive };
  }
  get rootValue(): unknown {
    return this.stream.rootValueFor(this.request);
  }

  get source(): IncomingMessage {
    return this.request;
  }

  send(body: string | Buffer, mode: FlushMode, cursor?: string): void {
    if (!this.isLive) return;
    this.hasResults = true;
    const envelope = cursor === undefined ? this : this.#withCursor(cursor);
    this.stream.push(this, { envelope, body: typeof body === 'string' ? Buffer.from(body) : body, mode });
  }

  onResult({ body }: ExecutionOutcome, cursor?: string): void {
    this.send(body, 'batched', cursor);
  }

  complete(): void {
    if (this.isLive) this.stream.endOperation(this, undefined);
  }

  fail(errors: readonly GraphQLError[]): void {
    if (!this.isLive) return;
    this.observed?.fail(errors);
    if (closeCodeOf(errors) !== undefined) this.stream.closeSocket();
    else this.stream.endOperation(this, this.stream.formatErrors(errors, this.origin));
  }

  protected waitForClient(): Promise<void> | undefined {
    return this.stream.waitForDrain();
  }

  protected override sendCursor(cursor: string): void {
    const before = this.stream.format.cursorLine(cursor);
    if (before === '') return;
    const envelope = { before, after: '\n', droppable: this.droppable };
    this.stream.push(this, { envelope, body: NO_BODY, mode: 'batched' });
  }

  #withCursor(cursor: string): Envelope {
    const before = this.stream.format.cursorLine(cursor) + this.before;
    return { before, after: this.after, droppable: this.droppable };
  }

  protected onRelease(): void {
    this.stream.forgetOperation(this);
  }
}

/** The operations in progress of one event stream. */
class StreamOperations {
  readonly #byId = new Map<string | undefined, StreamOperation>();
  #bytes = 0;

  get size(): number {
    return this.#byId.size;
  }

  /** Returns a copy: operations that are cancelled leave the collection. */
  all(): readonly StreamOperation[] {
    return [...this.#byId.values()];
  }

  get(id: string): StreamOperation | undefined {
    return this.#byId.get(id);
  }

  /** @throws HttpError 409, 413, 429. */
  add(operation: StreamOperation, { maxOperations, maxOperationBytes }: EndpointSettings): void {
    if (this.#byId.has(operation.id)) {
      const message = `The operation id ${JSON.stringify(operation.id)} is in use`;
      throw new HttpError(409, message, { code: 'OPERATION_ID_IN_USE' });
    }
    if (this.#byId.size >= maxOperations) {
      throw new HttpError(429, 'Too many operations at a time', { code: 'OPERATION_REFUSED' });
    }
    if (this.#bytes + operation.bytes > maxOperationBytes) {
      const message = 'The documents and variables of the operations in progress are too large together';
      throw new HttpError(413, message, { code: 'OPERATION_REFUSED' });
    }
    this.#bytes += operation.bytes;
    this.#byId.set(operation.id, operation);
  }

  delete(operation: StreamOperation): void {
    // The id may already belong to a newer operation.
    if (this.#byId.get(operation.id) !== operation) return;
    this.#byId.delete(operation.id);
    this.#bytes -= operation.bytes;
  }
}
