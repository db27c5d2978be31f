import type { IncomingMessage } from 'node:http';
import type { Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { finish, refuse, responseOn } from './refuse.ts';

type ShouldUpgrade = (req: IncomingMessage) => boolean;
/** Node 22.21 and 24.9 ask before they treat a request as an upgrade. */
type Asking = Server & { shouldUpgradeCallback?: ShouldUpgrade };

const isWebSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === 'websocket';

/**
 * A server with an `upgrade` listener no longer sees requests that merely offer another protocol, `Upgrade: h2c` of curl and
 * of Java's client, as requests (RFC 9110 §7.8: an upgrade may be ignored). While nobody else listens, they are plain ones.
 * Returns what undoes it.
 */
export function keepPlainRequests(server: Server): () => void {
  const asking: Asking = server;
  const before = asking.shouldUpgradeCallback;
  if (before === undefined) return () => undefined;
  const callback: ShouldUpgrade = (req) =>
    before.call(server, req) && (isWebSocket(req) || server.listenerCount('upgrade') > 1);
  asking.shouldUpgradeCallback = callback;
  return () => {
    if (asking.shouldUpgradeCallback === callback) asking.shouldUpgradeCallback = before;
  };
}

/** The same for older lines, where Node has let go of the socket already: true when the request was dealt with. */
export function answerPlainly(server: Server, req: IncomingMessage, socket: Duplex): boolean {
  if (isWebSocket(req) || server.listenerCount('upgrade') > 1) return false;
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
  if (coding !== undefined || (length !== undefined && length !== '0')) {
    // Its body is out of reach.
    refuse(socket, 400);
    return true;
  }
  const res = responseOn(req, socket);
  if (res === undefined) return true;
  res.once('finish', () => {
    finish(socket);
    socket.end();
  });
  server.emit('request', req, res);
  return true;
}
