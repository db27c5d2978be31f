import { createHash, randomUUID } from 'node:crypto';
import type { MaybePromise } from '../../types/connect.ts';
import type {
  CacheEntry,
  CacheInvalidator,
  CacheLookup,
  CachePubSub,
  CacheStore,
} from '../../types/response-cache.ts';
import { withTimeLimit } from '../http/timers.ts';
import { isListOf, type OptionScope, optionError, wrongArgument } from '../options/rules.ts';
import { GRAPHQL_OPTIONS, INVALIDATOR_OPTIONS } from '../options/scopes.ts';
import { isFunction, isObject, isString } from '../options/values.ts';
import type { MemoryStore } from './memory-store.ts';

export const ALL_TAGS = '*';

/** The maximum number of tags of one entry. A response with more is not stored. */
export const MAX_TAGS = 1000;

/** Clients may choose parts of a tag, so a longer one is replaced by its hash. */
const MAX_LENGTH = 256;

/** Headers separate tags by spaces or commas. */
const IS_PLAIN = /^[!#-+\--[\]-~]*$/;
const OTHERS = /[^!#-+\--[\]-~]/gu;

/** Returns a tag that may be part of a header, with a bounded length. Other characters are percent-encoded. */
export function normalTag(tag: string): string {
  const plain = IS_PLAIN.test(tag) ? tag : tag.replace(OTHERS, encode);
  return plain.length <= MAX_LENGTH
    ? plain
    : `sha256-${createHash('sha256').update(plain).digest('base64url')}`;
}

/** Percent-encodes the UTF-8 bytes of a character. A lone surrogate counts as U+FFFD. */
function encode(character: string): string {
  return [...Buffer.from(character)]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('');
}

const TOPIC = 'cache:invalidations';

/** The tags of one message. */
const CHUNK = 1000;

/** Milliseconds until the next attempt to subscribe or to greet, and at most. */
const RETRY_MILLISECONDS = 50;
const MAX_RETRY_MILLISECONDS = 1000;

/** Waits without keeping the process alive. */
export const delay = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds).unref();
  });

const isTags = isListOf(isString);

/** Publishes an invalidation to all processes. Rejects if the pubsub does. */
async function publishInvalidation(
  pubsub: CachePubSub,
  tags: readonly string[],
  from?: string,
): Promise<void> {
  for (let start = 0; start < tags.length; start += CHUNK) {
    await pubsub.publish(TOPIC, { from, tags: tags.slice(start, start + CHUNK) });
  }
}

const NOT_SUBSCRIBED: CacheLookup = { entry: undefined, version: undefined };

/**
 * The memory of one process whose entries all processes invalidate: an invalidation is published, and applied where it
 * arrives. While the subscription may miss messages, the memory is empty and not used. It works again when the greeting
 * that this process has published arrives.
 */
export class SharedMemoryStore implements CacheStore {
  readonly #memory: MemoryStore;
  readonly #pubsub: CachePubSub;
  readonly #id = randomUUID();
  #state: 'subscribing' | 'subscribed' | 'closed' = 'subscribing';

  constructor(memory: MemoryStore, pubsub: CachePubSub) {
    this.#memory = memory;
    this.#pubsub = pubsub;
    void this.#receive();
    void this.#greet();
  }

  get(key: string): MaybePromise<CacheLookup> {
    return this.#state === 'subscribed' ? this.#memory.get(key) : NOT_SUBSCRIBED;
  }

  set(key: string, entry: CacheEntry, version: number | string): boolean {
    return this.#state === 'subscribed' && this.#memory.set(key, entry, version);
  }

  async invalidate(tags: readonly string[]): Promise<void> {
    this.#memory.invalidate(tags);
    await publishInvalidation(this.#pubsub, tags, this.#id);
  }

  async #receive(): Promise<void> {
    while (this.#state !== 'closed') {
      try {
        for await (const message of this.#pubsub.subscribe(TOPIC)) this.#onMessage(message);
        this.#state = 'closed';
      } catch {
        // Invalidations may have been missed.
        if (this.#state === 'subscribed') void this.#greet();
        this.#memory.invalidate([ALL_TAGS]);
        await delay(RETRY_MILLISECONDS);
      }
    }
  }

  /** Publishes until a message of this process arrives: then the subscription works. */
  async #greet(): Promise<void> {
    this.#state = 'subscribing';
    for (let wait = RETRY_MILLISECONDS; this.#state === 'subscribing'; wait *= 2) {
      // The pubsub reports its errors; that of another library may throw them.
      new Promise((resolve) => resolve(this.#pubsub.publish(TOPIC, { from: this.#id, tags: [] }))).catch(
        () => {},
      );
      await delay(Math.min(wait, MAX_RETRY_MILLISECONDS));
    }
  }

  /** A message of another program has no tags. */
  #onMessage(message: unknown): void {
    if (!isObject(message) || !isTags(message['tags'])) return;
    if (message['from'] !== this.#id) this.#memory.invalidate(message['tags'].map(String));
    else this.#state = 'subscribed';
  }
}

/** Milliseconds after which a caller of `invalidate` stops waiting. */
const TIMEOUT_MILLISECONDS = 10_000;

/** Checks the argument of `invalidate` and limits the wait for the acknowledgement. */
async function invalidateTags(
  scope: OptionScope,
  tags: unknown,
  invalidate: (tags: readonly string[]) => MaybePromise<void>,
): Promise<void> {
  if (!isString(tags) && !isTags(tags)) throw wrongArgument(scope, 'tags', tags, 'a tag, or a list of tags');
  const list = [tags as string | readonly string[]].flat().map(normalTag);
  if (list.length === 0) return;
  await withTimeLimit(Promise.resolve(invalidate(list)), TIMEOUT_MILLISECONDS, pendingError);
}

const pendingError = (): Error =>
  Object.assign(
    new Error(
      `The invalidation was not acknowledged within ${TIMEOUT_MILLISECONDS} ms; it is still being sent`,
    ),
    { code: 'ERR_INVALIDATION_PENDING' },
  );

/** Creates an invalidator for a process without a handler. */
export function createCacheInvalidator(target: CachePubSub | CacheStore): CacheInvalidator {
  if (!isStore(target) && !isPubSub(target))
    throw wrongArgument(INVALIDATOR_OPTIONS, 'target', target, 'a pubsub of createPubSub, or a store');
  const invalidate = (tags: readonly string[]) =>
    isStore(target) ? target.invalidate(tags) : publishInvalidation(target, tags);
  return { invalidate: (tags) => invalidateTags(INVALIDATOR_OPTIONS, tags, invalidate) };
}

/** Accepts a store of responses. */
export const isStore = (value: unknown): value is CacheStore =>
  isObject(value) && ['get', 'set', 'invalidate'].every((name) => isFunction(value[name]));

/** Accepts a pubsub. */
export const isPubSub = (value: unknown): value is CachePubSub =>
  isObject(value) && ['publish', 'subscribe'].every((name) => isFunction(value[name]));

/** Creates the method `invalidate` of a handler, which refuses without a store. */
export function createInvalidate(
  store: Pick<CacheStore, 'invalidate'> | undefined,
): CacheInvalidator['invalidate'] {
  return (tags) =>
    invalidateTags(GRAPHQL_OPTIONS, tags, (list) => {
      if (store === undefined) {
        throw optionError(
          GRAPHQL_OPTIONS,
          'invalidate: the option "responseCache" is off; set it to store results',
        );
      }
      return store.invalidate(list);
    });
}
