import { GraphQLError } from 'graphql';
import type { Caller } from '../../types/caller.ts';
import type { MaybePromise } from '../../types/connect.ts';
import type { ClientGate, ClientPlace, Extension, ExtensionParts } from '../core/extension.ts';
import { createUnenforcedNote } from '../core/unenforced.ts';
import { findDirective } from '../execution/directives.ts';
import { type RequestError, withNativePromise } from '../execution/types.ts';
import { HttpError } from '../http/reply.ts';
import {
  duration,
  optionalFunction,
  positive,
  type Rules,
  resolveOptions,
  wrongReturnValue,
} from '../options/rules.ts';
import { CLIENT_LIMITS } from '../options/scopes.ts';
import { caught, getOrCreate, isString, isThenable, settle } from '../options/values.ts';
import { clientAddress } from './address.ts';
import {
  type BucketPlace,
  type BucketSize,
  type Buckets,
  boundedKey,
  bucketRules,
  createBucketPlace,
  secondsUntil,
} from './buckets.ts';
import { fieldGuards, limitsOf, prepareFields } from './field-limits.ts';

/** The option `clientLimits` after checks, with defaults filled in. */
interface ClientSettings extends BucketPlace {
  readonly key: ((source: unknown) => MaybePromise<unknown>) | undefined;
  readonly connections: number;
  readonly subscriptions: number;
  readonly newConnections: number;
  readonly newOperations: number;
  readonly window: number;
}

const unlimited = positive(Number.POSITIVE_INFINITY);

const rules: Rules<ClientSettings> = {
  key: optionalFunction(),
  connections: unlimited,
  subscriptions: unlimited,
  newConnections: unlimited,
  newOperations: unlimited,
  window: duration(60_000),
  ...bucketRules('espalier:clients:'),
};

const WARNING = {
  owner: 'graphqlHTTP: clientLimits',
  type: 'ClientLimitsWarning',
  code: 'ESPALIER_CLIENT_LIMITS',
};

/**
 * Creates the extension of the option `clientLimits`. Without it, it only says what a schema declares in vain.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function createClientLimits(given: unknown, { scope }: Pick<ExtensionParts, 'scope'>): Extension {
  if (given === false) return {};
  if (given === undefined) return { noteUnenforced: createUnenforcedNote(scope, unenforced) };
  const settings = resolveOptions(CLIENT_LIMITS, given === true ? {} : given, rules);
  const place = createBucketPlace(settings, WARNING);
  const bySize = new Map<string, Buckets>();
  const bucketsOf = (size: BucketSize): Buckets =>
    getOrCreate(bySize, `${size.limit} ${size.window}`, () => place(size));
  const clients = new Clients(settings, bucketsOf);
  const services = { bucketsOf, clients, unavailable: RETRY_AFTER };
  return {
    clients,
    check: limitsOf,
    guards: fieldGuards,
    prepare: (prepared, { account }) => prepareFields(prepared, account, services),
  };
}

const unenforced = (schema: Parameters<typeof findDirective>[0]) => {
  const found = findDirective(schema, ['rateLimit']);
  return found === undefined
    ? undefined
    : {
        problem: `the schema has ${found}, but the option "clientLimits" is not set, so nothing enforces it; set clientLimits: true, or clientLimits: false if other code enforces it`,
      };
};

/** Seconds after which a client without a place should try again. */
const RETRY_AFTER = 5;

/** The key of a client; null if it has no limits. */
type Key = string | null;
type Rate = 'newConnections' | 'newOperations';

/** Counts what each client does. Clients without a place or a full bucket take no memory. */
class Clients implements ClientGate {
  readonly #settings: ClientSettings;
  /** By request or WebSocket. */
  readonly #keys = new WeakMap<object, MaybePromise<Key>>();
  /** Of WebSockets, whose upgrade requests are not kept. */
  readonly #addresses = new WeakMap<object, string>();
  readonly #places: Readonly<Record<ClientPlace, Places>>;
  readonly #rates: Readonly<Record<Rate, Buckets | undefined>>;

