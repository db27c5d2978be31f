import { isAscii } from 'node:buffer';
import { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Headers } from './http-error.ts';

/** A whole answer as a plain value. */
export interface Reply {
  status: number;
  headers: Headers;
  body: string | Buffer | undefined;
  /** For a body of bytes that may be used again: called when they have left and nobody can hold them, or not at all. */
  release?: (() => void) | undefined;
}

/** Bytes from which joining a body to its head costs more than handing over both. */
const LONG = 16 * 1024;

/** Bytes up to which they are joined to their head as text, which is then one part to write and not two. */
const SHORT = 4 * 1024;

/** Writes a reply once; does nothing when the answer was begun elsewhere or the client has gone. */
export function writeReply(res: ServerResponse, { status, headers, body }: Reply, headOnly: boolean): void {
  writeOwnedReply(res, { status, headers: { ...headers }, body }, headOnly);
}

/** As `writeReply`, for headers that nobody else holds: they are added to instead of copied. */
export function writeOwnedReply(res: ServerResponse, reply: Reply, headOnly: boolean): void {
  const { status, headers, body, release } = reply;
  if (res.headersSent || res.destroyed) return;
  if (body === undefined) {
    begin(res, status, headers);
    res.end();
    return;
  }
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  headers['content-length'] = String(length);
  begin(res, status, headers);
  if (headOnly) res.end();
  else if (typeof body !== 'string') {
    if (length < SHORT && isAscii(body)) endShort(res, body.toString('latin1'), 'latin1');
    else endLong(res, body, release);
  } else {
    // As many bytes as characters: plain ASCII, which needs no encoder.
    const encoding = length === body.length ? 'latin1' : 'utf8';
    if (length >= LONG) {
      // A head on its way already is not joined to the body, which would copy it; both still leave in one write.
      res.cork();
      res.flushHeaders();
      res.end(body, encoding);
    } else endShort(res, body, encoding);
  }
}

/**
 * Head and body in one chunk. `end(body)` would add an empty second one, and Node writes two chunks by a much dearer call.
 * TLS writes later, and whoever has put himself in the way of this response expects what everybody does.
 */
function endShort(res: ServerResponse, body: string, encoding: BufferEncoding): void {
  const { socket } = res;
  if (!isUntouched(res) || socket === null || !isPlain(socket)) {
    res.end(body, encoding);
    return;
  }
  socket.cork();
  res.write(body, encoding);
  socket.uncork();
  res.end();
}

/** The methods Node came with, before anybody could replace them for all responses. */
const { writeHead, write, end } = ServerResponse.prototype;
const socketWrite = Socket.prototype.write;

/** A response of HTTP/1 in whose way nobody has put himself. */
function isUntouched(res: ServerResponse): boolean {
  return res.writeHead === writeHead && res.write === write && res.end === end;
}

/** A TCP or local socket with nothing around it. */
function isPlain(socket: Socket): boolean {
  return Object.getPrototypeOf(socket) === Socket.prototype && socket.write === socketWrite;
}

/**
 * Bytes that are given back have left by a write of ours alone: a compressor or a logger in the way of this response may keep
 * them, and TLS and HTTP/2 write them later.
 */
function endLong(res: ServerResponse, body: Buffer, release: (() => void) | undefined): void {
  const { socket } = res;
  if (release === undefined || !isUntouched(res) || socket === null || !isPlain(socket)) {
    res.end(body);
    return;
  }
  socket.cork();
  res.write(body, (error) => {
    // Called with the kernel done, or with bytes that nobody has sent: those are left to the garbage collector.
    if (!error && !socket.destroyed) release();
  });
  socket.uncork();
  res.end();
}

/** Whoever is in the way may look for our headers, or add to them at the end; else the head is made at once, which is cheaper. */
function begin(res: ServerResponse, status: number, headers: Headers): void {
  if (isUntouched(res)) {
    res.writeHead(status, headers);
    return;
  }
  res.statusCode = status;
  for (const name in headers) res.setHeader(name, headers[name] as string);
}
