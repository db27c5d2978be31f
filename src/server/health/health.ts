import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type {
  DrainOptions,
  HealthOptions,
  ServerHealth,
  ServerState,
  ServerStats,
} from '../../../types/health.ts';
import { readProcessStats } from '../../diagnostics/process-stats.ts';
import { writeReply } from '../../http/reply/write-reply.ts';
import { resolveOptions } from '../../options/resolve-options.ts';
import { delay } from '../../options/rules.ts';
import { SERVER_OPTIONS } from '../../options/scopes.ts';
import { Checks } from './checks.ts';
import { Connections } from './connections.ts';
import { drainServer } from './drain.ts';

const DRAIN = { ...SERVER_OPTIONS, name: 'drain' };

/** Milliseconds until the checks of a server that is not ready run again. */
const RETRY = 1000;

/** Adds the members of `ServerHealth` to a server. */
export function addHealth<S extends Server>(server: S, options: HealthOptions): S & ServerHealth {
  const health = new Health(server, options);
  const members: ServerHealth = {
    ready: () => health.ready(),
    liveness: (req, res) => send(req, res, health.isDraining ? DRAINING : { status: 'live' }),
    readiness: (req, res) => void health.readiness().then((report) => send(req, res, report)),
    drain: (given) => health.drain(given),
    stats: () => health.stats(),
  };
  return Object.assign(server, members);
}

/** The body of a response of the handlers. */
interface Report {
  readonly status: 'live' | 'ready' | 'starting' | 'draining' | 'unavailable';
  /** The names of the checks that have failed. */
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

  constructor(server: Server, { checks = {}, checkTimeout = 2000 }: HealthOptions) {
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

function send(req: IncomingMessage, res: ServerResponse, report: Report): void {
  const headers: Record<string, string> = {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  };
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    writeReply(req, res, { status: 405, headers: { ...headers, allow: 'GET, HEAD' }, body: '' });
    return;
  }
  const isHealthy = report.status === 'live' || report.status === 'ready';
  // The client connects again, possibly to another server.
  if (!isHealthy) res.shouldKeepAlive = false;
  writeReply(req, res, { status: isHealthy ? 200 : 503, headers, body: JSON.stringify(report) });
}
