import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import type { StreamConnection } from '../../types/subscriptions.ts';
import type { GraphQLCore } from '../core/core.ts';
import { toGraphQLError } from '../execution/graphql-error.ts';
import type { ErrorOrigin, ExecutionOutcome, GraphQLParams, PreparedOperation } from '../execution/types.ts';
import { HttpError } from '../http/reply.ts';
import { StreamWriter } from '../http/stream.ts';
import { cursorRequest } from './cursors.ts';
import { attachedEndpoint, LIVE_DEFAULTS, type LiveConnection, LiveEndpoint } from './endpoint.ts';
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
   * Begins the response of a subscription.
   *
   * @throws HttpError 400 if streams would avoid the checks of `onConnect`, 413 for large variables, 503 at the maximum
   * number of connections.
   */
  open(
    { req, res }: { readonly req: IncomingMessage; readonly res: ServerResponse },
    format: StreamFormat,
    params: GraphQLParams,
  ): EventStream {
    const endpoint = this.#endpoint();
    if (estimateMemory(params) > endpoint.settings.maxOperationBytes) {
      throw new HttpError(413, 'The document and the variables are too large', { code: 'OPERATION_REFUSED' });
    }
    const onClosed = (closed: EventStream): unknown => this.#streams.delete(closed);
    const stream = new EventStream({ endpoint, join: this.#join, onClosed }, { req, res, format, params });
    this.#streams.add(stream);
    stream.open();
    const { ping } = this.settings;
    if (ping === 0) return stream;
    // Spread at random: all clients reconnect together after a restart and would always be pinged together.
    stream.pingAt = this.#timer.now() + ping * (0.5 + Math.random() / 2);
    this.#timer.start();
    return stream;
  }

  /** Runs the operation of a stream, which gets its results and errors. */
  run(stream: EventStream, prepared: PreparedOperation, context: unknown): void {
    const { operation, services } = stream;
    stream.accept(context);
    try {
      runWithContext(operation, services, prepared, context);
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

/** One streaming response with its operation. */
class EventStream implements LiveConnection {
  readonly format: StreamFormat;
  isClosing = false;
  isAccepted = false;
  #context: unknown;
  /** The time of the next keep-alive message, by the timer of the event streams. */
  pingAt: number = Number.POSITIVE_INFINITY;
  readonly endpoint: LiveEndpoint;
  readonly services: OperationServices;
  readonly #queue: StreamQueue;
  readonly operation: StreamOperation;
  readonly #request: IncomingMessage;
  readonly #writer: StreamWriter;
  readonly #deadlines = new StreamDeadlines();
  readonly #onClosed: StreamServices['onClosed'];

  constructor({ endpoint, join, onClosed }: StreamServices, { req, res, format, params }: StreamRequest) {
    this.endpoint = endpoint;
    const { core, groups, counters, settings } = endpoint;
    this.services = { core, groups, counters, settings, onOperation: core.operationHookFor() };
    this.#queue = new StreamQueue(endpoint.scheduler, join);
    this.#request = req;
    this.#writer = new StreamWriter(res, format.framing);
    this.#onClosed = onClosed;
    this.format = format;
    this.operation = new StreamOperation(this, req, params);
    endpoint.add(this);
  }

  get operationCount(): number {
    return this.operation.isLive ? 1 : 0;
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
  open(): void {
    this.#writer.onClosed(() => this.#close());
    this.#writer.open(200);
    this.#queue.open(this.#writer);
  }

  push(envelope: Envelope, body: Buffer, mode: FlushMode): void {
    if (this.isClosing) return;
    const queue = this.#queue;
    const { operation } = this;
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

  /** Ends the response after its last message, or with errors. */
  end(errors: readonly GraphQLFormattedError[] | undefined): void {
    if (errors !== undefined) {
      const envelope = this.format.errorEnvelope(this.operation.hasResults);
      this.#queue.push(envelope, Buffer.from(JSON.stringify(errors)), 'soon');
    }
    this.operation.release();
    this.isClosing = true;
    this.#queue.flushAll();
    this.#writer.end();
  }

  /** Ends the response without its ending, and its connection, so that the client connects again. */
  closeSocket(): void {
    if (this.isClosing) return;
    this.operation.sendPosition();
    this.#cancelOperation();
    this.#queue.flushAll();
    if (this.endpoint.core.cursors !== undefined) this.#writer.write(this.format.retryMessage());
    this.#writer.endConnection();
  }

  keepAlive(): void {
    if (this.isClosing) return;
    this.operation.sendPosition();
    this.#writer.keepAlive();
  }

  checkDeadlines(now: number): void {
    const { isClosing } = this;
    if (!this.#deadlines.isLate(now, { queue: this.#queue, isClosing })) return;
    if (isClosing) this.#writer.destroy();
    else this.#closeSlowClient();
  }

  /** Disconnects a client whose queue is full. Its messages are lost. */
  #closeSlowClient(): void {
    this.#cancelOperation();
    this.#queue.discard();
    this.#writer.destroy();
  }

  #cancelOperation(): void {
    this.isClosing = true;
    this.operation.cancel();
  }

  /** Called when the response has ended. */
  #close(): void {
    this.#cancelOperation();
    this.#queue.discard();
    this.endpoint.remove(this);
    this.#onClosed(this);
  }
}

/** The services that the event streams of one handler share. */
interface StreamServices {
  readonly endpoint: LiveEndpoint;
  readonly join: JoinMessages;
  onClosed(stream: EventStream): unknown;
}

/** The request of a stream. */
interface StreamRequest {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly format: StreamFormat;
  readonly params: GraphQLParams;
}

const NO_BODY = Buffer.alloc(0);

/** An operation whose results are sent in an event stream. */
class StreamOperation extends LiveOperation implements Envelope {
  readonly id = undefined;
  readonly before: string;
  readonly after: string;
  /** Whether a result was sent. */
  hasResults = false;
  readonly #stream: EventStream;
  readonly #request: IncomingMessage;

  /** The parameters stay in memory until the operation ends, so it has no extensions except the cursor. */
  constructor(stream: EventStream, request: IncomingMessage, params: GraphQLParams) {
    super(
      { ...params, extensions: undefined },
      cursorRequest(params.extensions, request.headers['last-event-id']),
    );
    const { before, after } = stream.format.resultEnvelope;
    this.#stream = stream;
    this.#request = request;
    this.before = before;
    this.after = after;
  }

  get origin(): ErrorOrigin {
    const { operationName } = this.params;
    return {
      transport: 'http',
      operationName,
      request: this.#request,
      socket: undefined,
      aborted: !this.isLive,
    };
  }
  get rootValue(): unknown {
    return this.#stream.endpoint.core.rootValueFor(this.#request);
  }

  get source(): IncomingMessage {
    return this.#request;
  }

  send(body: string | Buffer, mode: FlushMode, cursor?: string): void {
    if (!this.isLive) return;
    this.hasResults = true;
    const envelope = cursor === undefined ? this : this.#withCursor(cursor);
    this.#stream.push(envelope, typeof body === 'string' ? Buffer.from(body) : body, mode);
  }

  onResult({ body }: ExecutionOutcome, cursor?: string): void {
    this.send(body, 'batched', cursor);
  }

  complete(): void {
    if (this.isLive) this.#stream.end(undefined);
  }

  fail(errors: readonly GraphQLError[]): void {
    if (!this.isLive) return;
    this.observed?.fail(errors);
    if (closeCodeOf(errors) !== undefined) this.#stream.closeSocket();
    else this.#stream.end(formatErrorsSafely(this.#stream.endpoint.core, errors, this.origin));
  }

  protected waitForClient(): Promise<void> | undefined {
    return this.#stream.waitForDrain();
  }

  protected override sendCursor(cursor: string): void {
    const before = this.#stream.format.cursorLine(cursor);
    if (before === '') return;
    const envelope = { before, after: '\n', droppable: this.droppable };
    this.#stream.push(envelope, NO_BODY, 'batched');
  }

  #withCursor(cursor: string): Envelope {
    const before = this.#stream.format.cursorLine(cursor) + this.before;
    return { before, after: this.after, droppable: this.droppable };
  }

  protected onRelease(): void {}
}
