import type { Caller } from '../../types/caller.ts';
import type { MaybePromise } from '../../types/connect.ts';
import { keyFrom } from '../core/caller.ts';
import type { ClientGate, ClientPlaces, Extension, PlaceKind } from '../core/extension.ts';
import type { RequestError } from '../execution/types.ts';
import { clientKey } from '../http/address.ts';
import type { HttpError } from '../http/reply.ts';
import { positive, type Rules, resolveOptions } from '../options/rules.ts';
import { CLIENT_LIMITS } from '../options/scopes.ts';
import { settle } from '../options/values.ts';
import { type BucketSettings, bucketRules, createBuckets, secondsUntil } from './buckets.ts';
import { type ClientBuckets, fieldGuards, limitsOf, prepareFields } from './field-limits.ts';
import { refuseOperation, tooMany } from './refusal.ts';

/** The option `clientLimits` after checks, with defaults filled in. */
interface ClientSettings
  extends BucketSettings<(source: unknown, caller: Caller | null | undefined) => unknown> {
  readonly connections: number;
  readonly subscriptions: number;
  readonly newConnections: number;
  readonly newOperations: number;
}

const unlimited = positive(Number.POSITIVE_INFINITY);

const rules: Rules<ClientSettings> = {
  connections: unlimited,
  subscriptions: unlimited,
  newConnections: unlimited,
  newOperations: unlimited,
  ...bucketRules,
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
  const buckets = { bucketsOf, keyOf: createKeyOf(settings) };
  return {
    clients: new Clients(settings, buckets),
    readsSource: settings.key !== undefined,
    check: limitsOf,
    guards: fieldGuards,
    prepare: (prepared, parts) => prepareFields(prepared, parts, buckets),
  };
}

/** No other key of a client begins with this word. */
function createKeyOf({ key }: ClientSettings): ClientBuckets['keyOf'] {
  if (key === undefined) return clientKey;
  return (source, caller) => {
    const given = keyFrom(CLIENT_LIMITS, 'key', key(source, caller), 'undefined');
    return given === undefined ? undefined : `key ${given}`;
  };
}

/** Seconds after which a client without a place should try again. */
const RETRY_AFTER = 5;

/** The places of a client without limits: no number reaches one. */
const UNLIMITED: ClientPlaces = {
  key: '',
  connections: Number.NEGATIVE_INFINITY,
  subscriptions: Number.NEGATIVE_INFINITY,
};

/** Counts what each client does. Clients without a place or a full bucket take no memory. */
class Clients implements ClientGate {
  readonly #settings: ClientSettings;
  readonly #buckets: ClientBuckets;
  /** The clients with something open, by their keys. */
  readonly #open = new Map<string, ClientPlaces>();

  constructor(settings: ClientSettings, buckets: ClientBuckets) {
    this.#settings = settings;
    this.#buckets = buckets;
  }

  operation(source: unknown, caller: Caller | null | undefined): MaybePromise<RequestError | undefined> {
    return settle(this.#start('newOperations', this.#buckets.keyOf(source, caller)), (refusal) =>
      refusal === undefined ? undefined : refuseOperation(refusal),
    );
  }

  connect(
    source: unknown,
    caller: Caller | null | undefined,
    held?: ClientPlaces,
  ): MaybePromise<HttpError | undefined> {
    const key = this.#buckets.keyOf(source, caller);
    if (key !== undefined && key === held?.key) return undefined;
    return settle(
      this.#start('newConnections', key),
      (refusal) => refusal ?? this.#refusalOf('connections', this.#placesOf(key)),
    );
  }

  hold(source: unknown, caller: Caller | null | undefined, ...kinds: readonly PlaceKind[]): ClientPlaces {
    const client = this.#placesOf(this.#buckets.keyOf(source, caller));
    const [refusal] = kinds.flatMap((kind) => this.#refusalOf(kind, client) ?? []);
    if (refusal !== undefined) throw refusal;
    for (const kind of kinds) client[kind] += 1;
    if (client !== UNLIMITED) this.#open.set(client.key, client);
    return client;
  }

  release(client: ClientPlaces, ...kinds: readonly PlaceKind[]): void {
    for (const kind of kinds) client[kind] -= 1;
    if (client.connections + client.subscriptions === 0) this.#open.delete(client.key);
  }

  #placesOf(key: string | undefined): ClientPlaces {
    if (key === undefined) return UNLIMITED;
    return this.#open.get(key) ?? { key, connections: 0, subscriptions: 0 };
  }

  /** Takes a token. Returns why something must not be started. */
  #start(
    rate: 'newConnections' | 'newOperations',
    key: string | undefined,
  ): MaybePromise<HttpError | undefined> {
    const { [rate]: limit, window } = this.#settings;
    if (limit === Number.POSITIVE_INFINITY || key === undefined) return undefined;
    const size = { limit, window };
    return settle(this.#buckets.bucketsOf(size).take(`${rate}:${key}`, 1), (taken) => {
      if (taken.allowed) return undefined;
      const what = rate === 'newOperations' ? 'operations' : 'connections';
      const reason = `This client has started ${limit} ${what} in ${window / 1000} s, which is the limit`;
      return tooMany(reason, secondsUntil(1, taken, size));
    });
  }

  #refusalOf(kind: PlaceKind, client: ClientPlaces): HttpError | undefined {
    const limit = this.#settings[kind];
    if (client[kind] < limit) return undefined;
    return tooMany(`This client has ${limit} open ${kind}, which is the limit`, RETRY_AFTER);
  }
}
