import { once } from 'node:events';
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2Session } from 'node:http2';
import type { Server, Socket } from 'node:net';
import { setImmediate as nextImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { NextFunction } from '../../types/connect.ts';
import type {
  DrainOptions,
  HealthOptions,
  ReadinessCheck,
  ServerHealth,
  ServerState,
  ServerStats,
} from '../../types/server.ts';
import { debug } from '../diagnostics/logging.ts';
import { readProcessStats } from '../diagnostics/stats.ts';
import { NO_STORE, wasStarted, writeReply } from '../http/reply.ts';
import { closeParts } from '../http/server-parts.ts';
import { delay, type Rules, resolveOptions } from '../options/rules.ts';
import { SERVER_OPTIONS } from '../options/scopes.ts';

const CHECKS: Rules<{ checkTimeout: number }> = { checkTimeout: delay(2000) };

const DRAIN = { ...SERVER_OPTIONS, name: 'drain' };

/** Milliseconds until the checks of a server that is not ready run again. */
const RETRY = 1000;

export function addHealth<S extends Server>(server: S, options: HealthOptions): S & ServerHealth {
  const health = new Health(server, options);
  const members: ServerHealth = {
    ready: () => health.ready(),
    liveness: (...exchange) => send(health.isDraining ? DRAINING : { status: 'live' }, ...exchange),
    readiness: (...exchange) => void health.readiness().then((report) => send(report, ...exchange)),
    drain: (given) => health.drain(given),
    stats: () => health.stats(),
  };
  return Object.assign(server, members);
}

/** The body of a response of the handlers. */
interface Report {
  readonly status: 'live' | 'ready' | 'starting' | 'draining' | 'unavailable';
  readonly failed?: readonly string[];
}

const DRAINING: Report = { status: 'draining' };

class Health {
  readonly #server: Server;
  readonly #checks: Checks;
  readonly #connections: Connections;
  readonly #created = performance.now();
  /** Aborts when `drain` is called. */
  readonly #draining = new AbortController();
  #hasListened: boolean;
  #drained: Promise<void> | undefined;

  constructor(server: Server, { checks = {}, checkTimeout: given }: HealthOptions) {
    const { checkTimeout } = resolveOptions(SERVER_OPTIONS, { checkTimeout: given }, CHECKS);
    this.#server = server;
    this.#checks = new Checks(checks, checkTimeout);
    this.#connections = new Connections(server);
    this.#hasListened = server.listening;
    server.on('listening', () => {
      this.#hasListened = true;
      // A server that listens again has to be drained again.
      this.#drained = undefined;
    });
  }

  get isDraining(): boolean {
    return this.#state === 'draining';
  }

  /** `close()` of the server begins draining too: the server does not listen any more. */
  get #state(): ServerState {
    if (this.#draining.signal.aborted) return 'draining';
    if (this.#server.listening) return 'ready';
    return this.#hasListened ? 'draining' : 'starting';
  }

  async ready(): Promise<void> {
    const { signal } = this.#draining;
    if (this.#state === 'starting') {
      await once(this.#server, 'listening', { signal }).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    }
    while (this.#state === 'ready') {
      if ((await this.#checks.failures()).length === 0) return;
      await sleep(RETRY, undefined, { ref: false });
    }
    throw new Error('The server is draining and will not become ready');
  }

  async readiness(): Promise<Report> {
    const state = this.#state;
    if (state !== 'ready') return { status: state };
    const failed = await this.#checks.failures();
    // Draining may have begun meanwhile.
    if (this.isDraining) return DRAINING;
    return failed.length === 0 ? { status: 'ready' } : { status: 'unavailable', failed };
  }

  drain(given: DrainOptions | undefined): Promise<void> {
    const options = resolveOptions<Required<{ delay: number; timeout: number }>>(DRAIN, given, {
      delay: delay(0, 0),
      timeout: delay(10_000, 0),
    });
    if (!this.#draining.signal.aborted) this.#connections.announceClose(this.#server);
    this.#draining.abort();
    this.#drained ??= drainServer(this.#server, this.#connections, options);
    return this.#drained;
  }

  stats(): ServerStats {
    return {
      state: this.#state,
      uptime: (performance.now() - this.#created) / 1000,
      connections: this.#connections.size,
      ...readProcessStats(),
    };
  }
}

function send(
  report: Report,
  req: IncomingMessage,
  res: ServerResponse,
  next: NextFunction | undefined,
): void {
  if (wasStarted(res, `the server cannot send its state (${report.status})`, next)) return;
  const headers = { ...NO_STORE, 'content-type': 'application/json; charset=utf-8' };
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    writeReply(req, res, { status: 405, headers: { ...headers, allow: 'GET, HEAD' }, body: '' });
    return;
  }
  const isHealthy = report.status === 'live' || report.status === 'ready';
  // The client connects again, possibly to another server.
  if (!isHealthy) res.shouldKeepAlive = false;
  writeReply(req, res, { status: isHealthy ? 200 : 503, headers, body: JSON.stringify(report) });
}

/** Milliseconds for which a result is used again, so that requests cannot overload the checked services. */
const MAX_AGE = 1000;

class Checks {
  readonly #checks: readonly (readonly [string, ReadinessCheck])[];
  readonly #timeout: number;
  #result: Promise<readonly string[]> | undefined;
  /** The time until which the result is used, by `performance.now()`; Infinity while the checks run. */
  #expires = 0;

  constructor(checks: Readonly<Record<string, ReadinessCheck>>, timeout: number) {
    this.#checks = Object.entries(checks);
    this.#timeout = timeout;
  }

  /** Resolves with the names of the checks that have failed. */
  failures(): Promise<readonly string[]> {
    if (this.#result === undefined || performance.now() > this.#expires) this.#result = this.#runAll();
    return this.#result;
  }

  async #runAll(): Promise<readonly string[]> {
    this.#expires = Number.POSITIVE_INFINITY;
    const names = await Promise.all(this.#checks.map((entry) => this.#run(entry)));
    this.#expires = performance.now() + MAX_AGE;
    return names.filter((name) => name !== undefined);
  }

  /** Resolves with the name of a check that fails. */
  async #run([name, check]: readonly [string, ReadinessCheck]): Promise<string | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const error = new Error(`no result after ${this.#timeout} ms`);
      timer = setTimeout(reject, this.#timeout, error).unref();
    });
    try {
      const passed = await Promise.race([call(check), late]);
      if (passed !== false) return undefined;
      debug.server('check %s returned false', name);
    } catch (error) {
      debug.server('check %s failed: %O', name, error);
    } finally {
      clearTimeout(timer);
    }
    return name;
  }
}

/** Calls a check; what it throws becomes a rejection. */
const call = async (check: ReadinessCheck): Promise<unknown> => check();

/** Milliseconds between two attempts to close idle connections. */
const STEP = 100;

/** Sockets get half of the timeout, so that their close frames reach the clients before it ends. */
const SOCKET_SHARE = 0.5;

/** Milliseconds in which a server that is to be closed accepts connections that arrive without a pause. */
const LAST_ACCEPTS = 500;

/**
 * Accepts the connections that wait in the kernel, which would be reset with their requests when the server closes. They
 * are all accepted when none was for a whole iteration of the event loop.
 */
async function acceptWaiting(server: Server): Promise<void> {
  const end = performance.now() + LAST_ACCEPTS;
  let quiet = 0;
  const onConnection = (): void => {
    quiet = 0;
  };
  server.on('connection', onConnection);
  // The first of two immediates may run before the event loop has looked for connections.
  while (quiet++ < 2 && performance.now() < end) await nextImmediate();
  server.off('connection', onConnection);
}

/** Closes a server with its parts. Resolves when every connection is closed. */
async function drainServer(
  server: Server & { closeIdleConnections?(): void },
  connections: Connections,
  { delay, timeout }: { readonly delay: number; readonly timeout: number },
): Promise<void> {
  if (delay > 0) {
    await sleep(delay);
    await acceptWaiting(server);
  }
  const closed = new Promise<void>((resolve) => {
    // A server that does not listen calls back with an error, but may have connections.
    server.close(() => resolve());
  });
  const closeIdle = (): void => {
    server.closeIdleConnections?.();
    connections.closeSessions();
    connections.closeWithoutRequest();
  };
  closeIdle();
  // Node closes a connection that becomes idle later only after `keepAliveTimeout`.
  const step = setInterval(closeIdle, STEP);
  const end = setTimeout(() => connections.destroy(), timeout);
  await Promise.all([closed, closeParts(server, timeout * SOCKET_SHARE)]);
  // The server closes before its last sockets report that they are closed.
  await connections.closed();
  clearInterval(step);
  clearTimeout(end);
}

/** Milliseconds in which the first bytes of a request have to arrive on a connection that is to be closed. */
const REQUEST_START = 1000;

/** The open connections of a server. */
class Connections {
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Set<Http2Session>();
  /** The time (`performance.now()`) at which each socket was opened, or its TLS handshake ended. */
  readonly #opened = new WeakMap<Socket, number>();
  readonly #secure = new Set<Socket>();

  constructor(server: Server) {
    const onOpen = (open: Set<Socket>) => (socket: Socket) => {
      track(open, socket);
      this.#opened.set(socket, performance.now());
    };
    server.on('connection', onOpen(this.#sockets));
    // Emitted by TLS servers only. The bytes of the encrypted socket include those of the handshake.
    server.on('secureConnection', onOpen(this.#secure));
    // Emitted by HTTP/2 servers only.
    server.on('session', (session: Http2Session) => track(this.#sessions, session));
  }

  get size(): number {
    return this.#sockets.size;
  }

  /**
   * Tells clients not to send further requests on their connections, before these are closed: a request that meets the
   * close is lost (RFC 9112 §9.6, RFC 9113 §6.8).
   */
  announceClose(server: Server): void {
    for (const session of this.#sessions) shutDown(session);
    for (const sockets of [this.#sockets, this.#secure]) {
      // The response to the request in progress, which Node has no other way to.
      for (const socket of sockets) closeAfter((socket as Socket & { _httpMessage?: unknown })._httpMessage);
    }
    // Before the application, which may send the response at once.
    server.prependListener('request', (req: IncomingMessage | Http2ServerRequest, res: ServerResponse) => {
      if (!('stream' in req)) closeAfter(res);
      else if (req.stream.session !== undefined) shutDown(req.stream.session);
    });
  }

  /** Closes HTTP/2 sessions after the streams that are open. */
  closeSessions(): void {
    for (const session of this.#sessions) if (!session.closed) session.close();
  }

  /**
   * Closes connections on which no request has begun. Browsers open some in advance, and Node counts them as
   * active until its `headersTimeout`.
   */
  closeWithoutRequest(): void {
    const latest = performance.now() - REQUEST_START;
    for (const sockets of [this.#sockets, this.#secure]) {
      for (const socket of sockets) {
        if (socket.bytesRead === 0 && (this.#opened.get(socket) ?? latest) <= latest) socket.destroy();
      }
    }
  }

  /** Resolves when the last connection is closed. */
  async closed(): Promise<void> {
    for (const socket of this.#sockets) await new Promise((resolve) => socket.once('close', resolve));
  }

  destroy(): void {
    for (const session of this.#sessions) session.destroy();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Lets a response end its connection. The header stays when the body of a request with `Expect` is read. */
function closeAfter(res: unknown): void {
  if (res instanceof ServerResponse && !res.headersSent) res.setHeader('Connection', 'close');
}

/** The last id of a stream: requests that cross the GOAWAY are still handled. */
const ANY_STREAM = 2 ** 31 - 1;
const shutDowns = new WeakSet<Http2Session>();

function shutDown(session: Http2Session): void {
  if (shutDowns.has(session) || session.closed || session.destroyed) return;
  shutDowns.add(session);
  session.goaway(0, ANY_STREAM);
}

function track<T extends Socket | Http2Session>(open: Set<T>, value: T): void {
  open.add(value);
  value.once('close', () => open.delete(value));
}
