import {
  type ClientRequest,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { Server as HttpsServer } from 'node:https';
import { Socket } from 'node:net';
import { type Duplex, duplexPair, Readable } from 'node:stream';
import { setImmediate } from 'node:timers';
import type { WebsocketHandler } from '../../types/subscriptions.ts';
import type { InjectedConnection } from '../../types/testing.ts';
import { type OptionScope, wrongArgument } from '../options/rules.ts';
import { isFunction, isObject } from '../options/values.ts';
import { type Body, cookieHeader, type Message } from './messages.ts';

/** A connection of a client to a target. */
export interface Connection {
  readonly client: MemorySocket;
  readonly server: MemorySocket;
}

/** The request headers by name. */
type RequestHeaders = Record<string, string | number | string[]>;

/** Connects a client within the process. */
export function openConnection(
  target: Target,
  { remoteAddress = '127.0.0.1' }: InjectedConnection,
): Connection {
  const connection = connectInMemory({ remoteAddress, isEncrypted: target.server instanceof HttpsServer });
  connect(target, connection.server);
  return connection;
}

/** The headers that a request has unless the user sets others. */
export function requestHeaders(
  defaults: Readonly<Record<string, string>>,
  { headers = {}, cookies }: InjectedConnection,
): RequestHeaders {
  const all: RequestHeaders = { host: 'localhost', ...defaults };
  if (cookies !== undefined && Object.keys(cookies).length > 0) all['cookie'] = cookieHeader(cookies);
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) all[name.toLowerCase()] = typeof value === 'object' ? [...value] : value;
  }
  return all;
}

/** Sends a request over a connection. Resolves when the headers of its response have arrived. */
export async function sendRequest(
  connection: Connection,
  message: Message,
  headers: RequestHeaders,
): Promise<IncomingMessage> {
  const { client } = connection;
  const { method, path, body } = message;
  const options = { createConnection: () => client, method, path, headers: withFraming(headers, body) };
  const request = httpRequest(options);
  const responded = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve);
    // Also for errors after the response, such as those of a body that the server has not read.
    request.on('error', (error) => reject(connection.server.handlerError?.error ?? error));
    // Without an error: after 101 Switching Protocols.
    request.once('close', () => reject(new Error('The server closed the connection without a response')));
  });
  if (headers['expect'] === undefined) sendBody(request, body);
  else {
    request.once('continue', () => sendBody(request, body));
    request.flushHeaders();
  }
  return responded;
}

/** Adds the header that marks the end of a body: Node adds none to GET, DELETE and OPTIONS, whose body a server ignores. */
function withFraming(headers: RequestHeaders, body: Body): RequestHeaders {
  if (body === undefined || 'content-length' in headers || 'transfer-encoding' in headers) return headers;
  return Buffer.isBuffer(body)
    ? { ...headers, 'content-length': body.length }
    : { ...headers, 'transfer-encoding': 'chunked' };
}

function sendBody(request: ClientRequest, body: Body): void {
  if (body === undefined || Buffer.isBuffer(body)) {
    request.end(body);
    return;
  }
  const source = Readable.from(body, { objectMode: false });
  source.once('error', (error) => request.destroy(error));
  // A server that refuses a body closes the connection.
  request.once('close', () => source.destroy());
  source.pipe(request);
}

/** Closes both ends, and resolves when the server has released everything that belongs to the connection. */
export async function closeConnection({ client, server }: Connection): Promise<void> {
  const closed = server.closed || new Promise((resolve) => server.once('close', resolve));
  client.destroy();
  // A server that does not read does not see that the client has disconnected. A timeout would close its socket.
  setImmediate(() => setImmediate(() => server.destroy()));
  await closed;
}

/** A server that gets connections within the process. */
export interface Target {
  readonly server: Server | HttpsServer;
  /** Whether the target is an app, whose sockets belong to a server that `subscribe` does not get. */
  readonly isApp: boolean;
  /** Serves the WebSockets of a handler that has no server. */
  readonly websocketHandler: WebsocketHandler | undefined;
}

