import type { IncomingMessage } from 'node:http';
import { Server } from 'node:net';
import type { Hook } from '../../types/connect.ts';
import type {
  StreamConnection,
  SubscriptionConnection,
  SubscriptionStats,
} from '../../types/subscriptions.ts';
import type { GraphQLCore } from '../core/core.ts';
import { events, ObservedConnection } from '../diagnostics/events.ts';
import { noteOtherServer } from '../diagnostics/logging.ts';
import { registerGauge } from '../diagnostics/stats.ts';
import { DEFAULT_TIMEOUT } from '../execution/deadline.ts';
import { HttpError } from '../http/reply.ts';
import { addPart } from '../http/server-parts.ts';
import { assertSync, MAX_DELAY } from '../options/rules.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import { getOrCreate } from '../options/values.ts';
import { SubscriptionGroups } from './groups.ts';
import type { OperationServices, OperationSettings } from './operation.ts';
import { FlushScheduler } from './queue.ts';
import type { SourceCounters } from './source.ts';
import { IntervalTimer } from './timers.ts';

/** A client with operations in progress: a WebSocket or an event stream. */
export interface LiveConnection {
  readonly operationCount: number;
  readonly isClosing: boolean;
  /** The operations in progress. */
  readonly operations: Iterable<{ readonly isLive: boolean }>;
  /** False until the application has accepted the client and its context is complete. */
  readonly isAccepted: boolean;
  /** The checks that are repeated when the client is accepted; undefined while the application does not decide. */
  readonly pendingChecks?: (() => void)[] | undefined;
  checkDeadlines(now: number): void;
  /** Returns the object that `disconnect` passes to its predicate. */
  describe(): SubscriptionConnection | StreamConnection;
  /** Ends all operations and closes the connection. Event streams have neither a code nor a reason. */
  closeSocket(code: number, reason: string): void;
}

const MIB = 1024 * 1024;
/** Milliseconds between two steps of a drain. */
const DRAIN_STEP = 50;

interface ClientLimits {
  readonly operations: number;
  readonly bufferedBytes: number;
}

/** The options of one endpoint that every transport has. */
export interface EndpointSettings extends OperationSettings {
  readonly contextPer: 'operation' | 'event' | 'connection';
  /** Milliseconds between two pings; 0: none. */
  readonly ping: number;
  readonly limits: ClientLimits;
}

/** Bytes of memory for the documents and variables of all operations of a client. */
export const OPERATION_BYTES: number = 4 * MIB;

/** The defaults of every transport, which the options of `attachSubscriptions` change. */
export const LIVE_DEFAULTS: EndpointSettings & { readonly limits: { readonly connections: number } } = {
  contextPer: 'operation',
  ping: 12_000,
  share: undefined,
  limits: { operations: 100, bufferedBytes: MIB, connections: 100_000 },
};

/** The connections of one endpoint over all transports, with the sources, groups and timers that they share. */
export class LiveEndpoint implements OperationServices {
  readonly core: GraphQLCore;
  readonly settings: EndpointSettings;
  readonly scheduler: FlushScheduler = new FlushScheduler();
  readonly counters: SourceCounters = { sources: 0, unreleased: 0 };
  readonly timer: IntervalTimer;
  readonly groups: SubscriptionGroups;
  /** True when the endpoint accepts no more connections. */
  isClosed = false;
  /** The checks of `disconnect` for event streams whose context is being created, by their response. */
  readonly opening: Map<object, ((connection: LiveConnection) => void)[]> = new Map();
  readonly #connections = new Set<LiveConnection>();
  readonly #emptyListeners: (() => void)[] = [];
  /** The connections that subscribers of `espalier:graphql:connection` observe. */
  readonly #observed = new WeakMap<LiveConnection, ObservedConnection>();

