import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { OperationResult, SubscribeRequest, SubscriptionResults } from '../../types/testing.ts';
import { packages } from '../diagnostics/packages.ts';
import { optionError } from '../options/rules.ts';
import { SUBSCRIBE_OPTIONS } from '../options/scopes.ts';
import {
  type Connection,
  closeConnection,
  openConnection,
  requestHeaders,
  sendRequest,
  type Target,
  targetOf,
} from './connection.ts';
import { GRAPHQL_PATH, type OperationParams, paramsOf, readBody } from './messages.ts';
import { checkSubscription } from './options.ts';

/** The channel of diagnostics/events.ts, which this folder does not import: tests need not install graphql. */
const CHANNEL = 'espalier:graphql:subscribe';

/** Starts an operation over a new connection, and resolves when the source stream is open. */
export async function startSubscription(
  targetValue: unknown,
  given: unknown,
): Promise<SubscriptionResults<unknown>> {
  const target = targetOf(SUBSCRIBE_OPTIONS, targetValue);
  const request = checkSubscription(given);
  const { signal } = request;
  signal?.throwIfAborted();
  const client = await openClient(target, request);
  const abort = (): void => client.abort(signal?.reason);
  signal?.addEventListener('abort', abort);
  client.results.onEnd = () => signal?.removeEventListener('abort', abort);
  // The modules of the transport were loaded meanwhile.
  if (signal?.aborted) abort();
  let onOpen: (message: unknown) => void = () => undefined;
  const open = new Promise<void>((resolve) => {
    onOpen = (message) => {
      if (client.isOrigin(message as SubscribeMessage)) resolve();
    };
  });
  subscribe(CHANNEL, onOpen);
  try {
    await Promise.race([open, client.responded]);
  } catch (error) {
    await client.close();
    signal?.throwIfAborted();
    throw error;
  } finally {
    unsubscribe(CHANNEL, onOpen);
  }
  return client.results;
}

async function openClient(
  target: Target,
  request: SubscribeRequest<unknown, object>,
): Promise<SubscriptionClient> {
  const params = await paramsOf(request);
  if (request.transport === 'event-stream') {
    return new EventStreamClient(openConnection(target, request), params, request);
  }
  if (target.isApp) {
    const message =
      'an Express app has no WebSockets; pass the server of attachSubscriptions(server, handler), which need not listen, or use transport: "event-stream"';
    throw optionError(SUBSCRIBE_OPTIONS, message);
  }
  serveWebSockets(target);
  if (target.server.listenerCount('upgrade') === 0) {
    const message =
      'the server has no WebSockets; call attachSubscriptions(server, handler) before, or use transport: "event-stream"';
    throw optionError(SUBSCRIBE_OPTIONS, message);
  }
  const { WebSocket } = packages.ws();
  return new WebSocketClient(WebSocket, openConnection(target, request), params, request);
}

/** The message of the diagnostics channel for source streams that are open. */
interface SubscribeMessage {
  readonly id: unknown;
  readonly origin: { readonly request?: { readonly socket?: unknown } | undefined };
}

/** The client's side of one operation over one transport. */
abstract class SubscriptionClient {
  readonly results: ResultQueue = new ResultQueue(this);
  /** Resolves when a result has arrived or the operation is complete; rejects if the connection is refused. */
  readonly responded: Promise<void>;
  protected readonly connection: Connection;
  #isClosing = false;
  #onResponse: () => void = () => undefined;
  #onFailure: (error: unknown) => void = () => undefined;

  constructor(connection: Connection) {
    this.connection = connection;
    this.responded = new Promise((resolve, reject) => {
      this.#onResponse = resolve;
      this.#onFailure = reject;
    });
  }

  /** Whether the source stream of this operation was opened. */
  abstract isOrigin(message: SubscribeMessage): boolean;

  /** Stops reading from the connection, so that the server sees a slow client. */
  abstract pause(): void;

  abstract resume(): void;

  /** Ends the operation and closes the connection. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await closeConnection(this.connection);
  }

  /** Disconnects without a message of the protocol. The next read rejects with the reason. */
  abort(reason: unknown): void {
    this.fail(reason);
    this.connection.client.destroy();
  }

  /** Takes a result, whose text has this many characters. */
  protected receive(result: Result, size: number): void {
    this.#onResponse();
    this.results.push(result, size);
  }

  protected complete(): void {
    this.#onResponse();
    void this.close().then(() => this.results.end());
  }

