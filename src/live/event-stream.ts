import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { StreamConnection } from '../../types/subscriptions.ts';
import type { Call } from '../core/call.ts';
import type { GraphQLCore } from '../core/core.ts';
import type { ClientPlaces } from '../core/extension.ts';
import type { ErrorOrigin, PreparedOperation } from '../execution/types.ts';
import { HttpError } from '../http/reply.ts';
import { type StreamEncoding, StreamWriter } from '../http/stream.ts';
import { cursorRequest } from './cursors.ts';
import {
  attachedEndpoint,
  endpointsByServer,
  LIVE_DEFAULTS,
  type LiveConnection,
  LiveEndpoint,
  OPERATION_BYTES,
} from './endpoint.ts';
import { closeCodeOf, estimateMemory, LiveOperation, runPrepared } from './operation.ts';
import { type Envelope, type FlushMode, type FlushScheduler, type Messages, OutputQueue } from './queue.ts';
import type { EventContext } from './source.ts';
import type { StreamFormat } from './stream-formats.ts';
import { Deadlines, NEVER } from './timers.ts';

/** Milliseconds between two checks of deadlines. */
const PERIOD = 1000;

/** The call of a subscription, which goes on as that of the stream. */
type RunCall = Pick<Call, 'params' | 'contextValue' | 'caller' | 'observed'>;

interface StreamResponse {
  readonly format: StreamFormat;
  /** Creates the content coding of the response, if it has one. */
  createEncoding(): StreamEncoding | undefined;
}

export class EventStreams {
  readonly #core: GraphQLCore;
  /** Whether the option `eventStreams` is set, rather than on by default. */
  readonly #isExplicit: boolean;
  readonly #joined = new JoinedMessages();
  /** Without `attachSubscriptions`. */
  readonly #ownEndpoint: (req: IncomingMessage) => LiveEndpoint;

  constructor(core: GraphQLCore, isExplicit: boolean) {
    this.#core = core;
    this.#isExplicit = isExplicit;
    this.#ownEndpoint = endpointsByServer(() => new LiveEndpoint(core, LIVE_DEFAULTS, PERIOD));
  }