type Handler = ((req: IncomingMessage, res: ServerResponse, next?: (error?: unknown) => void) => unknown) & {
  readonly websocketHandler?: WebsocketHandler;
};

/** The target of each handler, so that requests of one test share what is created per server. */
const targets = new WeakMap<object, Target>();

/**
 * Returns the server of a target. A handler gets one that never listens.
 *
 * @throws TypeError (code `ERR_OPTION`) for any other value.
 */
export function targetOf(scope: OptionScope, value: unknown): Target {
  if (value instanceof Server || value instanceof HttpsServer) {
    return { server: value, isApp: false, websocketHandler: undefined };
  }
  if (!isHandler(value)) {
    const accepted =
      'a handler of graphqlHTTP or staticFiles, a middleware, an Express app, or a server of node:http';
    throw wrongArgument(scope, 'target', value, accepted);
  }
  const known = targets.get(value);
  if (known !== undefined) return known;
  const isApp = 'listen' in value;
  const server = createServer(isApp ? (req, res) => void run(value, req, res) : withNext(value));
  const target = { server, isApp, websocketHandler: value.websocketHandler };
  targets.set(value, target);
  return target;
}

const isHandler = (value: unknown): value is Handler => isFunction(value);

/** Connects a client to a server, as the event of a server that listens. */
function connect({ server }: Target, socket: Duplex): void {
  server.emit(server instanceof HttpsServer ? 'secureConnection' : 'connection', socket);
}

/** Calls a middleware with a `next` that ends the response. */
function withNext(handler: Handler): (req: IncomingMessage, res: ServerResponse) => void {
  return (req, res) => {
    const next = (error?: unknown): void => {
      const hasError = isError(error);
      // Express and Connect ignore it too: a middleware may continue after its response.
      if (!hasError && res.headersSent) return;
      const status = hasError ? statusOf(error) : 404;
      if (status === undefined || res.headersSent) fail(req, error);
      else res.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(STATUS_CODES[status]);
    };
    run(handler, req, res, next);
  };
}

/** Calls the handler. Its exception, or the rejection of its promise, becomes that of `inject`. */
function run(
  handler: Handler,
  req: IncomingMessage,
  res: ServerResponse,
  next?: (error?: unknown) => void,
): void {
  try {
    const returned = next === undefined ? handler(req, res) : handler(req, res, next);
    Promise.resolve(returned).catch((error: unknown) => fail(req, error));
  } catch (error) {
    fail(req, error);
  }
}

/** Whether a value that is passed to `next` is an error, as for Express: callbacks pass null if there is none. */
const isError = (value: unknown): boolean => Boolean(value) && value !== 'route' && value !== 'router';

/** The status of an error for the client, as `http-errors` sets it; undefined for an unexpected error. */
function statusOf(error: unknown): number | undefined {
  if (!isObject(error)) return undefined;
  const status = error['status'] ?? error['statusCode'];
  return typeof status === 'number' && status in STATUS_CODES && status >= 400 ? status : undefined;
}

function fail(req: IncomingMessage, error: unknown): void {
  const { socket } = req;
  // Reading the body of a client that has disconnected. `inject` rejects with the reason for which it did.
  if (error !== undefined && error === req.errored) return;
  // After the end of the exchange no promise can reject with the error.
  if (!(socket instanceof MemorySocket) || socket.destroyed) throw error;
  socket.handlerError = { error };
  socket.destroy();
}

/** Bytes that one side may write before the other side reads, like the buffers of a kernel: half of them at each end. */
const KERNEL_BUFFER = 256 * 1024;

/** The members of the socket of a server that describe its client. */
interface Addresses {
  readonly remoteAddress: string;
  /** Whether the connection counts as one with TLS, for `req.secure` of Express. */
  readonly isEncrypted: boolean;
}

/**
 * One end of a connection within the process: a stream of `duplexPair` with the members of Node's `Socket`, which servers and
 * middleware use. The bytes that it receives are delivered in later iterations of the event loop, as those of a real connection.
 */
