import { EventEmitter } from 'node:events';
import { Server } from 'node:net';
import { GraphQLSchema } from 'graphql';
import type { Subscriptions } from '../../types/subscriptions.ts';
import { coreOf, createCore, type GraphQLCore, schemaHint } from '../core/core.ts';
import { onErrorRule, resolveCoreOptions } from '../core/options.ts';
import { addPart } from '../http/server-parts.ts';
import { noteBareSchema, noteServerWithoutSockets } from '../logging/notices.ts';
import type { OnError } from '../logging/report-error.ts';
import { optionError, resolveOptions, wrongArgument } from '../options/resolve-options.ts';
import { delay, isCount, isFunction } from '../options/rules.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import { disconnect } from '../subscriptions/disconnect.ts';
import { attachEndpoint } from '../subscriptions/endpoint.ts';
import { WebSocketEndpoint } from './endpoint.ts';
import { hasHandlerAt } from './mounted-handler.ts';
import { connectionRules, REPLACED_OPTIONS, upgradeRules } from './options.ts';
import { createUpgradeHandler } from './upgrade/upgrade-handler.ts';
import { registerPath } from './upgrade/upgrade-router.ts';

// The scopes of the methods of `Subscriptions`.
const CLOSE = { ...SUBSCRIPTION_OPTIONS, name: 'close' };
const DISCONNECT = { ...SUBSCRIPTION_OPTIONS, name: 'disconnect' };

/** Serves a schema's operations over the WebSockets of one path of a server. */
export function attach(server: unknown, target: unknown, options: unknown): Subscriptions {
  if (!isServer(server)) {
    const accepted = 'an http.Server, such as app.listen() returns: attachSubscriptions(server, handler)';
    throw wrongArgument(SUBSCRIPTION_OPTIONS, 'server', server, accepted);
  }
  assertTarget(target);
  const rules = { ...connectionRules, ...upgradeRules, onError: onErrorRule };
  const settings = resolveOptions(SUBSCRIPTION_OPTIONS, options, rules, REPLACED_OPTIONS);
  const core = coreFor(target, settings.onError);
  // Later, so that the mounts of the same module are complete.
  if (coreOf(target) === undefined) setImmediate(noteUnusedHandler, server, settings.path);
  setImmediate(noteHttp2Only, server);
  const endpoint = new WebSocketEndpoint(core, settings);
  const upgrades = createUpgradeHandler(server, endpoint, settings);
  const releasePath = registerPath(server, settings.path, upgrades.handle);
  const { maxConnections, onConnect } = settings;
  attachEndpoint(core, { endpoint, maxConnections, hasOnConnect: onConnect !== undefined });
  let closing: Promise<void> | undefined;
  const subscriptions: Subscriptions = {
    close(given) {
      const { drain } = resolveOptions(CLOSE, given, { drain: delay(0, 0) });
      if (closing === undefined) {
        upgrades.close();
        endpoint.isClosed = true;
        closing = drainEndpoint(endpoint, drain).finally(releasePath);
      }
      return closing;
    },
    disconnect(predicate, code = 4403, reason = 'Forbidden') {
      if (!isFunction(predicate)) throw wrongArgument(DISCONNECT, 'predicate', predicate, 'a function');
      if (!isCloseCode(code)) {
        const accepted = 'a close code that may be sent, such as 1000 or 4403';
        throw wrongArgument(DISCONNECT, 'code', code, accepted);
      }
      return disconnect(endpoint.connections, { predicate, code, reason });
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

/**
 * Of the servers of `node:http2`, those with `allowHTTP1` have a timeout for headers, and those that accept WebSockets
 * a listener for `connect`.
 */
function noteHttp2Only(server: Server): void {
  const isHttp2Only = 'updateSettings' in server && !('headersTimeout' in server);
  if (isHttp2Only && server.listenerCount('connect') === 0) noteServerWithoutSockets();
}

function noteUnusedHandler(server: Server, path: string): void {
  if (hasHandlerAt(server, path)) noteBareSchema(path);
}

/** Returns the core of a handler, or creates one for a schema. */
function coreFor(target: unknown, onError: OnError): GraphQLCore {
  const core = coreOf(target);
  if (core !== undefined) {
    if (onError === undefined) return core;
    const message =
      'option "onError" has no effect with a handler; pass it to graphqlHTTP(schema, { onError })';
    throw optionError(SUBSCRIPTION_OPTIONS, message);
  }
  const settings = resolveCoreOptions(SUBSCRIPTION_OPTIONS, { onError }, { rules: {}, limits: {} });
  return createCore(SUBSCRIPTION_OPTIONS, target, settings);
}

/** Whether a close frame may carry the code (RFC 6455 §7.4). */
function isCloseCode(code: unknown): boolean {
  if (!isCount(code)) return false;
  return (code >= 3000 && code < 5000) || (code >= 1000 && code < 1015 && (code < 1004 || code > 1006));
}

/** Milliseconds between two steps of a drain. */
const DRAIN_STEP = 50;

/**
 * Closes all connections over a period of `drain` milliseconds, because clients reconnect soon after a 1001.
 */
async function drainEndpoint(endpoint: WebSocketEndpoint, drain: number): Promise<void> {
  const connections = [...endpoint.connections];
  const started = performance.now();
  await new Promise<void>((resolve) => {
    let next = 0;
    const step = (): void => {
      const share = drain === 0 ? 1 : Math.min(1, (performance.now() - started) / drain);
      const due = Math.floor(connections.length * share);
      while (next < due) connections[next++]?.closeSocket(1001, 'Going away');
      if (next === connections.length) resolve();
      else setTimeout(step, Math.min(DRAIN_STEP, drain / connections.length));
    };
    step();
  });
  await endpoint.closed();
}
