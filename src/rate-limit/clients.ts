import type { Caller } from '../../types/caller.ts';
import type { MaybePromise } from '../../types/connect.ts';
import type { RedisSource } from '../../types/redis.ts';
import type { ClientGate, ClientPlaces, Extension, PlaceKind } from '../core/extension.ts';
import type { RequestError } from '../execution/types.ts';
import { clientKey } from '../http/address.ts';
import type { HttpError } from '../http/reply.ts';
import { duration, positive, type Rules, resolveOptions } from '../options/rules.ts';
import { CLIENT_LIMITS } from '../options/scopes.ts';
import { settle } from '../options/values.ts';
import { redisRule } from '../redis/clients.ts';
import { type Buckets, type BucketsOf, createBuckets, secondsUntil } from './buckets.ts';
import { fieldGuards, limitsOf, prepareFields } from './field-limits.ts';
import { refuseOperation, tooMany } from './refusal.ts';

/** The option `clientLimits` after checks, with defaults filled in. */
interface ClientSettings {
  readonly connections: number;
  readonly subscriptions: number;
  readonly newConnections: number;
  readonly newOperations: number;
  readonly window: number;
  readonly redis: RedisSource | undefined;
}

const unlimited = positive(Number.POSITIVE_INFINITY);

const rules: Rules<ClientSettings> = {
  connections: unlimited,
  subscriptions: unlimited,
  newConnections: unlimited,
  newOperations: unlimited,
  window: duration(60_000),
  redis: redisRule,
};

const WARNING = {
  owner: 'graphqlHTTP: clientLimits',
  type: 'ClientLimitsWarning',
  code: 'ESPALIER_CLIENT_LIMITS',
};

/**
 * Creates the extension of the option `clientLimits`.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function createClientLimits(given: unknown): Extension {
  const settings = resolveOptions(CLIENT_LIMITS, given === true ? {} : given, rules);
  const bucketsOf = createBuckets<never>({
    redis: settings.redis,
    prefix: 'espalier:clients:',
    warning: WARNING,
    away: (local) => local(),
  });
  return {
    clients: new Clients(settings, bucketsOf),
    check: limitsOf,
    guards: fieldGuards,
    prepare: (prepared, parts) => prepareFields(prepared, parts, bucketsOf),
  };
}

/** Seconds after which a client without a place should try again. */
const RETRY_AFTER = 5;

/** Counts what each client does. Clients without a place or a full bucket take no memory. */
class Clients implements ClientGate {
  readonly #settings: ClientSettings;
  readonly #buckets: Record<'newConnections' | 'newOperations', Buckets>;
  /** The clients with something open, by their keys. */
  readonly #open = new Map<string, ClientPlaces>();

  constructor(settings: ClientSettings, bucketsOf: BucketsOf) {
    this.#settings = settings;
    const { newConnections, newOperations, window } = settings;
    this.#buckets = {
      newConnections: bucketsOf({ limit: newConnections, window }),
      newOperations: bucketsOf({ limit: newOperations, window }),
    };
  }

  operation(source: unknown, caller: Caller | null | undefined): MaybePromise<RequestError | undefined> {
    return settle(this.#start('newOperations', source, caller), (refusal) =>
      refusal === undefined ? undefined : refuseOperation(refusal),
    );
  }

  connect(request: object): MaybePromise<HttpError | undefined> {
    return settle(
      this.#start('newConnections', request, null),
      (refusal) => refusal ?? this.#refusalOf('connections', this.#open.get(clientKey(request, null))),
    );
  }

  hold(source: unknown, caller: Caller | null | undefined, ...kinds: readonly PlaceKind[]): ClientPlaces {
    const key = clientKey(source, caller);
    const client = this.#open.get(key) ?? { key, connections: 0, subscriptions: 0 };
    const [refusal] = kinds.flatMap((kind) => this.#refusalOf(kind, client) ?? []);
    if (refusal !== undefined) throw refusal;
    for (const kind of kinds) client[kind] += 1;
    this.#open.set(key, client);
    return client;
  }

  release(client: ClientPlaces, ...kinds: readonly PlaceKind[]): void {
    for (const kind of kinds) client[kind] -= 1;
    if (client.connections + client.subscriptions === 0) this.#open.delete(client.key);
  }

  /** Takes a token. Returns why something must not be started. */
  #start(
    rate: 'newConnections' | 'newOperations',
    source: unknown,
    caller: Caller | null | undefined,
  ): MaybePromise<HttpError | undefined> {
    const { [rate]: limit, window } = this.#settings;
    if (limit === Number.POSITIVE_INFINITY) return undefined;
    const size = { limit, window };
    return settle(this.#buckets[rate].take(`${rate}:${clientKey(source, caller)}`, 1), (taken) => {
      if (taken.allowed) return undefined;
      const what = rate === 'newOperations' ? 'operations' : 'connections';
      const reason = `This client has started ${limit} ${what} in ${window / 1000} s, which is the limit`;
      return tooMany(reason, secondsUntil(1, taken, size));
    });
  }

  #refusalOf(kind: PlaceKind, client: ClientPlaces | undefined): HttpError | undefined {
    const limit = this.#settings[kind];
    if (client === undefined || client[kind] < limit) return undefined;
    return tooMany(`This client has ${limit} open ${kind}, which is the limit`, RETRY_AFTER);
  }
}
