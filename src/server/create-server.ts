import * as http from 'node:http';
import { IncomingMessage, type ServerResponse } from 'node:http';
import type * as http2 from 'node:http2';
import type { Http2Server, Http2ServerRequest, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type * as https from 'node:https';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers';
import type {
  App,
  Http2App,
  Http2Options,
  HttpOptions,
  HttpsOptions,
  SecureHttp2Options,
} from '../../types/server.ts';
import { deferContinue } from '../http/body.ts';
import { CONNECTION_HEADERS } from '../http/reply.ts';
import {
  type Classes,
  classesOfApp,
  type Http2Classes,
  isExpressApp,
  loadHttp2,
  NODE_CLASSES,
  withHttp1Headers,
  withOwnMembers,
} from './classes.ts';
import { hasTlsOption } from './options.ts';

export type AnyOptions = HttpOptions | HttpsOptions | Http2Options | SecureHttp2Options;
export type AnyServer = http.Server | https.Server | http2.Http2Server | http2.Http2SecureServer;

/** Creates the Node server that the options select, with classes that match the app. */
export function createNodeServer(app: App & Http2App, options: AnyOptions): AnyServer {
  const secure = hasTlsOption(options);
  if (options.http2) {
    const probing = withKeepAlive(options);
    const given = options.webSockets ? withConnectProtocol(probing) : probing;
    const server = secure ? secureHttp2Server(app, given) : http2Server(app, given);
    releaseResetStreams(server);
    if (options.webSockets) acceptWebSockets(server);
    return server;
  }
  const withClasses = { ...options, ...http1ClassesFor(app, options) };
  return secure
    ? process.getBuiltinModule('node:https').createServer(withClasses, app)
    : http.createServer(withClasses, app);
}

/**
 * Turns on the probes of TCP, which find clients that have disappeared. Node has no time limit for idle connections
 * over HTTP/2; those of HTTP/1.1 end after `keepAliveTimeout`.
 */
const withKeepAlive = <Options extends Http2Options | SecureHttp2Options>(options: Options): Options => ({
  ...options,
  keepAlive: options.keepAlive ?? true,
  keepAliveInitialDelay: options.keepAliveInitialDelay ?? 60_000,
});

/** Announces the extended CONNECT of RFC 8441 to clients. */
const withConnectProtocol = <Options extends Http2Options | SecureHttp2Options>(
  options: Options,
): Options => ({
  ...options,
  settings: { ...options.settings, enableConnectProtocol: true },
});

function http2Server(app: Http2App, options: Http2Options): http2.Http2Server {
  return loadHttp2().createServer({ ...options, ...http2ClassesFor(app, options) }, app);
}

function secureHttp2Server(app: Http2App, options: SecureHttp2Options): http2.Http2SecureServer {
  const { IncomingMessage, ServerResponse } = http1ClassesFor(app, {
    IncomingMessage: options.Http1IncomingMessage,
    ServerResponse: options.Http1ServerResponse,
  });
  const http1 = {
    allowHTTP1: options.allowHTTP1 ?? true,
    Http1IncomingMessage: IncomingMessage,
    Http1ServerResponse: ServerResponse,
  };
  return loadHttp2().createSecureServer({ ...options, ...http1, ...http2ClassesFor(app, options) }, app);
}

/** Returns classes whose instances have the prototypes of the app. */
function http1ClassesFor(app: App, given: { [Name in keyof Classes]?: Classes[Name] | undefined }): Classes {
  const base = {
    IncomingMessage: given.IncomingMessage ?? NODE_CLASSES.IncomingMessage,
    ServerResponse: given.ServerResponse ?? NODE_CLASSES.ServerResponse,
  };
  return isExpressApp(app) ? classesOfApp(app, base) : base;
}

function http2ClassesFor(
  app: Http2App,
  given: { [Name in keyof Http2Classes]?: Http2Classes[Name] | undefined },
): Http2Classes {
  const node = loadHttp2();
  const base = withHttp1Headers({
    Http2ServerRequest: given.Http2ServerRequest ?? node.Http2ServerRequest,
    Http2ServerResponse: given.Http2ServerResponse ?? node.Http2ServerResponse,
  });
  return isExpressApp(app) ? withOwnMembers(base) : base;
}

/** The members of a server that are used here. */
interface ContinueServer {
  on(event: 'checkContinue', listener: (req: IncomingMessage, res: ServerResponse) => void): unknown;
  listenerCount(event: 'checkContinue'): number;
  emit(event: 'request', req: IncomingMessage, res: ServerResponse): unknown;
}

/**
 * Lets an app refuse a request with `Expect: 100-continue` before the client sends the body (RFC 9110
 * §10.1.1). If the user listens to `checkContinue`, that listener alone handles these requests, as on any
 * Node server.
 */
export function handleExpectContinue(server: ContinueServer): void {
  server.on('checkContinue', (req, res) => {
    if (server.listenerCount('checkContinue') > 1) return;
    if (req.httpVersionMajor < 2) deferContinue(req, res);
    else res.writeContinue();
    server.emit('request', req, res);
  });
}

const EMPTY = Buffer.alloc(0);
/** The end of the head of an HTTP/1.1 response. */
const HEAD_END = '\r\n\r\n';
/** Sixteen zero bytes: over HTTP/2 clients send no key (RFC 8441 §5.1), which `ws` requires. */
const KEY = 'AAAAAAAAAAAAAAAAAAAAAA==';
/** Headers that only HTTP/1.1 responses have (RFC 9113 §8.2.2, RFC 8441 §5). */
const HTTP1_HEADERS: ReadonlySet<string> = new Set([...CONNECTION_HEADERS, 'sec-websocket-accept']);

/**
 * Emits WebSockets over HTTP/2 (RFC 8441) as `upgrade` events. The socket of the event translates the
 * HTTP/1.1 response that the listener writes, so listeners for HTTP/1.1 work unchanged, those of `ws` and
 * other packages included.
 */
function acceptWebSockets(server: Pick<Http2Server, 'on' | 'listenerCount' | 'emit'>): void {
  server.on(
    'connect',
    (req: Http2ServerRequest | IncomingMessage, socketOrResponse: { destroy(): unknown }) => {
      if (!('stream' in req)) {
        // A CONNECT over HTTP/1.1, which Node closes without this listener.
        if (server.listenerCount('connect') === 1) socketOrResponse.destroy();
        return;
      }
      const { headers, stream } = req;
      // The extended CONNECT of another protocol, or the CONNECT of a proxy.
      if (headers[':protocol'] !== 'websocket' || server.listenerCount('upgrade') === 0) {
        if (server.listenerCount('connect') === 1) stream.respond({ ':status': 501 }, { endStream: true });
        return;
      }
      const socket = new StreamSocket(stream);
      server.emit('upgrade', upgradeRequest(headers, socket), socket, EMPTY);
    },
  );
}

/** Creates the HTTP/1.1 request that corresponds to an extended CONNECT. */
function upgradeRequest(headers: IncomingHttpHeaders, socket: StreamSocket): IncomingMessage {
  // The duplex has the members of a socket that requests use.
  const request = new IncomingMessage(socket as Duplex as Socket);
  request.method = 'GET';
  request.url = headers[':path'] ?? '/';
  // With the minor version 0 Node does not chunk the response of a middleware.
  Object.assign(request, { httpVersion: '2.0', httpVersionMajor: 2, httpVersionMinor: 0 });
  const all: IncomingHttpHeaders = {
    host: undefined,
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-key': KEY,
  };
  for (const [name, value] of Object.entries(headers)) if (!name.startsWith(':')) all[name] = value;
  // RFC 9113 §8.3.1.
  all.host = headers[':authority'] ?? headers.host;
  request.headers = all;
  request.rawHeaders = Object.entries(all).flatMap(([name, value]) => [name, String(value)]);
  request.complete = true;
  request.push(null);
  return request;
}

/** The stream of one WebSocket as a socket. The first bytes written are the head of an HTTP/1.1 response. */
class StreamSocket extends Duplex {
  bytesRead = 0;
  bytesWritten = 0;
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;
  readonly #stream: ServerHttp2Stream;
  #head: string | undefined = '';

  constructor(stream: ServerHttp2Stream) {
    super({ allowHalfOpen: true });
    this.#stream = stream;
    const { session } = stream;
    this.remoteAddress = session?.socket.remoteAddress;
    this.remotePort = session?.socket.remotePort;
    // As on a TLSSocket: only encrypted sockets have the member.
    if (session?.encrypted === true) Object.defineProperty(this, 'encrypted', { value: true });
    stream.on('data', (chunk: Buffer) => {
      this.bytesRead += chunk.length;
      if (!this.push(chunk)) stream.pause();
    });
    stream.on('end', () => this.push(null));
    stream.on('close', () => this.destroy());
    // After a reset `close` waits until all data is read, and `respond` throws.
    stream.on('aborted', () => {
      if (!this.writableEnded) this.destroy();
    });
    stream.on('error', (error) => this.destroy(error));
    // Before a listener reads, the stream waits.
    stream.pause();
  }

  override _read(): void {
    this.#stream.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.bytesWritten += chunk.length;
    if (this.#head === undefined) {
      this.#stream.write(chunk, done);
      return;
    }
    this.#head += chunk.toString('latin1');
    const end = this.#head.indexOf(HEAD_END);
    if (end === -1) {
      done();
      return;
    }
    const rest = Buffer.from(this.#head.slice(end + HEAD_END.length), 'latin1');
    this.#stream.respond(responseHeaders(this.#head.slice(0, end)));
    this.#head = undefined;
    if (rest.length > 0) this.#stream.write(rest, done);
    else done();
  }

  override _final(done: () => void): void {
    if (this.#head === undefined) {
      this.#stream.end(done);
      return;
    }
    // Ended without a response: Node would send the status 200.
    this.#stream.close(loadHttp2().constants.NGHTTP2_CANCEL);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    // Not within an event of the stream: see `releaseLater`.
    setImmediate(() => this.#stream.destroy());
    done(error);
  }

  /** Sockets of HTTP/1.1 have it; a stream has the time limit of its session. */
  setTimeout(): this {
    return this;
  }
}

/** Translates the head of an HTTP/1.1 response. A successful upgrade has the status 200 (RFC 8441 §5). */
function responseHeaders(head: string): Record<string, string | string[] | number> {
  const [statusLine = '', ...lines] = head.split('\r\n');
  const status = Number(statusLine.split(' ')[1]);
  const headers: Record<string, string | string[] | number> = { ':status': status === 101 ? 200 : status };
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    if (HTTP1_HEADERS.has(name)) continue;
    const value = line.slice(colon + 1).trim();
    const before = headers[name];
    headers[name] = before === undefined ? value : [before, value].flat().map(String);
  }
  return headers;
}

/** Milliseconds between two searches for streams that Node does not release. */
const SEARCH_INTERVAL = 5000;
/** NGHTTP2_STREAM_STATE_IDLE: nghttp2 does not know the stream, so nothing more can be sent. */
const UNKNOWN = 1;

/**
 * Destroys streams that the client has reset. After a reset with NO_ERROR, Node waits until the response is written,
 * which never happens if the bytes wait for the flow-control window. The session would wait for the stream, and Node
 * would not notice the end of its connection.
 */
function releaseResetStreams(server: Pick<Http2Server, 'on'>): void {
  const streams = new Set<ServerHttp2Stream>();
  let timer: NodeJS.Timeout | undefined;
  const search = (): void => {
    for (const stream of streams) releaseIfReset(stream);
    if (streams.size > 0) timer?.refresh();
    else timer = undefined;
  };
  // Functions that use `this`, so that a stream creates none.
  function forget(this: ServerHttp2Stream): void {
    streams.delete(this);
  }
  server.on('stream', (stream: ServerHttp2Stream) => {
    streams.add(stream);
    timer ??= setTimeout(search, SEARCH_INTERVAL).unref();
    // 'aborted' is emitted unless the response has ended.
    stream.on('aborted', releaseLater).on('close', forget);
  });
}

/**
 * `close` of a stream emits 'aborted' before it sends RST_STREAM. A stream that is destroyed there is never reset, and
 * nghttp2 asks for its bytes for ever.
 */
function releaseLater(this: ServerHttp2Stream): void {
  setImmediate(releaseIfReset, this);
}

/** Destroys a stream that nghttp2 has forgotten. */
function releaseIfReset(stream: ServerHttp2Stream): void {
  if (!stream.destroyed && stream.closed && stream.state.state === UNKNOWN) stream.destroy();
}