  protected fail(error: unknown): void {
    if (this.#isClosing) return;
    this.#onFailure(error);
    this.results.fail(error);
  }

  /** Fails with the status and the body of a response that refuses the connection. */
  protected async refuse(response: IncomingMessage): Promise<void> {
    const reason = (await readBody(response)).toString().trim();
    this.fail(new ConnectionClosedError({ status: response.statusCode ?? 0, reason }));
  }
}

const SUBPROTOCOL = 'graphql-transport-ws';
/** The default of `attachSubscriptions`. */
const MAX_PAYLOAD = 1024 * 1024;

/** The servers of handlers that accept WebSockets already. */
const accepting = new WeakSet<object>();

/** Lets the server of a handler accept WebSockets, as a server with `attachSubscriptions` does. */
function serveWebSockets({ server, websocketHandler }: Target): void {
  if (websocketHandler === undefined || accepting.has(server)) return;
  const { WebSocketServer } = packages.ws();
  accepting.add(server);
  const websocketServer = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MAX_PAYLOAD,
  });
  (server as Server).on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    websocketServer.handleUpgrade(req, socket, head, (websocket) => websocketHandler(websocket, req));
  });
}

/** A client of the subprotocol `graphql-transport-ws` with one operation. */
class WebSocketClient extends SubscriptionClient {
  /** The id of the operation, which is unique in the process. */
  readonly #id = randomUUID();
  readonly #websocket: WebSocket;
  readonly #params: OperationParams;
  #isActive = false;

