import { type IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Headers } from '../http/reply/http-error.ts';

/** Answers an upgrade request with a plain HTTP status and ends the socket. */
export function refuse(socket: Duplex, status: number, headers: Headers = {}): void {
  if (socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const text = `${STATUS_CODES[status] ?? 'Error'}\n`;
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Connection: close',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${text.length}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  finish(socket);
  socket.end(`${lines.join('\r\n')}\r\n\r\n${text}`);
}

/** Lets go of a socket once its answer is written; unread frames would turn the answer into a reset. */
export function finish(socket: Duplex): void {
  socket.once('finish', () => socket.destroy());
  socket.resume();
}

/**
 * A response for a request whose socket Node has let go of; it ends the connection. Undefined, and the socket destroyed,
 * when the client sent the upgrade behind a request that is still being answered.
 */
export function responseOn(req: IncomingMessage, socket: Duplex): ServerResponse | undefined {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  try {
    res.assignSocket(socket as never);
    return res;
  } catch {
    socket.destroy();
    return undefined;
  }
}
