import type { IncomingMessage } from 'node:http';
import type { Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { createUpgradeResponse, destroyWhenWritten, rejectUpgrade } from './reject-upgrade.ts';

type ShouldUpgrade = (req: IncomingMessage) => boolean;
/** Node 22.21 and 24.9 call this function before they treat a request as an upgrade. */
type ServerWithCallback = Server & { shouldUpgradeCallback?: ShouldUpgrade };

const isWebSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === 'websocket';

/**
 * A server with an `upgrade` listener no longer emits `request` for requests that only offer another
 * protocol, such as `Upgrade: h2c` of curl and of Java's client (RFC 9110 §7.8: a server may ignore it).
 * While the server has no other `upgrade` listener (`isAlone`), they stay plain requests. The function that
 * it returns undoes this.
 */
export function keepPlainRequests(server: Server, isAlone: () => boolean): () => void {
  const target: ServerWithCallback = server;
  const before = target.shouldUpgradeCallback;
  if (before === undefined) return () => undefined;
  const callback: ShouldUpgrade = (req) => before.call(server, req) && (isWebSocket(req) || !isAlone());
  target.shouldUpgradeCallback = callback;
  return () => {
    if (target.shouldUpgradeCallback === callback) target.shouldUpgradeCallback = before;
  };
}

/**
 * Handles a plain request in older versions of Node, which have already detached the socket. Returns true if
 * it did.
 */
export function handleAsPlainRequest(server: Server, req: IncomingMessage, socket: Duplex): boolean {
  if (isWebSocket(req)) return false;
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
  if (coding !== undefined || (length !== undefined && length !== '0')) {
    // Node's parser no longer reads the body.
    rejectUpgrade(socket, 400);
    return true;
  }
  const res = createUpgradeResponse(req, socket);
  if (res === undefined) return true;
  res.once('finish', () => {
    destroyWhenWritten(socket);
    socket.end();
  });
  server.emit('request', req, res);
  return true;
}
