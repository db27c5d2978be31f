import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { GraphQLSchema } from 'graphql';
import type { Subscriptions, WebSocketLike, WebsocketHandler } from '../../types/subscriptions.ts';
import { coreOf, createContextFactory, createCore, type GraphQLCore } from '../core/core.ts';
import type { CreateExtensions } from '../core/extension.ts';
import { resolveCoreOptions } from '../core/options.ts';
import { hasHandler, schemaHint } from '../core/schema.ts';
import { noteBareSchema, noteServerWithoutSockets } from '../diagnostics/logging.ts';
import { packages } from '../diagnostics/packages.ts';
import { ipOf } from '../http/address.ts';
import { addPart } from '../http/server-parts.ts';
import { delay, resolveOptions, wrongArgument } from '../options/rules.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import { isCount, isFunction } from '../options/values.ts';
import {
  Connection,
  type ConnectionServices,
  type ConnectionSettings,
  type ContextPolicy,
} from './connection.ts';
import { attachEndpoint, disconnect, endpointsByServer, LiveEndpoint } from './endpoint.ts';
import { isOpen } from './frames.ts';
import { connectionRules, resolveLimits, upgradeRules } from './options.ts';
import { UNKNOWN_SUBPROTOCOL } from './protocols.ts';
import { UpgradeHandler } from './upgrade.ts';
import { registerPath } from './upgrade-router.ts';

// The scopes of the methods of `Subscriptions`.
const CLOSE = { ...SUBSCRIPTION_OPTIONS, name: 'close' };
const DISCONNECT = { ...SUBSCRIPTION_OPTIONS, name: 'disconnect' };

/** Serves a schema's operations over the WebSockets of one path of a server. */
export function attach(
  server: unknown,
  target: unknown,
  options: unknown,
  createExtensions: CreateExtensions,
): Subscriptions {
  if (!isServer(server)) {
    const accepted = 'an http.Server, such as app.listen() returns: attachSubscriptions(server, handler)';
    throw wrongArgument(SUBSCRIPTION_OPTIONS, 'server', server, accepted);
  }
  assertTarget(target);
  const rules = { ...connectionRules, ...upgradeRules };
  const own = resolveOptions(SUBSCRIPTION_OPTIONS, options, rules);
  const limits = resolveLimits(own.limits);
  const core = coreFor(target, createExtensions);
  const settings = { ...own, limits, allowedOrigins: own.allowedOrigins ?? core.allowedOrigins };
  // Later, so that the handlers of the same module are created.
  setImmediate(noteMistakes, server, target);
  const endpoint = new WebSocketEndpoint(core, settings);
  const upgrades = new UpgradeHandler(server, endpoint, settings);
  const releasePath = registerPath(server, settings.path, upgrades.handle);
  attachEndpoint(core, {
    endpoint,
    maxConnections: limits.connections,
    hasOnConnect: own.onConnect !== undefined,
  });
  let closing: Promise<void> | undefined;
  const subscriptions: Subscriptions = {
    close(given) {
      const { drain } = resolveOptions(CLOSE, given, { drain: delay(0, 0) });
      if (closing === undefined) {
        upgrades.close();
        closing = endpoint.drain(drain).finally(releasePath);
      }
      return closing;
    },
    disconnect(predicate, code = 4403, reason = 'Forbidden') {
      if (!isFunction(predicate)) throw wrongArgument(DISCONNECT, 'predicate', predicate, 'a function');
      if (!isCloseCode(code)) {
        const accepted = 'a close code that may be sent, such as 1000 or 4403';
        throw wrongArgument(DISCONNECT, 'code', code, accepted);
      }
      return disconnect(endpoint, predicate, code, reason);
    },
    stats: () => endpoint.stats(),
  };
  addPart(server, (drainOptions) => subscriptions.close(drainOptions));
  return subscriptions;
}

/** Servers of Bun are not instances of `net.Server`. An Express app has `listen` too, but is a function. */
function isServer(value: unknown): value is Server {
  if (value instanceof Server) return true;
  return value instanceof EventEmitter && 'listen' in value && 'address' in value;
}

function assertTarget(target: unknown): void {
  if (coreOf(target) !== undefined || target instanceof GraphQLSchema) return;
  const accepted = `the handler that graphqlHTTP returned, or a GraphQLSchema${schemaHint(target)}`;
  throw wrongArgument(SUBSCRIPTION_OPTIONS, 'target', target, accepted);
}

function noteMistakes(server: Server, target: unknown): void {
  if (target instanceof GraphQLSchema && hasHandler(target)) noteBareSchema();
  if (isHttp2Only(server) && server.listenerCount('connect') === 0) noteServerWithoutSockets();
}

/**
 * Of the servers of `node:http2`, those with `allowHTTP1` have a timeout for headers, and those that accept WebSockets
 * a listener for `connect`.
 */
const isHttp2Only = (server: Server): boolean => 'updateSettings' in server && !('headersTimeout' in server);

/** Returns the core of a handler, or creates one for a schema. */
function coreFor(target: unknown, createExtensions: CreateExtensions): GraphQLCore {
  const core = coreOf(target);
  if (core !== undefined) return core;
  const settings = resolveCoreOptions(SUBSCRIPTION_OPTIONS, {}, { rules: {}, limits: {} });
  return createCore(SUBSCRIPTION_OPTIONS, target, settings, createExtensions);
}

