import type { IncomingMessage } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { pathOf } from '../http/routing/url-path.ts';
import { debug } from '../logging/debug.ts';
import { optionError } from '../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import { answerPlainly, keepPlainRequests } from './plain.ts';
import { refuse } from './refuse.ts';
import { createSweep, type Sweep } from './sweep.ts';

/** Takes an upgrade whose path is its own. */
export type Route = (req: IncomingMessage, socket: Duplex, head: Buffer) => void;

interface Stranger {
  readonly socket: Socket;
  readonly written: number;
  readonly until: number;
}

interface Gate {
  readonly routes: Map<string, Route>;
  readonly strangers: Set<Stranger>;
  readonly sweep: Sweep;
  readonly listener: Route;
  readonly restore: () => void;
}

/** How long other listeners have to answer an upgrade that is not ours: many do so asynchronously. */
const GRACE = 10_000;

/** One listener for each server, however many paths are attached to it. */
const gates = new WeakMap<Server, Gate>();

/** Sends the upgrades of one path to `route`. Returns what gives the path back. */
export function claim(server: Server, path: string, route: Route, grace: number = GRACE): () => void {
  const gate = gates.get(server) ?? openGate(server, grace);
  if (gate.routes.has(path)) {
    throw optionError(SUBSCRIPTION_OPTIONS, `the path "${path}" of this server is attached already`);
  }
  gate.routes.set(path, route);
  return () => {
    if (gate.routes.get(path) === route) gate.routes.delete(path);
    if (gate.routes.size > 0 || gates.get(server) !== gate) return;
    gates.delete(server);
    server.off('upgrade', gate.listener);
    gate.restore();
  };
}

function openGate(server: Server, grace: number): Gate {
  const routes = new Map<string, Route>();
  const strangers = new Set<Stranger>();
  const sweep = createSweep(Math.min(1000, grace), (now) => {
    for (const stranger of strangers) if (now >= stranger.until) dismiss(stranger);
    return strangers.size > 0;
  });

  /** Whoever has taken the socket has written to it or destroyed it. */
  function dismiss(stranger: Stranger): void {
    strangers.delete(stranger);
    const { socket, written } = stranger;
    if (socket.destroyed || socket.bytesWritten > written) return;
    debug.subscriptions('404, nobody took the upgrade');
    refuse(socket, 404);
  }

  const listener: Route = (req, socket, head) => {
    // A reset may come at any moment, and without a listener it would end the process.
    socket.on('error', ignore);
    if (answerPlainly(server, req, socket)) return;
    const route = routes.get(pathOf(req.url));
    if (route !== undefined) return route(req, socket, head);
    if (server.listenerCount('upgrade') === 1) {
      debug.subscriptions('404 for an upgrade of %s: no subscriptions on this path', req.url);
      return refuse(socket, 404);
    }
    const stranger = socket as Socket;
    strangers.add({ socket: stranger, written: stranger.bytesWritten, until: sweep.now() + grace });
    sweep.wake();
  };
  const gate = { routes, strangers, sweep, listener, restore: keepPlainRequests(server) };
  gates.set(server, gate);
  server.on('upgrade', listener);
  return gate;
}

const ignore = (): void => undefined;