class MemorySocket extends Socket {
  override readonly remoteAddress: string;
  override readonly remoteFamily: string;
  override readonly remotePort: number = 49_152;
  override readonly localAddress: string;
  override readonly localPort: number = 80;
  override bytesRead = 0;
  override bytesWritten = 0;
  /** The error of the handler, which ends the exchange on this socket. */
  handlerError: { readonly error: unknown } | undefined;
  readonly #stream: Duplex;
  #peer: MemorySocket = this;
  #wantsData = true;
  #isScheduled = false;

  constructor(stream: Duplex, { remoteAddress, isEncrypted }: Addresses) {
    super({ allowHalfOpen: true });
    const isIPv6 = remoteAddress.includes(':');
    this.remoteAddress = remoteAddress;
    this.remoteFamily = isIPv6 ? 'IPv6' : 'IPv4';
    this.localAddress = isIPv6 ? '::1' : '127.0.0.1';
    if (isEncrypted) Object.defineProperty(this, 'encrypted', { value: true });
    this.#stream = stream;
    stream.on('readable', () => this.#schedule());
    stream.once('end', () => {
      if (!this.destroyed) this.push(null);
    });
  }

  connectTo(peer: MemorySocket): void {
    this.#peer = peer;
  }

  override _read(): void {
    this.#wantsData = true;
    this.#schedule();
  }

  override _write(chunk: string | Uint8Array, encoding: BufferEncoding, done: Done): void {
    this.#transmit(copyOf(chunk, encoding), done);
  }

  override _writev(chunks: { chunk: string | Uint8Array; encoding: BufferEncoding }[], done: Done): void {
    this.#transmit(Buffer.concat(chunks.map(({ chunk, encoding }) => copyOf(chunk, encoding))), done);
  }

  override _final(done: Done): void {
    this.#stream.end();
    done();
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#stream.end();
    // Drops what has arrived, for which the other end may wait.
    this.#schedule();
    super._destroy(error, done);
  }

  // Only handles of the operating system keep a process alive.
  override ref(): this {
    return this;
  }
  override unref(): this {
    return this;
  }

  #transmit(bytes: Buffer, done: Done): void {
    const peer = this.#peer;
    if (peer.destroyed) {
      done(brokenPipe());
      return;
    }
    this.#touch();
    this.bytesWritten += bytes.length;
    if (this.#stream.write(bytes)) done();
    else this.#stream.once('drain', () => done(peer.destroyed ? brokenPipe() : null));
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#deliver();
    });
  }

  #deliver(): void {
    while (this.#wantsData || this.destroyed) {
      const bytes: Buffer | null = this.#stream.read();
      if (bytes === null) return;
      if (this.destroyed) continue;
      this.#touch();
      this.bytesRead += bytes.length;
      this.#wantsData = this.push(bytes);
    }
  }

  /** Restarts the timeout of the socket. */
  #touch(): void {
    if (this.timeout !== undefined && this.timeout > 0) this.setTimeout(this.timeout);
  }
}

type Done = (error?: Error | null) => void;

/** Copies a chunk: code that writes to a `Socket` may reuse the buffer as soon as it was written. */
function copyOf(chunk: string | Uint8Array, encoding: BufferEncoding): Buffer {
  return typeof chunk === 'string' ? Buffer.from(chunk, encoding) : Buffer.from(chunk);
}

function brokenPipe(): Error {
  return Object.assign(new Error('write EPIPE'), { code: 'EPIPE', syscall: 'write' });
}

/** Creates the two ends of a connection. */
function connectInMemory(addresses: Addresses): { client: MemorySocket; server: MemorySocket } {
  const [clientEnd, serverEnd] = duplexPair({ highWaterMark: KERNEL_BUFFER / 2 });
  const client = new MemorySocket(clientEnd, { ...addresses, remoteAddress: '127.0.0.1' });
  const server = new MemorySocket(serverEnd, addresses);
  client.connectTo(server);
  server.connectTo(client);
  return { client, server };
}