  constructor(settings: ClientSettings, bucketsOf: (size: BucketSize) => Buckets) {
    const { connections, subscriptions, window } = settings;
    const rateOf = (limit: number) =>
      limit === Number.POSITIVE_INFINITY ? undefined : bucketsOf({ limit, window });
    this.#settings = settings;
    this.#places = { connections: new Places(connections), subscriptions: new Places(subscriptions) };
    this.#rates = {
      newConnections: rateOf(settings.newConnections),
      newOperations: rateOf(settings.newOperations),
    };
  }

  operation(source: unknown, caller: Caller | null | undefined): MaybePromise<RequestError | undefined> {
    // No address begins with a word. The places of the source have the key of its caller from now on.
    if (caller && this.#settings.key === undefined)
      this.#keys.set(source as object, boundedKey(`caller ${caller.id}`));
    if (this.#rates.newOperations === undefined) return settle(this.keyOf(source), noRefusal);
    return settle(this.#take('newOperations', source), (refusal) => refusal && toRequestError(refusal));
  }

  connect(request: object): MaybePromise<HttpError | undefined> {
    return this.#take('newConnections', request);
  }

  adopt(websocket: object, request: object): void {
    this.#addresses.set(websocket, clientAddress(request));
    // If the key fails, `connect` of the request does too, and reports it.
    void this.#remember(
      websocket,
      caught(
        () => this.keyOf(request),
        () => boundedKey(clientAddress(request)),
      ),
    );
  }

  hold(place: ClientPlace, source: object, holder: object): void {
    const key = this.#keys.get(source);
    // A promise only if the key of a foreign WebSocket is not known yet.
    const known = isThenable(key) || key === undefined ? boundedKey(clientAddress(source)) : key;
    if (known === null || this.#places[place].take(known, holder)) return;
    throw refusal(`This client has ${this.#settings[place]} open ${place}, which is the limit`, RETRY_AFTER);
  }

  addressOf(source: object): string {
    return this.#addresses.get(source) ?? clientAddress(source);
  }

  release(holder: object): void {
    this.#places.connections.release(holder);
    this.#places.subscriptions.release(holder);
  }

  keyOf(source: unknown): MaybePromise<Key> {
    // Not every caller has a request.
    if (typeof source !== 'object' || source === null) return null;
    const known = this.#keys.get(source);
    if (known !== undefined) return known;
    const given = withNativePromise(this.#settings.key?.(source));
    return this.#remember(
      source,
      settle(given, (returned) => toKey(returned, source)),
    );
  }

  #remember(source: object, key: MaybePromise<Key>): MaybePromise<Key> {
    this.#keys.set(source, key);
    if (isThenable(key))
      key.then(
        (settled) => this.#keys.set(source, settled),
        () => this.#keys.delete(source),
      );
    return key;
  }

  #take(rate: Rate, source: unknown): MaybePromise<HttpError | undefined> {
    const { [rate]: limit, window } = this.#settings;
    return settle(this.keyOf(source), (key) => {
      const buckets = this.#rates[rate];
      if (buckets === undefined || key === null) return undefined;
      return settle(buckets.take(`${rate}:${key}`, 1), (taken) => {
        if (taken === 'closed') return refusal('The limits of clients cannot be checked', RETRY_AFTER, 503);
        if (taken === 'open' || taken.allowed) return undefined;
        const what = rate === 'newOperations' ? 'operations' : 'connections';
        const message = `This client has started ${limit} ${what} in ${window / 1000} s, which is the limit`;
        return refusal(message, secondsUntil(1, taken, { limit, window }));
      });
    });
  }
}

/** @throws TypeError (code `ERR_OPTION`) for a wrong return value of the option `key`. */
function toKey(given: unknown, source: object): Key {
  if (given === null) return null;
  if (given === undefined) return clientAddress(source);
  if (isString(given)) return boundedKey(given);
  const accepted = 'a string, undefined for the address, or null for no limits';
  throw wrongReturnValue(CLIENT_LIMITS, 'key', given, accepted);
}

/** The places that clients hold at a time. */
class Places {
  readonly #limit: number;
  readonly #counts = new Map<string, number>();
  /** The keys of the holders. */
  readonly #held = new Map<object, string>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  take(key: string, holder: object): boolean {
    if (this.#limit === Number.POSITIVE_INFINITY) return true;
    const count = this.#counts.get(key) ?? 0;
    if (count >= this.#limit) return false;
    this.#counts.set(key, count + 1);
    this.#held.set(holder, key);
    return true;
  }

  release(holder: object): void {
    const key = this.#held.get(holder);
    if (key === undefined) return;
    this.#held.delete(holder);
    const count = (this.#counts.get(key) ?? 0) - 1;
    if (count > 0) this.#counts.set(key, count);
    else this.#counts.delete(key);
  }
}

const noRefusal = (): undefined => undefined;

function refusal(message: string, retryAfter: number, status = 429): HttpError {
  return new HttpError(status, `${message}; retry after ${retryAfter} s`, {
    headers: { 'retry-after': String(retryAfter) },
    code: status === 429 ? 'RATE_LIMITED' : 'BUDGET_UNAVAILABLE',
  });
}

function toRequestError({ message, status, headers, code }: HttpError): RequestError {
  const extensions = { code, retryAfter: Number(headers['retry-after']), http: { status, headers } };
  return { kind: 'error', errors: [new GraphQLError(message, { extensions })], status };
}
