import { isAscii } from 'node:buffer';
import { type IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Headers } from './http-error.ts';
import { isHttp2 } from './response-state.ts';
import { endWithBody, HTTP2_CHUNK } from './response-writer.ts';

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
  else if (length < SMALL_BYTES && isAscii(body)) endText(res, socket, body.toString('latin1'), length);
  else endPooled(res, socket, body, release);
}

/**
 * Writes head and body as one chunk. `end(body)` would add an empty second chunk, and Node writes two chunks
 * with a more expensive call. A large body is not joined to its head, which would copy it; both still leave
 * in one write.
 */
function endText(res: ServerResponse, socket: Socket | undefined, body: string, length: number): void {
  // Text with as many bytes as characters is ASCII, which needs no encoder.
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

/** Adds the fields that `Vary` does not contain yet. */
export function addVary(res: ServerResponse, fields: string): void {
  res.setHeader('Vary', withVary(res.getHeader('Vary'), fields));
}
