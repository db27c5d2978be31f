import type { IncomingMessage } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { pathOf } from '../../http/routing/url-path.ts';
import { debug } from '../../logging/debug.ts';
import { optionError } from '../../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../../options/scopes.ts';
import { createIntervalTimer, type IntervalTimer } from '../../subscriptions/interval-timer.ts';
import { handleAsPlainRequest, keepPlainRequests } from './non-websocket-upgrade.ts';
import { hasPendingResponse, rejectUpgrade } from './reject-upgrade.ts';

// Taken when the module is loaded: fake timers of a test must not delay requests.
const { queueMicrotask } = globalThis;
const { nextTick } = process;

/** A listener of the event `upgrade`. */
export type UpgradeListener = (req: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** An upgrade before any listener has handled it. */
interface Upgrade {
  readonly socket: Socket;
  readonly bytesWritten: number;
}

/** An upgrade of an unknown path, until another listener has responded. */
interface UnclaimedUpgrade extends Upgrade {
  readonly deadline: number;
}

/**
 * Milliseconds that other listeners have to respond to an upgrade of another path: many respond
 * asynchronously.
 */
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
  let router = routers.get(server);
  if (router === undefined) {
    router = new UpgradeRouter(server, unclaimedTimeout);
    routers.set(server, router);
  }
  return router.register(path, listener);
}

class UpgradeRouter {
  readonly #server: Server;
  readonly #timeout: number;
  readonly #routes = new Map<string, UpgradeListener>();
  readonly #unclaimed = new Set<UnclaimedUpgrade>();
  readonly #timer: IntervalTimer;
  readonly #listener: UpgradeListener = markAsRouter((req, socket, head) => this.#route(req, socket, head));
  readonly #onNewListener = (event: string | symbol): void => {
    if (event === 'upgrade') queueMicrotask(() => this.#listenFirst());
  };
  readonly #restorePlainRequests: () => void;

  constructor(server: Server, timeout: number) {
    this.#server = server;
    this.#timeout = timeout;
    this.#timer = createIntervalTimer(Math.min(1000, timeout), (now) => this.#rejectUnclaimed(now));
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
      rejectUpgrade(socket, 404, process.env['NODE_ENV'] === 'production' ? {} : { reason });
    } else {
      this.#unclaimed.add({ ...upgrade, deadline: this.#timer.now() + this.#timeout });
      this.#timer.start();
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

  #rejectUnclaimed(now: number): boolean {
    for (const upgrade of this.#unclaimed) {
      if (now < upgrade.deadline) continue;
      this.#unclaimed.delete(upgrade);
      if (isClaimed(upgrade)) continue;
      debug.subscriptions('404 for an upgrade: no listener has responded to it');
      rejectUpgrade(upgrade.socket, 404);
    }
    return this.#unclaimed.size > 0;
  }
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

const ignore = (): void => undefined;