  /** `period` is the number of milliseconds between two checks of deadlines. */
  constructor(core: GraphQLCore, settings: EndpointSettings, period: number) {
    this.core = core;
    this.settings = settings;
    this.timer = new IntervalTimer(period, (now) => this.#tick(now));
    const pacing = { burstBytes: settings.limits.bufferedBytes / 4, scheduler: this.scheduler };
    this.groups = new SubscriptionGroups(this.counters, pacing, this.timer);
    core.onReplace(() => this.#retire());
    registerGauge(this, { kind: 'live', read: () => ({ ...this.stats() }) });
  }

  get connections(): ReadonlySet<LiveConnection> {
    return this.#connections;
  }
  get connectionCount(): number {
    return this.#connections.size;
  }

  add(connection: LiveConnection): void {
    this.#connections.add(connection);
    this.timer.start();
    if (events.connection.hasSubscribers) this.#observe(connection);
  }

  remove(connection: LiveConnection): void {
    this.#connections.delete(connection);
    this.#observed.get(connection)?.end(undefined);
    if (this.#connections.size === 0) for (const resolve of this.#emptyListeners.splice(0)) resolve();
  }

  #observe(connection: LiveConnection): void {
    const observed = new ObservedConnection(connection.describe());
    this.#observed.set(connection, observed);
    events.connection.publish(observed);
  }

  stats(): SubscriptionStats {
    let operations = 0;
    for (const { operationCount } of this.#connections) operations += operationCount;
    return {
      connections: this.#connections.size,
      operations,
      groups: this.groups.size,
      ...this.counters,
    };
  }

  /** Accepts no more connections, and closes all over a period of milliseconds, because clients reconnect soon after. */
  async drain(period: number): Promise<void> {
    this.isClosed = true;
    const connections = [...this.#connections];
    const started = performance.now();
    await new Promise<void>((resolve) => {
      let next = 0;
      const step = (): void => {
        const share = period === 0 ? 1 : Math.min(1, (performance.now() - started) / period);
        const due = Math.floor(connections.length * share);
        while (next < due) connections[next++]?.closeSocket(1001, 'Going away');
        if (next === connections.length) resolve();
        else setTimeout(step, Math.min(DRAIN_STEP, period / connections.length));
      };
      step();
    });
    await this.#closed();
  }

  /** Resolves when all connections are closed, and releases all sources. */
  async #closed(): Promise<void> {
    await new Promise<void>((resolve) => {
      if (this.#connections.size === 0) resolve();
      else this.#emptyListeners.push(resolve);
    });
    this.groups.close();
    this.timer.stop();
  }

  /** Tells clients to reconnect whose operations have not ended in time after the schema was replaced. */
  #retire(): void {
    const { milliseconds = DEFAULT_TIMEOUT } = this.core.timeLimit ?? {};
    const old = [...this.#connections].map((connection) => ({
      connection,
      operations: [...connection.operations],
    }));
    setTimeout(
      () => {
        for (const { connection, operations } of old)
          if (!connection.isClosing && operations.some(({ isLive }) => isLive))
            connection.closeSocket(1012, 'The schema was replaced');
      },
      Math.min(milliseconds, MAX_DELAY),
    ).unref();
  }

  #tick(now: number): boolean {
    for (const connection of this.#connections) connection.checkDeadlines(now);
    const hasIdleGroups = this.groups.releaseIdle(now);
    return hasIdleGroups || this.#connections.size > 0;
  }
}

/** Returns the endpoint of a handler without `attachSubscriptions` for a request. Each server has one, which its drain closes. */
export function endpointsByServer<E extends LiveEndpoint>(create: () => E): (req: IncomingMessage) => E {
  const endpoints = new WeakMap<object, E>();
  return ({ socket }) => {
    // Set by Node, and unknown on other platforms.
    const server: unknown = Object(socket).server;
    return getOrCreate(endpoints, server instanceof Server ? server : endpoints, () => {
      const endpoint = create();
      const reopen = (): void => {
        endpoint.isClosed = false;
      };
      // The server may listen again.
      if (server instanceof Server) addPart(server, ({ drain }) => endpoint.drain(drain).then(reopen));
      return endpoint;
    });
  };
}

/** An endpoint that `attachSubscriptions` has created for a core. */
interface AttachedEndpoint {
  readonly endpoint: LiveEndpoint;
  readonly maxConnections: number;
  /** Whether the option `onConnect` decides about connections. */
  readonly hasOnConnect: boolean;
}

const attached = new WeakMap<GraphQLCore, AttachedEndpoint[]>();

/** Makes the event streams of the core's handler connections of this endpoint. */
export function attachEndpoint(core: GraphQLCore, entry: AttachedEndpoint): void {
  const open = attached.get(core)?.filter(({ endpoint }) => !endpoint.isClosed) ?? [];
  attached.set(core, [...open, entry]);
}

/** Returns the endpoint for new event streams: the last one that was attached and is not closed, or the last one. */
export function attachedEndpoint(core: GraphQLCore): AttachedEndpoint | undefined {
  const entries = attached.get(core);
  return entries?.findLast(({ endpoint }) => !endpoint.isClosed) ?? entries?.at(-1);
}

/**
 * A server without a listener for upgrades passes the handshake of a WebSocket on as a plain request. Says what to do,
 * in the response and once on the console: browsers hide the response.
 *
 * @throws HttpError 400 for such a request, unless it has a query.
 */
export function assertNoHandshake(req: IncomingMessage, core: GraphQLCore): void {
  if (req.headers.upgrade?.toLowerCase() !== 'websocket' || req.url?.includes('query=') === true) return;
  const message =
    attachedEndpoint(core) === undefined
      ? 'A WebSocket cannot be opened, because no subscriptions are attached: call attachSubscriptions(server, handler) with the server that app.listen() returns'
      : 'A WebSocket cannot be opened, because attachSubscriptions was called with another server than the one that listens here: pass it the server that app.listen() returns';
  noteOtherServer(message);
  throw new HttpError(400, message, { code: 'BAD_REQUEST' });
}

/**
 * Closes the connections that the predicate selects; returns their number. Connections that are not accepted yet have
 * no complete context, so the predicate may throw for them. It decides again when a socket is accepted, and decides when an
 * event stream has its context: both may have checked their session before the logout.
 */
export function disconnect(
  { connections, opening }: Pick<LiveEndpoint, 'connections' | 'opening'>,
  predicate: Hook<[connection: SubscriptionConnection | StreamConnection], boolean>,
  code: number,
  reason: string,
): number {
  const scope = { ...SUBSCRIPTION_OPTIONS, name: 'disconnect' };
  const isSelected = (connection: LiveConnection): boolean =>
    !connection.isClosing && assertSync(predicate(connection.describe()), scope, 'predicate');
  const isSelectedEarly = (connection: LiveConnection): boolean => {
    try {
      if (isSelected(connection)) return true;
    } catch {
      // A member of a user that the context does not have yet.
    }
    connection.pendingChecks?.push(() => {
      if (isSelected(connection)) connection.closeSocket(code, reason);
    });
    return false;
  };
  for (const checks of opening.values())
    checks.push((stream) => {
      if (isSelected(stream)) stream.closeSocket(code, reason);
    });
  // Selected before any of them closes, so that a predicate that throws closes no connection.
  const selected = [...connections].filter((connection) =>
    connection.isAccepted ? isSelected(connection) : isSelectedEarly(connection),
  );
  for (const connection of selected) connection.closeSocket(code, reason);
  return selected.length;
}
