import type { CacheControlOptions } from '../../types/caching.ts';
import type { CachePubSub, CacheStore } from '../../types/response-cache.ts';
import { createWarningLog } from '../diagnostics/logging.ts';
import { toError } from '../http/reply.ts';
import {
  bytes,
  duration,
  oneOf,
  optionalFunction,
  optionError,
  type Rules,
  resolveSwitch,
  rule,
  seconds,
  type WithDefaults,
} from '../options/rules.ts';
import { CACHE_OPTIONS, CACHING_OPTIONS } from '../options/scopes.ts';
import { isPubSub, isStore } from './invalidations.ts';
import { byteStores, createProcessStore, FailsafeStore } from './store.ts';

type RequestFunction = (request: unknown, context: unknown) => unknown;

/** The option `responseCache` after checks. */
export interface ResponseCacheSettings {
  readonly store: CacheStore | undefined;
  readonly maxBytes: number;
  readonly pubsub: CachePubSub | undefined;
  readonly key: RequestFunction | undefined;
  /** Milliseconds. */
  readonly staleWhileRevalidate: number;
  readonly staleIfError: number;
}

const DEFAULT_BYTES = 64 * 1024 * 1024;

const RULES: Rules<ResponseCacheSettings> = {
  store: rule<CacheStore | undefined>(undefined, isStore, 'a store, such as that of redisStore'),
  maxBytes: bytes(DEFAULT_BYTES),
  pubsub: rule<CachePubSub | undefined>(undefined, isPubSub, 'a pubsub, such as that of createPubSub'),
  key: optionalFunction(),
  staleWhileRevalidate: duration(0, { from: 0 }),
  staleIfError: duration(0, { from: 0 }),
};

const usedStores = new WeakSet<CacheStore>();

/** Resolves the option `responseCache`; undefined if it is off. */
export function resolveResponseCache(given: unknown): ResponseCacheSettings | undefined {
  const settings = resolveSwitch<ResponseCacheSettings>(CACHE_OPTIONS, given, RULES);
  const store = settings?.store;
  if (store === undefined) return settings;
  for (const name of ['maxBytes', 'pubsub']) {
    if ((given as Readonly<Record<string, unknown>>)[name] !== undefined) {
      throw optionError(
        CACHE_OPTIONS,
        `the option "responseCache.${name}" is for the memory of the process; remove it, or remove "responseCache.store"`,
      );
    }
  }
  // Handlers with the same schema and different resolvers would send each other's responses.
  if (usedStores.has(store)) {
    throw optionError(
      CACHE_OPTIONS,
      'the store of the option "responseCache.store" belongs to another handler; create one store per handler, with different prefixes',
    );
  }
  usedStores.add(store);
  return settings;
}

/** Creates the store of a handler. A slow or unavailable store never fails or delays a request. */
export function createCacheStore({ store, maxBytes, pubsub }: ResponseCacheSettings): FailsafeStore {
  const report = createWarningLog({ owner: 'graphqlHTTP', type: 'CacheWarning', code: 'ESPALIER_CACHE' });
  const used = store ?? createProcessStore(maxBytes, pubsub);
  const keepsBytes = store === undefined || byteStores.has(store);
  return new FailsafeStore(used, (error) => report(toError(error)), keepsBytes);
}

/** The option `httpCache` after checks, with defaults filled in. */
export type CachingSettings = Readonly<WithDefaults<CacheControlOptions>>;

const rules: Rules<CachingSettings> = {
  defaultMaxAge: seconds(0),
  tags: oneOf(false, 'Cache-Tag', 'Surrogate-Key', 'xkey', 'extensions'),
};

/** Resolves the option `httpCache`; undefined if it is off. */
export function resolveCacheControl(given: unknown): CachingSettings | undefined {
  return resolveSwitch(CACHING_OPTIONS, given, rules);
}
