import { type IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { debug, isDevelopment, noteHidden } from '../diagnostics/logging.ts';
import type { Headers } from '../http/reply.ts';
import { pathOf } from '../http/routing.ts';
import { optionError } from '../options/rules.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import { getOrCreate } from '../options/values.ts';

// Taken when the module is loaded: fake timers of a test must not delay requests.
const { queueMicrotask } = globalThis;
const { nextTick } = process;

export type UpgradeListener = (req: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** An upgrade before any listener has handled it. */
interface Upgrade {
  readonly socket: Socket;
  readonly bytesWritten: number;
}

/** Milliseconds that other listeners have to respond to an upgrade of another path: many respond asynchronously. */
const UNCLAIMED_TIMEOUT = 10_000;

/** One router for each server, for all paths that are attached to it. */
const routers = new WeakMap<Server, UpgradeRouter>();

/** Sends the upgrades of one path to `listener`. The function that it returns releases the path. */
export function registerPath(
  server: Server,
  path: string,
  listener: UpgradeListener,
  unclaimedTimeout: number = UNCLAIMED_TIMEOUT,
): () => void {
  const router = getOrCreate(routers, server, () => new UpgradeRouter(server, unclaimedTimeout));
  return router.register(path, listener);
}

class UpgradeRouter {
  readonly #server: Server;
  readonly #timeout: number;
  readonly #routes = new Map<string, UpgradeListener>();
  readonly #listener: UpgradeListener = markAsRouter((req, socket, head) => this.#route(req, socket, head));
  readonly #onNewListener = (event: string | symbol): void => {
    if (event === 'upgrade') queueMicrotask(() => this.#listenFirst());
  };
  readonly #restorePlainRequests: () => void;

  constructor(server: Server, timeout: number) {
    this.#server = server;
    this.#timeout = timeout;
    this.#restorePlainRequests = keepPlainRequests(server, () => this.#isAlone());
    server.prependListener('upgrade', this.#listener);
    server.on('newListener', this.#onNewListener);
  }

  register(path: string, listener: UpgradeListener): () => void {
    const route = routeKey(path);
    if (this.#routes.has(route)) {
      const message = `the path "${path}" of this server already has subscriptions attached`;
      throw optionError(SUBSCRIPTION_OPTIONS, message);
    }
    this.#routes.set(route, listener);
    return () => {
      if (this.#routes.get(route) === listener) this.#routes.delete(route);
      if (this.#routes.size === 0) this.#close();
    };
  }

  #close(): void {
    if (routers.get(this.#server) !== this) return;
    routers.delete(this.#server);
    this.#server.off('newListener', this.#onNewListener);
    this.#server.off('upgrade', this.#listener);
    this.#restorePlainRequests();
  }

  /**
   * Moves the router's listener to the start: it has to receive each upgrade before other listeners write to
   * the socket.
   */
  #listenFirst(): void {
    const listeners = this.#server.listeners('upgrade');
    const index = listeners.indexOf(this.#listener);
    // Two routers would otherwise move without end.
    if (listeners.slice(0, Math.max(0, index)).every(isRouter)) return;
    this.#server.off('upgrade', this.#listener);
    this.#server.prependListener('upgrade', this.#listener);
  }

  /**
   * Whether the server has no other listener. One that has replaced all listeners calls them itself, and
   * counts as another.
   */
  #isAlone(): boolean {
    const [first, ...others] = this.#server.listeners('upgrade');
    return first === this.#listener && others.length === 0;
  }

  #route(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    // The client may reset the connection at any time. Without a listener the error would end the process.
    socket.on('error', ignore);
    const isAlone = this.#isAlone();
    if (isAlone && handleAsPlainRequest(this.#server, req, socket)) return;
    const { bytesWritten } = socket as Socket;
    const upgrade = { socket: socket as Socket, bytesWritten };
    const listener = this.#routes.get(routeKey(pathOf(req.url)));
    if (listener !== undefined) {
      // Runs after all other listeners, one of which may respond to every path.
      nextTick(() => this.#accept(listener, upgrade, req, head));
    } else if (isAlone) {
      const reason = `no subscriptions are attached to this path; attached: ${[...this.#routes.keys()].join(', ')}`;
      debug.subscriptions('404 for an upgrade of %s: %s', req.url, reason);
      if (hasPendingResponse(req, socket)) return;
      noteHidden('path', `A WebSocket cannot be opened at ${formatPath(req)}: ${reason}`);
      rejectUpgrade(socket, 404, isDevelopment() ? { reason } : {});
    } else {
      setTimeout(rejectUnclaimed, this.#timeout, upgrade).unref();
    }
  }

  #accept(listener: UpgradeListener, upgrade: Upgrade, req: IncomingMessage, head: Buffer): void {
    const { socket } = upgrade;
    if (isClaimed(upgrade)) {
      debug.subscriptions('upgrade of %s ignored: another listener has responded to it', req.url);
    } else if (hasPendingResponse(req, socket)) {
      debug.subscriptions('upgrade of %s destroyed: an earlier request has no response yet', req.url);
    } else listener(req, socket, head);
  }
}

function rejectUnclaimed(upgrade: Upgrade): void {
  if (isClaimed(upgrade)) return;
  debug.subscriptions('404 for an upgrade: no listener has responded to it');
  rejectUpgrade(upgrade.socket, 404);
}

/** A listener that has claimed an upgrade has destroyed its socket, written to it or begun to read it. */
function isClaimed({ socket, bytesWritten }: Upgrade): boolean {
  return (
    socket.destroyed ||
    socket.bytesWritten > bytesWritten ||
    socket.listenerCount('data') > 0 ||
    socket.listenerCount('readable') > 0
  );
}

/**
 * Marks the listeners of routers. `Symbol.for` makes it equal in the CommonJS and the ES build, which one
 * process may load.
 */
const ROUTER = Symbol.for('espalier.upgradeRouter');

const markAsRouter = (listener: UpgradeListener): UpgradeListener =>
  Object.defineProperty(listener, ROUTER, { value: true });
const isRouter = (listener: object): boolean => ROUTER in listener;

/** Returns a path as the key of a route. Express accepts a trailing slash at its mounts and routes. */
const routeKey = (path: string): string => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path);

/** The path of a request as JSON, which escapes control characters. */
const formatPath = ({ url }: IncomingMessage): string => JSON.stringify(pathOf(url).slice(0, 100));

const ignore = (): void => undefined;

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
function keepPlainRequests(server: Server, isAlone: () => boolean): () => void {
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
function handleAsPlainRequest(server: Server, req: IncomingMessage, socket: Duplex): boolean {
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

/** Destroys the socket after the response was written. Frames are read until then: unread data would cause a reset. */
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

/** Whether an earlier request has no response yet. The socket is then destroyed, since two responses would be mixed. */
function hasPendingResponse(req: IncomingMessage, socket: Duplex): boolean {
  const res = createUpgradeResponse(req, socket);
  res?.detachSocket(socket as Socket);
  return res === undefined;
}
