import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type {
  SubscriptionConnection,
  SubscriptionProtocol,
  SubscriptionStats,
  WebSocketLike,
} from '../../types/subscriptions.ts';
import type { GraphQLCore } from '../core/core.ts';
import { assertSync } from '../options/assert-sync.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import { Connection } from './connection.ts';
import type { Dialect } from './dialect.ts';
import { createEngine } from './engine.ts';
import { createGroups, type Groups } from './groups.ts';
import { createDeliver, type Deliver } from './held.ts';
import { legacy } from './legacy.ts';
import { modern } from './modern.ts';
import { createOutbox, type Outbox } from './outbox.ts';
import type { Counters } from './reader.ts';
import { type ConnectionSettings, isOpen } from './settings.ts';
import { createSweep, type Sweep } from './sweep.ts';

/** What the connections of one endpoint have in common. */
export interface Hub {
  readonly core: GraphQLCore;
  readonly settings: ConnectionSettings;
  readonly outbox: Outbox;
  readonly sweep: Sweep;
  readonly groups: Groups;
  readonly deliver: Deliver;
  readonly counters: Counters;
  readonly connections: ReadonlySet<Connection>;
  /** The context of a connection, before its parameters are put into it. */
  contextFor(websocket: WebSocketLike): unknown;
  /** Takes a WebSocket over; its listeners are there when this returns. `raw` is the socket below it. */
  open(websocket: WebSocketLike, request: IncomingMessage, raw: Duplex | undefined): void;
  disconnect(
    predicate: (connection: SubscriptionConnection) => boolean,
    code: number,
    reason: string,
  ): number;
  stats(): SubscriptionStats;
  /** Has `visit` called with the sweep for as long as it answers true. */
  watch(visit: (now: number) => boolean): void;
  /** Resolves when no connection is left. */
  empty(): Promise<void>;
}

const dialects: Record<SubscriptionProtocol, Dialect> = {
  'graphql-transport-ws': modern,
  'graphql-ws': legacy,
};
const CONNECTION = Symbol('espalier.connection');
type Bound = WebSocketLike & { [CONNECTION]?: Connection };

export function createHub(core: GraphQLCore, settings: ConnectionSettings): Hub {
  const connections = new Set<Connection>();
  const watched = new Set<(now: number) => boolean>();
  const engine = createEngine();
  const counters: Counters = { sources: 0, unreleased: 0 };
  const outbox = createOutbox();
  const sweep = createSweep(periodOf(settings), visit);
  const groups = createGroups({ counters, outbox, sweep, settings });
  const emptied: (() => void)[] = [];

  function open(websocket: WebSocketLike, request: IncomingMessage, raw: Duplex | undefined): void {
    websocket.on('error', ignore);
    if (!isOpen(websocket)) return;
    const name = settings.subscriptionProtocols.find((protocol) => protocol === websocket.protocol);
    if (name === undefined) {
      websocket.close(4406, 'Subprotocol not acceptable');
      return;
    }
    const connection = new Connection(hub, websocket, dialects[name], raw);
    connection.request = request;
    websocket.request = request;
    connection.leave = engine.opened(connection, connection);
    (websocket as Bound)[CONNECTION] = connection;
    websocket.on('message', onMessage);
    websocket.on('close', onClose);
    connections.add(connection);
    sweep.wake();
  }

  function onClose(this: Bound, code: number, reason: Buffer): void {
    const connection = this[CONNECTION];
    if (connection === undefined) return;
    connections.delete(connection);
    connection.closed(code, String(reason));
    if (connections.size === 0) for (const resolve of emptied.splice(0)) resolve();
  }

  function visit(now: number): boolean {
    for (const connection of connections) connection.schedule.visit(now);
    for (const visitor of watched) if (!visitor(now)) watched.delete(visitor);
    return groups.visit(now) || connections.size > 0 || watched.size > 0;
  }

  const hub: Hub = {
    core,
    settings,
    connections,
    outbox,
    sweep,
    groups,
    deliver: createDeliver(),
    counters,
    contextFor: contextSource(settings.context, core),
    open,
    disconnect(predicate, code, reason) {
      const picked = [...connections].filter(
        (connection) =>
          !connection.closing &&
          assertSync(
            predicate(connection.view()),
            { ...SUBSCRIPTION_OPTIONS, name: 'disconnect' },
            'predicate',
          ),
      );
      for (const connection of picked) connection.shut(code, reason);
      return picked.length;
    },
    stats() {
      let operations = 0;
      for (const connection of connections) operations += connection.operations.size;
      return { connections: connections.size, operations, groups: groups.size, ...counters };
    },
    watch(visitor) {
      watched.add(visitor);
      sweep.wake();
    },
    empty: () =>
      new Promise((resolve) => {
        if (connections.size === 0) resolve();
        else emptied.push(resolve);
      }),
  };
  return hub;
}

/** Our own option, or what the core does. */
function contextSource(context: unknown, core: GraphQLCore): Hub['contextFor'] {
  if (context === undefined) return (websocket) => core.contextFor(websocket);
  return typeof context === 'function' ? (websocket) => context(websocket) : () => context;
}

const ignore = (): void => undefined;

/** One function for all sockets. */
function onMessage(this: Bound, data: string | Buffer | ArrayBuffer | Buffer[]): void {
  this[CONNECTION]?.receive(textOf(data));
}

function textOf(data: string | Buffer | ArrayBuffer | Buffer[]): string {
  if (typeof data === 'string') return data;
  if (Array.isArray(data)) return Buffer.concat(data).toString();
  return Buffer.isBuffer(data) ? data.toString() : Buffer.from(data).toString();
}

/** Deadlines are kept to a quarter of the shortest, at most a second. */
function periodOf({ keepAlive, connectionInitWaitTimeout }: ConnectionSettings): number {
  const shortest = Math.min(keepAlive || Number.POSITIVE_INFINITY, connectionInitWaitTimeout, 4000);
  return Math.max(5, Math.floor(shortest / 4));
}
