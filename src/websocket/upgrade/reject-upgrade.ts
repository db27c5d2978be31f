import { type IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Headers } from '../../http/reply/http-error.ts';

/** Responds to an upgrade request with a status and closes the socket. `reason` is added to the body. */
export function rejectUpgrade(
  socket: Duplex,
  status: number,
  { headers = {}, reason }: { readonly headers?: Headers; readonly reason?: string } = {},
): void {
  if (socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const text = `${STATUS_CODES[status] ?? 'Error'}${reason === undefined ? '' : `: ${reason}`}\n`;
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Connection: close',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  destroyWhenWritten(socket);
  socket.end(`${lines.join('\r\n')}\r\n\r\n${text}`);
}

/**
 * Destroys the socket after the response was written. Frames are read until then: unread data would cause a
 * reset.
 */
export function destroyWhenWritten(socket: Duplex): void {
  socket.once('finish', () => socket.destroy());
  socket.resume();
}

/**
 * Creates a response for an upgrade request, whose socket Node has detached; it ends the connection. Returns
 * undefined, with the socket destroyed, if the client pipelined the upgrade after a request that has no
 * response yet.
 */
export function createUpgradeResponse(req: IncomingMessage, socket: Duplex): ServerResponse | undefined {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  try {
    res.assignSocket(socket as Socket);
    return res;
  } catch {
    socket.destroy();
    return undefined;
  }
}

/**
 * Whether an earlier request has no response yet. The socket is then destroyed, since two responses would be
 * mixed.
 */
export function hasPendingResponse(req: IncomingMessage, socket: Duplex): boolean {
  const res = createUpgradeResponse(req, socket);
  res?.detachSocket(socket as Socket);
  return res === undefined;
}
