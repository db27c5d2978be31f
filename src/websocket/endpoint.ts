import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocketLike } from '../../types/subscriptions.ts';
import { createContextFactory, type GraphQLCore } from '../core/core.ts';
import { LiveEndpoint } from '../subscriptions/endpoint.ts';
import { createFlushScheduler } from '../subscriptions/flush-scheduler.ts';
import { Connection } from './connection/connection.ts';
import type { ContextPolicy } from './connection/connection-context.ts';
import type { ConnectionServices } from './connection/services.ts';
import type { ConnectionSettings } from './connection/settings.ts';
import { UNKNOWN_SUBPROTOCOL } from './protocol/graphql-ws-adapter.ts';
import type { SessionLimits } from './protocol/session-connection.ts';
import type { UpgradeTarget } from './upgrade/upgrade-handler.ts';
import { createPrivateResultSender } from './write/large-results.ts';
import { isOpen } from './write/ready-state.ts';
import { createFrameWriter } from './write/repeated-frames.ts';

const CONNECTION = Symbol('espalier.connection');
type BoundWebSocket = WebSocketLike & { [CONNECTION]?: Connection };

/** The endpoint of one `attachSubscriptions`, or of one `websocketHandler`. */
export class WebSocketEndpoint extends LiveEndpoint implements UpgradeTarget {
  declare readonly settings: ConnectionSettings;
  readonly #services: ConnectionServices;

  constructor(core: GraphQLCore, settings: ConnectionSettings) {
    const scheduler = Object.assign(createFlushScheduler(), { write: createFrameWriter() });
    super(core, settings, scheduler, periodOf(settings));
    const { counters, groups, timer } = this;
    this.#services = {
      core,
      settings,
      limits: limitsOf(settings, core),
      scheduler,
      timer,
      counters,
      groups,
      sendPrivateResult: createPrivateResultSender(),
      context: contextPolicy(settings, core),
      onOperation: core.operationHookFor(settings.onOperation),
      onClosed: (connection) => this.remove(connection),
    };
  }

  isHostAllowed(request: IncomingMessage): boolean {
    return this.core.isHostAllowed?.(request) ?? true;
  }

  reportError(error: unknown, request: IncomingMessage): void {
    const socket = undefined;
    this.core.reportError(error, { transport: 'websocket', operationName: undefined, request, socket });
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
    this.add(connection);
  }
}

/** Returns the option `context`, or the context of the core if the option is not set. */
function contextPolicy(settings: ConnectionSettings, core: GraphQLCore): ContextPolicy {
  const { context, contextPer, onOperation } = settings;
  const isFunction = context === undefined ? core.hasContextFunction : typeof context === 'function';
  const create = context === undefined ? core.contextFor : createContextFactory(context);
  return {
    create,
    isFunction,
    exposesRequest: isFunction || core.readsSource || core.operationHookFor(onOperation) !== undefined,
    perOperation: isFunction && contextPer !== 'connection',
    perEvent: isFunction && contextPer === 'event',
  };
}

const ignore = (): void => undefined;

// Functions instead of closures, so that all WebSockets share their listeners.
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
  const { maxVariables, documents } = core;
  const acceptsIds = documents !== undefined;
  return { maxOperations, maxOperationBytes, maxIdLength, maxBufferedBytes, maxVariables, acceptsIds };
}

/** Deadlines are checked at a quarter of the shortest one, and at least every second. */
function periodOf({ keepAlive, connectionInitWaitTimeout }: ConnectionSettings): number {
  const shortest = Math.min(keepAlive || Number.POSITIVE_INFINITY, connectionInitWaitTimeout, 4000);
  return Math.max(5, Math.floor(shortest / 4));
}
