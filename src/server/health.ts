import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
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
import { delay, resolveOptions } from '../options/rules.ts';
import { SERVER_OPTIONS } from '../options/scopes.ts';
import { Connections, drainServer } from './drain.ts';

const DRAIN = { ...SERVER_OPTIONS, name: 'drain' };

/** Milliseconds after which a check fails: probes do not wait longer. */
const CHECK_TIMEOUT = 2000;

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

  constructor(server: Server, { checks = {} }: HealthOptions) {
    this.#server = server;
    this.#checks = new Checks(checks);
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
  #result: Promise<readonly string[]> | undefined;
  /** The time until which the result is used, by `performance.now()`; Infinity while the checks run. */
  #expires = 0;

  constructor(checks: Readonly<Record<string, ReadinessCheck>>) {
    this.#checks = Object.entries(checks);
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
      const error = new Error(`no result after ${CHECK_TIMEOUT} ms`);
      timer = setTimeout(reject, CHECK_TIMEOUT, error).unref();
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
