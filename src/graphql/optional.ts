import nodeModule from 'node:module';
import type * as authorization from '../auth/authorization.ts';
import type * as cache from '../cache/extension.ts';
import type * as cost from '../cost/cost-check.ts';
import type * as idempotency from '../idempotency/options.ts';
import { once } from '../options/values.ts';
import type * as clients from '../rate-limit/clients.ts';
import type * as usage from '../usage/options.ts';

interface Optional {
  auth(): typeof authorization;
  cache(): typeof cache;
  cost(): typeof cost;
  idempotency(): typeof idempotency;
  clients(): typeof clients;
  usage(): typeof usage;
}

const require = nodeModule.createRequire(import.meta.url);

/**
 * The modules of options that many handlers do not set. Each is loaded when the first handler with its option is created,
 * at once and never by a request. The build makes a file of each: see scripts/optional.mjs.
 */
export const optional: Optional = {
  auth: once(() => require('../auth/authorization.ts')),
  cache: once(() => require('../cache/extension.ts')),
  cost: once(() => require('../cost/cost-check.ts')),
  idempotency: once(() => require('../idempotency/options.ts')),
  clients: once(() => require('../rate-limit/clients.ts')),
  usage: once(() => require('../usage/options.ts')),
};
