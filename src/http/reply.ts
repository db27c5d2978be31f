import { AsyncResource } from 'node:async_hooks';
import { isAscii } from 'node:buffer';
import { type IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import { constants } from 'node:os';
import type { NextFunction } from '../../types/connect.ts';
import { readError, writeLog } from '../diagnostics/logging.ts';

/** Headers of a reply, by lower-case name. */
export type Headers = Record<string, string>;

/** The headers of a reply that no cache may store, and whose type no browser may guess. */
export const NO_STORE: Readonly<Headers> = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

/** The name that the package `http-errors` gives an error, such as `ForbiddenError`: handlers of applications read it. */
export function errorName(status: number): string {
  const name = (STATUS_CODES[status] ?? '')
    .replace(/(?<=^| )[a-z]/g, (letter) => letter.toUpperCase())
    .replace(/[^A-Za-z]/g, '');
  return name.endsWith('Error') ? name : `${name}Error`;
}

/**
 * An error that the client may see: the status and headers of the response, and a message. It is a client's mistake,
 * unless it has a `cause`. Code that sets a cause also reports it.
 */
export class HttpError extends Error {
  readonly status: number;
  readonly headers: Headers;
  /** A stable code for programs, such as `BODY_TOO_LARGE`. */
  readonly code: string | undefined;
  /** The end of the message in the log: the option that refuses what a visitor has sent. */
  readonly option: string;
  readonly #isHttpError = true;

  constructor(
    status: number,
    message: string,
    details: { headers?: Headers; code?: string; option?: string; cause?: unknown } = {},
  ) {
    super(message, details);
    this.name = errorName(status);
    this.status = status;
    this.headers = details.headers ?? {};
    this.code = details.code;
    this.option = details.option ?? '';
  }

  /** Unlike `instanceof`, this never throws. A thrown value may be a revoked proxy. */
  static is(thrown: unknown): thrown is HttpError {
    return typeof thrown === 'object' && thrown !== null && #isHttpError in thrown;
  }
}

/** Converts a thrown value to an Error for `next`, for which undefined, 'route' and 'router' have other meanings. */
export function toError(error: unknown): Error {
  if (typeof error === 'object' && error !== null) return error as Error;
  const text = readError(error).message;
  return new Error(`A value was thrown that is not an Error: ${text}`, { cause: error });
}

// libuv has no names for these errors: the code of Node's error is, for example, `Unknown system error -116`.
const { ESTALE, EDQUOT } = constants.errno;
const UNNAMED = new Map<unknown, string>([
  [-ESTALE, 'ESTALE'],
  [-EDQUOT, 'EDQUOT'],
]);

/** The `code` of a system error; undefined for other values. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  const name = 'errno' in error ? UNNAMED.get(error.errno) : undefined;
  return name ?? (typeof error.code === 'string' ? error.code : undefined);
}

const OUT_OF_RESOURCES = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN']);

/** Whether the system has run out of descriptors or memory. The client may retry, and the result is not cached. */
export function isResourceError(error: unknown): boolean {
  return OUT_OF_RESOURCES.has(codeOf(error) ?? '');
}

/** A whole response as a value. */
export interface Reply {
  status: number;
  headers: Headers;
  body: string | Buffer | undefined;
  /** Releases a body in a pooled buffer. Called after the operating system has the bytes, or never. */
  release?: (() => void) | undefined;
}

/** Bytes from which joining the body to the head costs more than writing both. */
const LARGE_BYTES = 16 * 1024;

/** Bytes up to which a buffer is written as text, joined to the head: one chunk instead of two. */
const SMALL_BYTES = 4 * 1024;

/** Writes a reply. Does nothing if other code has begun the response or the client disconnected. */
export function writeReply(req: IncomingMessage, res: ServerResponse, reply: Reply): void {
  if (res.headersSent || res.destroyed) return;
  const { status, headers, body } = reply;
  writeReplyInPlace(req, res, { status, headers: { ...headers }, body });
}

/**
 * Like `writeReply`, for a response that has not begun and a reply that is not used again: adds to its headers instead
 * of copying them.
 */
export function writeReplyInPlace(req: IncomingMessage, res: ServerResponse, reply: Reply): void {
  const { status, headers, body, release } = reply;
  if (body === undefined) {
    writeHead(res, status, headers);
    res.end();
    return;
  }
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  headers['content-length'] = String(length);
  const socket = writeHead(res, status, headers);
  if (req.method === 'HEAD') res.end();
  else if (typeof body === 'string') endText(res, socket, body, length);
  // Other code that gets the text may overlook its encoding.
  else if (length < SMALL_BYTES && (socket !== undefined || isAscii(body)))
    endText(res, socket, body.toString('latin1'), length);
  else endPooled(res, socket, body, release);
}

/**
 * Writes head and body as one chunk. `end(body)` would add an empty second chunk, and Node writes two chunks
 * with a more expensive call. A large body is not joined to its head, which would copy it; both still leave
 * in one write.
 */
function endText(res: ServerResponse, socket: Socket | undefined, body: string, length: number): void {
  // Text with as many bytes as characters needs no encoder: it is ASCII, or has a character for each byte.
  const encoding = length === body.length ? 'latin1' : 'utf8';
  if (socket === undefined && length > HTTP2_CHUNK && isHttp2(res))
    endWithBody(res, Buffer.from(body, encoding));
  else if (socket === undefined) res.end(body, encoding);
  else if (length >= LARGE_BYTES) {
    res.cork();
    res.flushHeaders();
    res.end(body, encoding);
  } else {
    socket.cork();
    res.write(body, encoding);
    socket.uncork();
    res.end();
  }
}

/** Writes bytes, and releases their buffer when the operating system has them. */
function endPooled(
  res: ServerResponse,
  socket: Socket | undefined,
  body: Buffer,
  release: Reply['release'],
): void {
  if (release === undefined || socket === undefined) {
    endWithBody(res, body);
    return;
  }
  socket.cork();
  res.write(body, (error) => {
    // Without an error the kernel has the bytes. A buffer with unsent bytes is left to the garbage collector.
    if (!error && !socket.destroyed) release();
  });
  socket.uncork();
  res.end();
}

/** Node's own methods, read before an application can replace them for all responses. */
const { writeHead: nodeWriteHead, write: nodeWrite, end: nodeEnd } = ServerResponse.prototype;
const nodeSocketWrite = Socket.prototype.write;

/**
 * These classes inherit their methods. A method of the class itself was set by other code before this module
 * was loaded.
 */
const isPatchedForAll =
  Object.hasOwn(ServerResponse.prototype, 'write') ||
  Object.hasOwn(ServerResponse.prototype, 'end') ||
  Object.hasOwn(Socket.prototype, 'write');

/** Whether a response of HTTP/1 has Node's own methods. */
function isUnpatched(res: ServerResponse): boolean {
  if (isPatchedForAll) return false;
  return res.writeHead === nodeWriteHead && res.write === nodeWrite && res.end === nodeEnd;
}

/** Whether a socket is a TCP or local socket with Node's own methods. */
function isPlainSocket(socket: Socket): boolean {
  return Object.getPrototypeOf(socket) === Socket.prototype && socket.write === nodeSocketWrite;
}

/**
 * Writes the head immediately, or sets its headers where middleware has patched the response and may read or
 * change them. Returns the socket if the response writes directly to it. Undefined if other code may delay or keep
 * bytes: middleware that has patched the response (a compressor, a logger), TLS, HTTP/2, or an earlier response that is
 * still being sent.
 */
function writeHead(res: ServerResponse, status: number, headers: Headers): Socket | undefined {
  if (isUnpatched(res)) {
    res.writeHead(status, headers);
    const { socket } = res;
    return socket !== null && isPlainSocket(socket) ? socket : undefined;
  }
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  return undefined;
}

/** Adds fields to the value of a `Vary` header; `*` includes all fields (RFC 9110 §12.5.5). */
export function withVary(present: number | string | string[] | undefined, fields: string): string {
  if (present === undefined) return fields;
  const names = String(present)
    .split(',')
    .map((name) => name.trim().toLowerCase());
  if (names.includes('*')) return String(present);
  const missing = fields.split(', ').filter((name) => !names.includes(name.toLowerCase()));
  return [String(present), ...missing].join(', ');
}

/** The value of `Vary` for the fields of several reasons; undefined without one. */
export const joinVary = (...reasons: readonly (string | undefined)[]): string | undefined =>
  reasons.reduce<string | undefined>(
    (all, fields) => (fields === undefined ? all : withVary(all, fields)),
    undefined,
  );

/** The lifetimes for shared caches only. */
export const CDN_LIFETIMES: readonly string[] = [
  'CDN-Cache-Control',
  'Cloudflare-CDN-Cache-Control',
  'Surrogate-Control',
];

/** What other code has set for a success: a cache could keep an error with them as long. */
const LIFETIME_HEADERS = ['Cache-Control', ...CDN_LIFETIMES, 'Expires', 'ETag', 'Last-Modified'];

/** Removes the lifetime and the validators of a success, from an error and from a response that no cache may keep. */
export function removeLifetime(res: ServerResponse): void {
  for (const name of LIFETIME_HEADERS) res.removeHeader(name);
}

/** The same for names and values that are not set yet, and for other names. */
export const withoutLifetime = (headers: readonly string[], ...others: readonly string[]): string[] =>
  headers.filter((_, i) => {
    const name = headers[i - (i % 2)]?.toLowerCase();
    return ![...LIFETIME_HEADERS, ...others].some((each) => each.toLowerCase() === name);
  });

/** Adds the fields that `Vary` does not contain yet. */
export function addVary(res: ServerResponse, fields: string): void {
  res.setHeader('Vary', withVary(res.getHeader('Vary'), fields));
}

/**
 * Bytes of one body that an HTTP/2 response has in its buffers. All streams of a session share its memory
 * (`maxSessionMemory`, 10 MB in Node): a session with more of it in use refuses new requests.
 */
export const HTTP2_CHUNK: number = 64 * 1024;

/**
 * Whether middleware has replaced `write`. The HTTP/2 responses of createServer(express()) have Node's method as
 * their own.
 */
export function isWriteReplaced(res: ServerResponse): boolean {
  if (!Object.hasOwn(res, 'write')) return false;
  if (!isHttp2(res)) return true;
  // The module is loaded already.
  const { Http2ServerResponse } = process.getBuiltinModule('node:http2');
  return (res.write as unknown) !== Http2ServerResponse.prototype.write;
}

/** Ends a response with a body in memory. */
export function endWithBody(res: ServerResponse, body: Buffer): void {
  if (body.length <= HTTP2_CHUNK || !isHttp2(res)) {
    res.end(body);
    return;
  }
  let position = 0;
  const writeNext = (): void => {
    if (isAborted(res)) return;
    const chunk = body.subarray(position, position + HTTP2_CHUNK);
    position += chunk.length;
    if (position < body.length) writer.write(chunk);
    else res.end(chunk);
  };
  const writer = new ResponseWriter(res, () => {
    try {
      writeNext();
    } catch (error) {
      // Middleware that has replaced `write` or `end` has thrown, with no caller that could handle it.
      destroyIncomplete(res, error);
    }
  });
  writeNext();
}

/**
 * Whether the memory of written bytes may be reused later. Middleware that has replaced `write` or `end` (a body logger,
 * compression) may keep the bytes, and so may a connection that is not a socket of Node.
 */
export function mayReuseChunks(res: ServerResponse): boolean {
  const { write, end } = ServerResponse.prototype;
  return res.write === write && res.end === end && res.socket instanceof Socket;
}

/** Writes the chunks of a body, the next one when the response can take it. */
export class ResponseWriter {
  /** Whether the memory of a chunk may be reused as soon as the next one may be written. */
  readonly canReuseChunks: boolean;
  readonly #res: ServerResponse;
  readonly #onReady: (error?: Error | null) => void;
  readonly #hasOwnWrite: boolean;
  #waitsForDrain = false;
  #listensToDrain = false;

  /** @param onReady - called when the next chunk may be written, or with an error */
  constructor(res: ServerResponse, onReady: (error?: Error | null) => void) {
    this.#res = res;
    this.#onReady = onReady;
    this.#hasOwnWrite = res.write !== ServerResponse.prototype.write;
    this.canReuseChunks = mayReuseChunks(res);
  }

  write(chunk: Buffer): void {
    if (!this.#hasOwnWrite) this.#res.write(chunk, this.#onReady);
    else if (this.#isFull(this.#res.write(chunk))) this.#waitForDrain();
    else this.#onReady();
  }

  /** Middleware that has replaced `write` may drop the callback, as compression does, and may return nothing. */
  #isFull(isWritten: boolean | undefined): boolean {
    return isWritten === false || (isWritten === undefined && this.#res.writableNeedDrain);
  }

  /**
   * Adds one listener for all waits: the package `compression` passes listeners of `drain` on to its compressor,
   * from which they are never removed.
   */
  #waitForDrain(): void {
    this.#waitsForDrain = true;
    if (this.#listensToDrain) return;
    this.#listensToDrain = true;
    this.#res.on('drain', () => {
      if (!this.#waitsForDrain) return;
      this.#waitsForDrain = false;
      this.#onReady();
    });
  }
}

// Taken when the module is loaded: fake timers of a test must not delay requests.
const { nextTick } = process;

/**
 * Whether a response waits for the responses to earlier requests of a pipelined connection. Work for it
 * should not begin yet: requests with effects must not run in parallel (RFC 9112 §9.3.2), and a queued
 * response never emits `close` when its connection is lost (Node 20 and 22), so that nothing would release
 * its files and memory.
 */
export function isQueued(res: ServerResponse): boolean {
  if (res.socket !== null) return false;
  // Without an earlier response on the socket, the response was created by a test or an adapter and never
  // gets a socket.
  const earlier = (res.req?.socket as (Socket & { _httpMessage?: unknown }) | undefined)?._httpMessage;
  return earlier !== undefined && earlier !== null && earlier !== res;
}

/**
 * Calls `run` when the earlier responses of the connection have been sent, in the asynchronous context of the
 * caller. Does not call it if the connection is lost before.
 */
export function whenFirst(res: ServerResponse, run: () => void): void {
  const bound = AsyncResource.bind(run);
  // Node updates the state of the response after the event.
  res.once('socket', () => nextTick(bound));
}

/** A response of the compatibility API of `node:http2`. */
interface Http2Response {
  readonly stream: { readonly destroyed?: boolean; readonly aborted?: boolean } | undefined;
}

/** Whether a response belongs to the compatibility API of `node:http2`. */
export const isHttp2 = (res: object): res is Http2Response => 'stream' in res;

/** Whether the client disconnected before the response was sent completely. */
export function isAborted(res: ServerResponse): boolean {
  if (res.destroyed) return true;
  // HTTP/2 closes streams independently of the socket. In HTTP/1 a response has a socket only during its turn.
  const connection = isHttp2(res) ? res.stream : (res.socket ?? res.req?.socket);
  return connection?.destroyed === true;
}

/** Whether a closed response was cut off. An HTTP/2 stream that the client resets counts as finished. */
export const wasCutOff = (res: ServerResponse): boolean =>
  !res.writableFinished || (isHttp2(res) && res.stream?.aborted === true);

/** The error for a response that other code has begun: without an error, the client would wait for the end. */
export function startedBefore(failure: string): Error {
  const message = `${failure}: earlier middleware has started the response`;
  return Object.assign(new Error(message), { code: 'ERR_HTTP_HEADERS_SENT' });
}

/**
 * Whether other code has begun a response, which then gets no reply. If it has not ended it, the error goes to `next`; in
 * a server without `next` the response is destroyed.
 */
export function wasStarted(res: ServerResponse, failure: string, next: NextFunction | undefined): boolean {
  if (!res.headersSent) return false;
  if (res.writableEnded) return true;
  const error = startedBefore(failure);
  if (next === undefined) destroyIncomplete(res, error);
  else next(error);
  return true;
}

/** An error code of RST_STREAM (RFC 9113 §7). */
const INTERNAL_ERROR = 2;

/**
 * Destroys a response that is not complete. `destroy` of an HTTP/2 response resets its stream with NO_ERROR, and
 * clients take a body without Content-Length for complete then.
 *
 * @param cause - logged, because an error handler could not send another response
 */
export function destroyIncomplete(res: ServerResponse, cause?: unknown): void {
  if (cause !== undefined) writeLog('error', 'a response was destroyed after an error:', cause);
  const { stream } = res as ServerResponse & { readonly stream?: { close(code: number): void } };
  if (stream === undefined) res.destroy();
  else stream.close(INTERNAL_ERROR);
}

/** Headers of one connection over HTTP/1.1, which responses over HTTP/2 must not have (RFC 9113 §8.2.2). */
export const CONNECTION_HEADERS: readonly string[] = [
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
];
