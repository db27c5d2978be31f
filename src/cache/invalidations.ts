import { randomUUID } from 'node:crypto';
import type { MaybePromise } from '../../types/connect.ts';
import type { CacheEntry, CacheLookup, CachePubSub, CacheStore } from '../../types/response-cache.ts';
import { isListOf, isObject, isString } from '../options/rules.ts';
import type { MemoryStore } from './memory-store.ts';
import { ALL_TAGS, normalTag } from './tags.ts';

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
export async function publishInvalidation(
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
    const list = tags.map(normalTag);
    this.#memory.remove(list);
    await publishInvalidation(this.#pubsub, list, this.#id);
  }

  async #receive(): Promise<void> {
    while (this.#state !== 'closed') {
      try {
        for await (const message of this.#pubsub.subscribe(TOPIC)) this.#onMessage(message);
        this.#state = 'closed';
      } catch {
        // Invalidations may have been missed.
        if (this.#state === 'subscribed') void this.#greet();
        this.#memory.remove([ALL_TAGS]);
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
    if (message['from'] !== this.#id) this.#memory.remove(message['tags'].map(String));
    else this.#state = 'subscribed';
  }
}