  constructor(
    Implementation: typeof WebSocket,
    connection: Connection,
    params: OperationParams,
    request: SubscribeRequest<unknown, object>,
  ) {
    super(connection);
    this.#params = params;
    const { path = GRAPHQL_PATH, connectionParams } = request;
    const websocket = new Implementation(`ws://localhost${path}`, [SUBPROTOCOL], {
      createConnection: () => connection.client,
      headers: Object.fromEntries(
        Object.entries(requestHeaders({}, request)).map(([name, value]) => [name, `${value}`]),
      ),
      perMessageDeflate: false,
    });
    this.#websocket = websocket;
    websocket.on('open', () => this.#send({ type: 'connection_init', payload: connectionParams }));
    websocket.on('message', (data) => this.#read(String(data)));
    websocket.on('close', (code, reason) => {
      this.fail(new ConnectionClosedError({ code, reason: reason.toString() }));
    });
    websocket.on('unexpected-response', (_request, response) => {
      this.refuse(response).catch((error: unknown) => this.fail(error));
    });
    websocket.on('error', (error) => this.fail(connection.server.handlerError?.error ?? error));
  }

  isOrigin({ id }: SubscribeMessage): boolean {
    return id === this.#id;
  }

  pause(): void {
    this.#websocket.pause();
  }

  resume(): void {
    this.#websocket.resume();
  }

  override close(): Promise<void> {
    if (this.#isActive) this.#send({ id: this.#id, type: 'complete' });
    this.#isActive = false;
    const closed = super.close();
    // Before the handshake there is no socket to send a close frame to.
    if (this.#websocket.readyState === this.#websocket.OPEN) this.#websocket.close(1000);
    return closed;
  }

  #send(message: object): void {
    if (this.#websocket.readyState === this.#websocket.OPEN) this.#websocket.send(JSON.stringify(message));
  }

  #read(text: string): void {
    const { type, payload }: { type: string; payload?: unknown } = JSON.parse(text);
    if (type === 'connection_ack') {
      this.results.acknowledgement = payload;
      this.#isActive = true;
      this.#send({ id: this.#id, type: 'subscribe', payload: this.#params });
    } else if (type === 'next') this.receive(payload as Result, text.length);
    else if (type === 'error' || type === 'complete') {
      if (type === 'error') this.receive({ errors: payload } as Result, text.length);
      this.#isActive = false;
      this.complete();
    }
  }
}

const HEADERS = { accept: 'text/event-stream', 'content-type': 'application/json' };

/** A client of GraphQL over server-sent events ("distinct connections mode" of graphql-sse) with one operation. */
class EventStreamClient extends SubscriptionClient {
  #response: IncomingMessage | undefined;
  /** The text of an event whose end has not arrived. */
  #pending = '';

  constructor(connection: Connection, params: OperationParams, request: SubscribeRequest<unknown, object>) {
    super(connection);
    const body = Buffer.from(JSON.stringify(params));
    const message = { method: 'POST', path: request.path ?? GRAPHQL_PATH, headers: HEADERS, body };
    sendRequest(connection, message, requestHeaders(HEADERS, request))
      .then((response) => this.#read(response))
      // The connection may fail after the headers and before the first result.
      .catch((error: unknown) => this.fail(error));
  }

  isOrigin({ origin }: SubscribeMessage): boolean {
    return origin.request?.socket === this.connection.server;
  }

  pause(): void {
    this.#response?.pause();
  }

  resume(): void {
    this.#response?.resume();
  }

  async #read(response: IncomingMessage): Promise<void> {
    this.#response = response;
    if (!response.headers['content-type']?.startsWith('text/event-stream')) return this.refuse(response);
    response.setEncoding('utf8').on('data', (text: string) => this.#parse(text));
    response.on('error', (error) => this.fail(error));
    response.on('end', () => this.complete());
  }

  #parse(text: string): void {
    const events = (this.#pending + text).split('\n\n');
    this.#pending = events.pop() ?? '';
    for (const event of events) {
      const fields = new Map(event.split('\n').map(splitField));
      const data = fields.get('data');
      if (fields.get('event') === 'next' && data !== undefined) this.receive(JSON.parse(data), data.length);
    }
  }
}

function splitField(line: string): [name: string, value: string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon), line.slice(colon + 1).trimStart()];
}

type Result = OperationResult<unknown>;

/** Characters of the results that may be queued before the client stops reading. */
const MAX_QUEUED = 64 * 1024;

/** The results that a client has received, in order, until they are read. */
class ResultQueue implements SubscriptionResults<unknown> {
  acknowledgement: unknown;
  /** Called after the last result was received. */
  onEnd: () => void = () => undefined;
  readonly #client: SubscriptionClient;
  readonly #results: { readonly result: Result; readonly size: number }[] = [];
  #queued = 0;
  readonly #waiting: PromiseWithResolvers[] = [];
  #isEnded = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(client: SubscriptionClient) {
    this.#client = client;
  }

  push(result: Result, size: number): void {
    if (this.#isEnded) return;
    const reader = this.#waiting.shift();
    if (reader === undefined) {
      this.#results.push({ result, size });
      this.#queued += size;
      if (this.#queued >= MAX_QUEUED) this.#client.pause();
    } else reader.resolve({ value: result, done: false });
  }

  /** Ends the results after those that are queued. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.onEnd();
    for (const { resolve } of this.#waiting.splice(0)) resolve({ value: undefined, done: true });
  }

  /** Lets the read after those of the queued results reject. */
  fail(error: unknown): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.onEnd();
    const [reader, ...others] = this.#waiting.splice(0);
    if (reader === undefined) this.#failure = { error };
    else reader.reject(error);
    for (const { resolve } of others) resolve({ value: undefined, done: true });
  }

  async next(): Promise<IteratorResult<Result, undefined>> {
    const queued = this.#results.shift();
    if (queued !== undefined) {
      this.#queued -= queued.size;
      if (this.#queued < MAX_QUEUED) this.#client.resume();
      return { value: queued.result, done: false };
    }
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure.error;
    if (this.#isEnded) return { value: undefined, done: true };
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  async return(): Promise<IteratorResult<Result, undefined>> {
    this.#results.length = 0;
    this.#failure = undefined;
    this.end();
    await this.#client.close();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

interface PromiseWithResolvers {
  resolve(result: IteratorResult<Result, undefined>): void;
  reject(error: unknown): void;
}

/** The server has refused or closed the connection of `subscribe`. */
export class ConnectionClosedError extends Error {
  override readonly name = 'ConnectionClosedError';
  /** The code of the close frame (RFC 6455 §7.4), such as 4403; undefined for a refused handshake. */
  readonly code: number | undefined;
  /** The status of a refused handshake, or of a request for an event stream; undefined for a close frame. */
  readonly status: number | undefined;
  /** The reason of the close frame, or the body of the response. */
  readonly reason: string;

  constructor({ code, status, reason }: { code?: number; status?: number; reason: string }) {
    const what =
      status === undefined
        ? `The server closed the connection with ${code}`
        : `The server refused the connection with status ${status}`;
    super(reason === '' ? what : `${what}: ${reason}`);
    this.code = code;
    this.status = status;
    this.reason = reason;
  }
}
