import type { IncomingMessage } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { pathOf } from '../../http/routing/url-path.ts';
import { debug } from '../../logging/debug.ts';
import { optionError } from '../../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../../options/scopes.ts';
import { createIntervalTimer, type IntervalTimer } from '../../subscriptions/interval-timer.ts';
import { handleAsPlainRequest, keepPlainRequests } from './non-websocket-upgrade.ts';
import { rejectUpgrade } from './reject-upgrade.ts';

/** A listener of the event `upgrade`. */
export type UpgradeListener = (req: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** An upgrade of a path that is not ours, until another listener has responded. */
interface UnclaimedUpgrade {
  readonly socket: Socket;
  readonly bytesWritten: number;
  readonly deadline: number;
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
  readonly #listener: UpgradeListener = (req, socket, head) => this.#route(req, socket, head);
  readonly #restorePlainRequests: () => void;

  constructor(server: Server, timeout: number) {
    this.#server = server;
    this.#timeout = timeout;
    this.#timer = createIntervalTimer(Math.min(1000, timeout), (now) => this.#rejectUnclaimed(now));
    this.#restorePlainRequests = keepPlainRequests(server);
    server.on('upgrade', this.#listener);
  }

  register(path: string, listener: UpgradeListener): () => void {
    if (this.#routes.has(path)) {
      const message = `the path "${path}" of this server already has subscriptions attached`;
      throw optionError(SUBSCRIPTION_OPTIONS, message);
    }
    this.#routes.set(path, listener);
    return () => {
      if (this.#routes.get(path) === listener) this.#routes.delete(path);
      if (this.#routes.size === 0) this.#close();
    };
  }

  #close(): void {
    if (routers.get(this.#server) !== this) return;
    routers.delete(this.#server);
    this.#server.off('upgrade', this.#listener);
    this.#restorePlainRequests();
  }

  #route(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    // A reset may come at any time. Without a listener its error would end the process.
    socket.on('error', ignore);
    if (handleAsPlainRequest(this.#server, req, socket)) return;
    const listener = this.#routes.get(pathOf(req.url));
    if (listener !== undefined) listener(req, socket, head);
    else if (this.#server.listenerCount('upgrade') === 1) {
      debug.subscriptions('404 for an upgrade of %s: no subscriptions are attached to this path', req.url);
      rejectUpgrade(socket, 404);
    } else this.#awaitOtherListeners(socket as Socket);
  }

  #awaitOtherListeners(socket: Socket): void {
    const { bytesWritten } = socket;
    this.#unclaimed.add({ socket, bytesWritten, deadline: this.#timer.now() + this.#timeout });
    this.#timer.start();
  }

  /** A listener that has claimed an upgrade has written to its socket or destroyed it. */
  #rejectUnclaimed(now: number): boolean {
    for (const upgrade of this.#unclaimed) {
      if (now < upgrade.deadline) continue;
      this.#unclaimed.delete(upgrade);
      const { socket, bytesWritten } = upgrade;
      if (socket.destroyed || socket.bytesWritten > bytesWritten) continue;
      debug.subscriptions('404 for an upgrade: no listener has responded to it');
      rejectUpgrade(socket, 404);
    }
    return this.#unclaimed.size > 0;
  }
}

const ignore = (): void => undefined;
