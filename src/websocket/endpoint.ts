import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { SubscriptionConnection, SubscriptionStats, WebSocketLike } from '../../types/subscriptions.ts';
import { createContextFactory, type GraphQLCore } from '../core/core.ts';
import { assertSync } from '../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import type { SourceCounters } from '../subscriptions/consume-source.ts';
import { SubscriptionGroups } from '../subscriptions/groups.ts';
import { createIntervalTimer, type IntervalTimer } from '../subscriptions/interval-timer.ts';
import { Connection, type ConnectionServices } from './connection/connection.ts';
import type { ContextPolicy } from './connection/connection-context.ts';
import type { ConnectionSettings } from './connection/settings.ts';
import { UNKNOWN_SUBPROTOCOL } from './protocol/graphql-ws-adapter.ts';
import type { SessionLimits } from './protocol/session.ts';
import type { UpgradeTarget } from './upgrade/upgrade-handler.ts';
import { createFlushScheduler } from './write/flush-scheduler.ts';
import { createPrivateResultSender } from './write/large-results.ts';
import { isOpen } from './write/ready-state.ts';

const CONNECTION = Symbol('espalier.connection');
type BoundWebSocket = WebSocketLike & { [CONNECTION]?: Connection };

/** The connections of one `attachSubscriptions`, or of one `websocketHandler`. */
export class Endpoint implements UpgradeTarget {
  readonly settings: ConnectionSettings;
  readonly timer: IntervalTimer;
  readonly #services: ConnectionServices;
  readonly #connections = new Set<Connection>();
  readonly #deadlines = new Set<(now: number) => boolean>();
  readonly #emptyListeners: (() => void)[] = [];

  constructor(core: GraphQLCore, settings: ConnectionSettings) {
    const counters: SourceCounters = { sources: 0, unreleased: 0 };
    const scheduler = createFlushScheduler();
    const timer = createIntervalTimer(periodOf(settings), (now) => this.#tick(now));
    const pacing = {
      burstBytes: settings.maxBufferedBytes / 4,
      isBackpressured: scheduler.isBackpressured,
      yield: scheduler.yield,
    };
    this.settings = settings;
    this.timer = timer;
    this.#services = {
      core,
      settings,
      limits: limitsOf(settings, core),
      scheduler,
      timer,
      counters,
      groups: new SubscriptionGroups(counters, pacing, timer),
      sendPrivateResult: createPrivateResultSender(),
      context: contextPolicy(settings, core),
      onClosed: (connection) => this.#onClosed(connection),
    };
  }

  get connections(): ReadonlySet<Connection> {
    return this.#connections;
  }
  get connectionCount(): number {
    return this.#connections.size;
  }

  isHostAllowed(request: IncomingMessage): boolean {
    return this.#services.core.isHostAllowed(request);
  }

  reportError(error: unknown, request: IncomingMessage): void {
    const socket = undefined;
    this.#services.core.reportError(error, {
      transport: 'websocket',
      operationName: undefined,
      request,
      socket,
    });
  }

  /** Serves a WebSocket; its listeners are registered synchronously. `socket` is its underlying socket. */
  open(websocket: WebSocketLike, request: IncomingMessage, socket: Duplex | undefined): void {
    websocket.on('error', ignore);
    if (!isOpen(websocket)) return;
    const protocol = this.settings.subscriptionProtocols.find((name) => name === websocket.protocol);
    if (protocol === undefined) {
      websocket.close(UNKNOWN_SUBPROTOCOL.code, UNKNOWN_SUBPROTOCOL.reason);
      return;
    }
    const connection = new Connection(this.#services, { websocket, request, socket, protocol });
    (websocket as BoundWebSocket)[CONNECTION] = connection;
    websocket.on('message', onMessage);
    websocket.on('close', onClose);
    this.#connections.add(connection);
    this.timer.start();
  }

  /** Closes the connections that the predicate selects; returns their number. */
  disconnect(
    predicate: (connection: SubscriptionConnection) => boolean,
    code: number,
    reason: string,
  ): number {
    const scope = { ...SUBSCRIPTION_OPTIONS, name: 'disconnect' };
    const selected = [...this.#connections].filter(
      (connection) =>
        !connection.isClosing && assertSync(predicate(connection.describe()), scope, 'predicate'),
    );
    for (const connection of selected) connection.closeSocket(code, reason);
    return selected.length;
  }

  stats(): SubscriptionStats {
    const { counters, groups } = this.#services;
    let operations = 0;
    for (const { session } of this.#connections) operations += session.operationCount;
    return { connections: this.#connections.size, operations, groups: groups.size, ...counters };
  }

  /** Calls `check` at each tick of the timer until it returns false. */
  watch(check: (now: number) => boolean): void {
    this.#deadlines.add(check);
    this.timer.start();
  }

  /** Resolves when all connections are closed, and releases all sources. */
  async closed(): Promise<void> {
    await new Promise<void>((resolve) => {
      if (this.#connections.size === 0) resolve();
      else this.#emptyListeners.push(resolve);
    });
    this.#services.groups.close();
    this.timer.stop();
  }

  #onClosed(connection: Connection): void {
    this.#connections.delete(connection);
    if (this.#connections.size === 0) for (const resolve of this.#emptyListeners.splice(0)) resolve();
  }

  #tick(now: number): boolean {
    for (const connection of this.#connections) connection.deadlines.check(now);
    for (const check of this.#deadlines) if (!check(now)) this.#deadlines.delete(check);
    const hasIdleGroups = this.#services.groups.releaseIdle(now);
    return hasIdleGroups || this.#connections.size > 0 || this.#deadlines.size > 0;
  }
}

/** Returns the option `context`, or the context of the core if the option is not set. */
function contextPolicy({ context, contextPer }: ConnectionSettings, core: GraphQLCore): ContextPolicy {
  const isFunction = context === undefined ? core.hasContextFunction : typeof context === 'function';
  const create = context === undefined ? core.contextFor : createContextFactory(context);
  return { create, isFunction, perOperation: isFunction && contextPer === 'operation' };
}

const ignore = (): void => undefined;

// One listener for all WebSockets.

function onClose(this: BoundWebSocket): void {
  this[CONNECTION]?.onClosed();
}

function onMessage(this: BoundWebSocket, data: string | Buffer | ArrayBuffer | Buffer[]): void {
  this[CONNECTION]?.session.receive(textOf(data));
}

function textOf(data: string | Buffer | ArrayBuffer | Buffer[]): string {
  if (typeof data === 'string') return data;
  if (Array.isArray(data)) return Buffer.concat(data).toString();
  return Buffer.isBuffer(data) ? data.toString() : Buffer.from(data).toString();
}

function limitsOf(settings: ConnectionSettings, core: GraphQLCore): SessionLimits {
  const { maxOperations, maxOperationBytes, maxIdLength, maxBufferedBytes } = settings;
  return { maxOperations, maxOperationBytes, maxIdLength, maxBufferedBytes, maxVariables: core.maxVariables };
}

/** Deadlines are checked at a quarter of the shortest one, and at least every second. */
function periodOf({ keepAlive, connectionInitWaitTimeout }: ConnectionSettings): number {
  const shortest = Math.min(keepAlive || Number.POSITIVE_INFINITY, connectionInitWaitTimeout, 4000);
  return Math.max(5, Math.floor(shortest / 4));
}