/** Whether a close frame may carry the code (RFC 6455 §7.4). */
function isCloseCode(code: unknown): boolean {
  if (!isCount(code)) return false;
  return (code >= 3000 && code < 5000) || (code >= 1000 && code < 1015 && (code < 1004 || code > 1006));
}

const CONNECTION = Symbol('espalier.connection');
type BoundWebSocket = WebSocketLike & { [CONNECTION]?: Connection };

/** The endpoint of one `attachSubscriptions`, or of one `websocketHandler`. */
export class WebSocketEndpoint extends LiveEndpoint {
  declare readonly settings: ConnectionSettings;
  readonly #services: ConnectionServices;

  constructor(core: GraphQLCore, settings: ConnectionSettings) {
    super(core, settings, periodOf(settings));
    const { counters, groups, scheduler, timer } = this;
    this.#services = {
      core,
      settings,
      protocol: packages.graphqlWs(),
      messages: { maxVariables: core.maxVariables, acceptsIds: core.documents !== undefined },
      scheduler,
      timer,
      counters,
      groups,
      context: contextPolicy(settings, core),
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

  /** Whether limits, or functions of the options, read the addresses of clients. */
  get readsAddress(): boolean {
    return this.core.clients !== undefined || this.core.readsSource;
  }

  /**
   * Serves a WebSocket; its listeners are registered synchronously. `socket` is its underlying socket. Returns undefined if
   * the WebSocket was closed at once.
   */
  open(
    websocket: WebSocketLike,
    request: IncomingMessage,
    socket: Duplex | undefined,
    { hasContext, deflates }: { readonly hasContext: boolean; readonly deflates: boolean },
  ): Connection | undefined {
    websocket.on('error', ignore);
    if (!isOpen(websocket)) return undefined;
    if (this.isClosed) {
      websocket.close(1001, 'Going away');
      return undefined;
    }
    const protocol = this.core.subscriptionProtocols.find((name) => name === websocket.protocol);
    if (protocol === undefined) {
      websocket.close(UNKNOWN_SUBPROTOCOL.code, UNKNOWN_SUBPROTOCOL.reason);
      return undefined;
    }
    // The request is not kept.
    if (this.readsAddress && !('ip' in websocket)) Object.assign(websocket, { ip: ipOf(request) });
    const connection = new Connection(this.#services, {
      websocket,
      request,
      socket,
      protocol,
      hasContext,
      deflates,
    });
    (websocket as BoundWebSocket)[CONNECTION] = connection;
    websocket.on('message', onMessage);
    websocket.on('close', onClose);
    this.add(connection);
    return connection;
  }
}

/** Returns the option `context`, or the context of the core if the option is not set. */
function contextPolicy(settings: ConnectionSettings, core: GraphQLCore): ContextPolicy {
  const { context, contextPer } = settings;
  const isFunction = context === undefined ? core.hasContextFunction : typeof context === 'function';
  const create = context === undefined ? core.contextFor : createContextFactory(context);
  return {
    create,
    isFunction,
    exposesRequest: isFunction || core.readsSource,
    perOperation: isFunction && contextPer !== 'connection',
    perEvent: (isFunction || core.findCaller !== undefined || core.checksEvents) && contextPer === 'event',
  };
}

const ignore = (): void => undefined;

// Functions instead of closures, so that all WebSockets share their listeners.
function onClose(this: BoundWebSocket, code: number, reason: Buffer | string): void {
  this[CONNECTION]?.onClosed(code, String(reason));
}

function onMessage(this: BoundWebSocket, data: string | Buffer | ArrayBuffer | Buffer[]): void {
  this[CONNECTION]?.receive(textOf(data));
}

function textOf(data: string | Buffer | ArrayBuffer | Buffer[]): string {
  if (typeof data === 'string') return data;
  if (Array.isArray(data)) return Buffer.concat(data).toString();
  return Buffer.isBuffer(data) ? data.toString() : Buffer.from(data).toString();
}

/** Deadlines are checked at a quarter of the shortest one, and at least every second. */
function periodOf({ ping, limits }: ConnectionSettings): number {
  const shortest = Math.min(ping || Number.POSITIVE_INFINITY, limits.initTimeout, 4000);
  return Math.max(5, Math.floor(shortest / 4));
}

/**
 * Creates the `websocketHandler` of a `graphqlHTTP` handler, for `app.ws(path, ...)` of express-ws or a
 * WebSocketServer.
 */
export function createWebsocketHandler(core: GraphQLCore): WebsocketHandler {
  const settings = resolveOptions(SUBSCRIPTION_OPTIONS, {}, connectionRules);
  const limits = resolveLimits(undefined);
  packages.graphqlWs();
  const endpointOf = endpointsByServer(() => new WebSocketEndpoint(core, { ...settings, limits }));
  return function websocketHandler(websocket, request) {
    // We may write to the socket only if the WebSocket was opened by this request, over HTTP/1.
    const socket =
      request.httpVersionMajor === 1 && request.socket instanceof Socket ? request.socket : undefined;
    const endpoint = endpointOf(request);
    const connection = endpoint.open(websocket, request, socket, { hasContext: true, deflates: false });
    // It is open while its client is counted, because messages without a listener would be lost.
    if (connection !== undefined && core.clients !== undefined)
      connection.enter().catch((error) => connection.session.refuseFor(error));
  };
}
