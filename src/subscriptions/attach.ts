import { Server } from 'node:net';
import { isSchema } from 'graphql';
import type { Subscriptions } from '../../types/subscriptions.ts';
import { coreOf, createCore, type GraphQLCore } from '../graphql/core.ts';
import { settleCore } from '../graphql/settings.ts';
import { isCount, optionError, rule, settle, show } from '../options/settle.ts';
import { claim } from './gate.ts';
import { createHub, type Hub } from './hub.ts';
import { connectionRules, upgradeRules } from './settings.ts';
import { createUpgrades, type Upgrades } from './upgrade.ts';

const OWNER = 'attachSubscriptions';
const PAGE = 'subscriptions';

/** Serves a schema's operations on the sockets of one path of a server. */
export function attach(server: unknown, target: unknown, options: unknown): Subscriptions {
  if (!(server instanceof Server)) {
    const accepted = 'an http.Server, such as app.listen() returns';
    throw optionError(`${OWNER}: the server is ${show(server)}; accepted: ${accepted}`, PAGE);
  }
  const core = coreFor(target);
  const settings = settle(OWNER, PAGE, options, { ...connectionRules, ...upgradeRules });
  const hub = createHub(core, settings);
  const upgrades = createUpgrades(server, hub, settings);
  const release = claim(server, settings.path, upgrades.route);
  let closing: Promise<void> | undefined;
  return {
    close(given) {
      const { drain } = settle(`${OWNER}, close`, PAGE, given, {
        drain: rule(0, isCount, 'milliseconds'),
      });
      closing ??= close(hub, upgrades, drain).finally(release);
      return closing;
    },
    disconnect: (predicate, code = 4403, reason = 'Forbidden') => hub.disconnect(predicate, code, reason),
    stats: () => hub.stats(),
  };
}

function coreFor(target: unknown): GraphQLCore {
  const core = coreOf(target);
  if (core !== undefined) return core;
  if (!isSchema(target)) {
    const accepted = 'a GraphQLSchema or the handler graphqlHTTP made';
    throw optionError(`${OWNER}: the schema is ${show(target)}; accepted: ${accepted}`, PAGE);
  }
  return createCore(OWNER, target, settleCore(OWNER, PAGE, undefined, { rules: {}, limits: {} }));
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
