import { IncomingMessage } from 'node:http';
import type { Http2Server, Http2ServerRequest, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { CONNECTION_HEADERS } from '../http/reply.ts';
import { loadHttp2 } from './classes.ts';

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
export function acceptWebSockets(server: Pick<Http2Server, 'on' | 'listenerCount' | 'emit'>): void {
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
    this.#stream.destroy();
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
export function releaseResetStreams(server: Pick<Http2Server, 'on'>): void {
  const streams = new Set<ServerHttp2Stream>();
  let timer: NodeJS.Timeout | undefined;
  const search = (): void => {
    for (const stream of streams) if (stream.closed && stream.state.state === UNKNOWN) stream.destroy();
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
    stream.on('aborted', destroy).on('close', forget);
  });
}

function destroy(this: ServerHttp2Stream): void {
  this.destroy();
}
