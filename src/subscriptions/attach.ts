import { Server } from 'node:net';
import { isSchema } from 'graphql';
import type { Subscriptions } from '../../types/subscriptions.ts';
import { coreOf, createCore, type GraphQLCore } from '../core/core.ts';
import { resolveCoreOptions } from '../core/options.ts';
import { resolveOptions, wrongArgument } from '../options/resolve-options.ts';
import { count, isCount, isFunction } from '../options/rules.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import { claim } from './gate.ts';
import { createHub, type Hub } from './hub.ts';
import { connectionRules, upgradeRules } from './settings.ts';
import { createUpgrades, type Upgrades } from './upgrade.ts';

// Methods of what is returned.
const CLOSE = { ...SUBSCRIPTION_OPTIONS, name: 'close' };
const DISCONNECT = { ...SUBSCRIPTION_OPTIONS, name: 'disconnect' };

/** Serves a schema's operations on the sockets of one path of a server. */
export function attach(server: unknown, target: unknown, options: unknown): Subscriptions {
  if (!(server instanceof Server)) {
    throw wrongArgument(
      SUBSCRIPTION_OPTIONS,
      'server',
      server,
      'an http.Server, such as app.listen() returns',
    );
  }
  const core = coreFor(target);
  const settings = resolveOptions(SUBSCRIPTION_OPTIONS, options, { ...connectionRules, ...upgradeRules });
  const hub = createHub(core, settings);
  const upgrades = createUpgrades(server, hub, settings);
  const release = claim(server, settings.path, upgrades.route);
  let closing: Promise<void> | undefined;
  return {
    close(given) {
      const { drain } = resolveOptions(CLOSE, given, { drain: count(0, 'milliseconds') });
      closing ??= close(hub, upgrades, drain).finally(release);
      return closing;
    },
    disconnect(predicate, code = 4403, reason = 'Forbidden') {
      if (!isFunction(predicate)) throw wrongArgument(DISCONNECT, 'predicate', predicate, 'a function');
      if (!isCloseCode(code))
        throw wrongArgument(DISCONNECT, 'code', code, 'a close code that may be sent, as 1000 or 4403');
      return hub.disconnect(predicate, code, reason);
    },
    stats: () => hub.stats(),
  };
}

function coreFor(target: unknown): GraphQLCore {
  const core = coreOf(target);
  if (core !== undefined) return core;
  if (!isSchema(target)) {
    throw wrongArgument(
      SUBSCRIPTION_OPTIONS,
      'target',
      target,
      'a GraphQLSchema, or the handler that graphqlHTTP made',
    );
  }
  return createCore(
    SUBSCRIPTION_OPTIONS,
    target,
    resolveCoreOptions(SUBSCRIPTION_OPTIONS, undefined, { rules: {}, limits: {} }),
  );
}

/** What a close frame may carry (RFC 6455 §7.4). */
function isCloseCode(code: unknown): boolean {
  if (!isCount(code)) return false;
  return (code >= 3000 && code < 5000) || (code >= 1000 && code < 1015 && (code < 1004 || code > 1006));
}

/** Clients come back a moment after a 1001: all at once would be a storm, so they are sent away one by one. */
async function close(hub: Hub, upgrades: Upgrades, drain: number): Promise<void> {
  upgrades.close();
  const leaving = [...hub.connections];
  const started = performance.now();
  await new Promise<void>((resolve) => {
    let next = 0;
    const step = (): void => {
      const share = drain === 0 ? 1 : Math.min(1, (performance.now() - started) / drain);
      const due = Math.floor(leaving.length * share);
      while (next < due) leaving[next++]?.shut(1001, 'Going away');
      if (next === leaving.length) resolve();
      else setTimeout(step, Math.min(50, drain / leaving.length));
    };
    step();
  });
  await hub.empty();
  hub.groups.close();
  hub.sweep.stop();
}