  /**
   * Begins the response of a subscription and runs it. The stream gets its results and errors.
   *
   * @throws HttpError 400 if streams would avoid the checks of `onConnect`, 413 for large variables, 429 if the client has
   * too many streams, 503 at the maximum number of connections.
   */
  run(
    call: RunCall,
    prepared: PreparedOperation,
    { req, res }: { readonly req: IncomingMessage; readonly res: ServerResponse },
    { format, createEncoding }: StreamResponse,
  ): void {
    const endpoint = this.#endpoint(req);
    if (estimateMemory(call.params) > OPERATION_BYTES) {
      throw new HttpError(413, 'The document and the variables are too large', { code: 'OPERATION_REFUSED' });
    }
    const places = this.#core.clients?.hold(req, call.caller, 'connections', 'subscriptions');
    const stream = new EventStream(endpoint, call, { req, res, format, places, encoding: createEncoding() });
    const queue = new StreamQueue(stream.writer, endpoint.scheduler, this.#joined);
    stream.open(queue, endpoint.settings.ping);
    const checks = endpoint.opening.get(res) ?? [];
    endpoint.opening.delete(res);
    for (const check of checks) check(stream);
    runPrepared(stream, prepared);
  }

  /** Called before the context of a stream is created: a `disconnect` meanwhile applies to the stream. */
  begin(res: ServerResponse): void {
    const opening = attachedEndpoint(this.#core)?.endpoint.opening;
    if (opening === undefined) return;
    opening.set(res, []);
    res.once('close', () => opening.delete(res));
  }

  #endpoint(req: IncomingMessage): LiveEndpoint {
    const attached = attachedEndpoint(this.#core);
    if (attached?.hasOnConnect === true && !this.#isExplicit) {
      const message =
        'Subscriptions over HTTP are off because attachSubscriptions has the option "onConnect", which they do not ' +
        'call; use a WebSocket, or set the option eventStreams: true of graphqlHTTP';
      throw new HttpError(400, message, { code: 'SUBSCRIPTION_OVER_HTTP' });
    }
    const endpoint = attached?.endpoint ?? this.#ownEndpoint(req);
    if (
      endpoint.isClosed ||
      endpoint.connectionCount >= (attached?.maxConnections ?? LIVE_DEFAULTS.limits.connections)
    ) {
      throw new HttpError(503, 'Too many connections, or the server is about to stop', {
        headers: { 'retry-after': '5' },
        code: 'TOO_MANY_CONNECTIONS',
      });
    }
    return endpoint;
  }
}

interface StreamRequest {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly format: StreamFormat;
  /** Those that the stream gives back when it has closed; undefined if clients have no limits. */
  readonly places: ClientPlaces | undefined;
  readonly encoding: StreamEncoding | undefined;
}

const NO_BODY = Buffer.alloc(0);

/** One streaming response with its operation. It is the envelope of its own results. */
class EventStream extends LiveOperation implements LiveConnection, Envelope {
  readonly id = undefined;
  readonly isAccepted = true;
  readonly before: string;
  readonly after: string;
  readonly writer: StreamWriter;
  isClosing = false;
  readonly #endpoint: LiveEndpoint;
  readonly #format: StreamFormat;
  readonly #request: IncomingMessage;
  readonly #places: ClientPlaces | undefined;
  #queue: StreamQueue | undefined;
  #deadlines: Deadlines | undefined;
  /** The time in milliseconds since 1970 at which the stream ends. */
  #expiresAt = NEVER;
  #hasResults = false;

  /** The parameters stay in memory until the operation ends, so it has no extensions except the cursor. */
  constructor(
    endpoint: LiveEndpoint,
    { params, contextValue, caller, observed }: RunCall,
    { req, res, format, places, encoding }: StreamRequest,
  ) {
    super(
      { ...params, extensions: undefined },
      observed,
      cursorRequest(params.extensions, req.headers['last-event-id']),
    );
    const { before, after } = format.resultEnvelope;
    this.before = before;
    this.after = after;
    this.contextValue = contextValue;
    this.caller = caller;
    this.writer = new StreamWriter(res, format.framing, encoding);
    this.#endpoint = endpoint;
    this.#format = format;
    this.#request = req;
    this.#places = places;
  }

  get services(): LiveEndpoint {
    return this.#endpoint;
  }
  get operations(): readonly EventStream[] {
    return [this];
  }
  get operationCount(): number {
    return this.isLive ? 1 : 0;
  }
  get origin(): ErrorOrigin {
    const [{ operationName }, request, aborted] = [this.params, this.#request, !this.isLive];
    const { contextValue, caller } = this;
    return { transport: 'http', operationName, request, socket: undefined, aborted, contextValue, caller };
  }
  override get contextForEvent(): (() => MaybePromise<EventContext>) | undefined {
    const { core, settings } = this.#endpoint;
    const isFresh = core.hasContextFunction || core.findCaller !== undefined || core.checksEvents;
    if (settings.contextPer !== 'event' || !isFresh) return undefined;
    return () => this.freshContext();
  }
  get transport(): 'http' {
    return 'http';
  }

  get rootValue(): unknown {
    return this.core.rootValueFor(this.#request);
  }
  get source(): IncomingMessage {
    return this.#request;
  }
  /** Set before the stream is used. */
  get queue(): StreamQueue {
    return this.#queue as StreamQueue;
  }

  describe(): StreamConnection {
    const [context, request, { protocol }] = [this.contextValue, this.#request, this.#format];
    return { connectionParams: {}, context, protocol, websocket: undefined, request };
  }

  /** Begins the response. */
  open(queue: StreamQueue, ping: number): void {
    this.#queue = queue;
    this.#deadlines = new Deadlines(this.#endpoint.timer, ping);
    this.#endpoint.add(this);
    this.writer.onClosed(() => this.#onClosed());
    this.writer.open(200);
  }

  send(body: string | Buffer, mode: FlushMode, cursor?: string): void {
    if (!this.isLive) return;
    this.#hasResults = true;
    const envelope = cursor === undefined ? this : this.#withCursor(cursor);
    this.#push(envelope, typeof body === 'string' ? Buffer.from(body) : body, mode);
  }

  complete(): void {
    if (this.isLive) this.#end(undefined);
  }

  fail(errors: readonly GraphQLError[]): void {
    if (!this.isLive) return;
    this.observed?.fail(errors);
    if (closeCodeOf(errors) !== undefined) this.closeSocket();
    else this.#end(this.#endpoint.core.formatErrors(errors, this.origin));
  }

  protected waitForClient(): Promise<void> | undefined {
    return this.queue.waitForDrain();
  }

  protected override sendCursor(cursor: string): void {
    const before = this.#format.cursorLine(cursor);
    if (before !== '') this.#push({ before, after: '\n' }, NO_BODY, 'batched');
  }

  protected onRelease(): void {}

  /** Ends the response without its ending, and its connection, so that the client connects again. */
  closeSocket(): void {
    if (this.isClosing) return;
    this.sendPosition();
    this.#cancel();
    this.queue.flushAll();
    if (this.#endpoint.core.cursors !== undefined) this.writer.write(this.#format.retryMessage());
    this.writer.endConnection();
  }

  /** Disconnects a client whose queue is full. Its messages are lost. */
  closeSlowClient(): void {
    this.#cancel();
    this.queue.discard();
    this.writer.destroy();
  }

  ping(): void {
    this.sendPosition();
    this.writer.keepAlive();
  }

  terminate(): void {
    this.writer.destroy();
  }

  expireBy(time: number): void {
    this.#expiresAt = time;
  }

  checkDeadlines(now: number): void {
    if (Date.now() >= this.#expiresAt) this.closeSocket();
    this.#deadlines?.check(now, this);
  }

  /** Ends the response after its last message, or with errors. */
  #end(errors: readonly GraphQLFormattedError[] | undefined): void {
    if (errors !== undefined) {
      const envelope = this.#format.errorEnvelope(this.#hasResults);
      this.queue.push(envelope, Buffer.from(JSON.stringify(errors)), 'soon');
    }
    this.release();
    this.isClosing = true;
    this.#deadlines?.onClosing();
    this.queue.flushAll();
    this.writer.end();
  }

  #cancel(): void {
    this.isClosing = true;
    this.#deadlines?.onClosing();
    this.cancel();
  }

  /** Called when the response has ended. */
  #onClosed(): void {
    this.#cancel();
    this.queue.discard();
    this.#endpoint.remove(this);
    if (this.#places !== undefined)
      this.#endpoint.core.clients?.release(this.#places, 'connections', 'subscriptions');
  }

  #push(envelope: Envelope, body: Buffer, mode: FlushMode): void {
    if (this.isClosing) return;
    if (this.queue.makeRoom(this.#endpoint.settings.limits.bufferedBytes, this)) {
      this.queue.push(envelope, body, mode);
    } else this.closeSlowClient();
  }

  #withCursor(cursor: string): Envelope {
    const before = this.#format.cursorLine(cursor) + this.before;
    return { before, after: this.after };
  }
}

/** Larger bodies are written by reference: they would be copied for each client otherwise. */
const MAX_COPIED = 16 * 1024;

/** The messages of one event stream. */
class StreamQueue extends OutputQueue {
  readonly #writer: StreamWriter;
  readonly #joined: JoinedMessages;

  constructor(writer: StreamWriter, scheduler: FlushScheduler, joined: JoinedMessages) {
    super(scheduler);
    this.#writer = writer;
    this.#joined = joined;
  }

  protected get sentBytes(): number {
    return this.#writer.pendingBytes;
  }

  protected get isWritable(): boolean {
    return !this.#writer.isClosed;
  }

  protected isFull(): boolean {
    const drained = this.isPaused ? undefined : this.#writer.waitForDrain();
    if (drained !== undefined) {
      this.isPaused = true;
      void drained.then(() => this.onDrain());
    }
    return this.isPaused;
  }

  protected write(messages: Messages): void {
    const { envelopes, bodies } = messages;
    const [body] = bodies;
    const [envelope] = envelopes;
    if (bodies.length > 1 || body === undefined || envelope === undefined || body.length <= MAX_COPIED) {
      this.#writer.write(this.#joined.textOf(messages), 'latin1');
      return;
    }
    this.#writer.write(envelope.before, 'latin1');
    this.#writer.write(body);
    this.#writer.write(envelope.after, 'latin1');
  }
}

/**
 * Joins messages to one text, one character per byte. Keeps the last one: clients of a shared subscription have equal
 * messages in their queues.
 */
class JoinedMessages {
  #last: Pick<Messages, 'bodies' | 'envelopes'> = { bodies: [], envelopes: [] };
  #text = '';

  textOf(messages: Messages): string {
    if (this.#isLast(messages)) return this.#text;
    const { bodies, envelopes } = messages;
    this.#last = messages;
    this.#text = '';
    for (let i = 0; i < bodies.length; i++) {
      const { before, after } = envelopes[i] as Envelope;
      this.#text += before + (bodies[i] as Buffer).toString('latin1') + after;
    }
    return this.#text;
  }

  #isLast({ bodies, envelopes }: Messages): boolean {
    const last = this.#last;
    if (bodies.length !== last.bodies.length) return false;
    for (let i = 0; i < bodies.length; i++) {
      const [own, other] = [envelopes[i] as Envelope, last.envelopes[i] as Envelope];
      if (bodies[i] !== last.bodies[i] || own.before !== other.before || own.after !== other.after)
        return false;
    }
    return true;
  }
}
