import { ALL_TAGS, normalTag } from './tags.ts';

/** Sends an invalidation; resolves when it has effect everywhere. */
type Send = (tags: readonly string[]) => Promise<void>;

/** The tags of one message or command. */
const CHUNK = 1000;
/** Above this number of waiting tags everything is invalidated, which bounds the memory. */
const MAX_WAITING = 100_000;
const RETRY_MILLISECONDS = 100;
const MAX_RETRY_MILLISECONDS = 2000;

/** Waits without keeping the process alive. */
export const delay = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds).unref();
  });

/** A promise with the function that resolves it. */
export function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

class Batch {
  readonly tags: Set<string> = new Set();
  readonly done: Promise<void>;
  resolve: () => void = () => undefined;
  reject: (error: Error) => void = () => undefined;

  constructor() {
    this.done = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // A caller may have stopped waiting.
    this.done.catch(() => undefined);
  }

  add(tags: Iterable<string>): void {
    for (const tag of tags) this.tags.add(normalTag(tag));
    if (this.tags.size <= MAX_WAITING && !this.tags.has(ALL_TAGS)) return;
    this.tags.clear();
    this.tags.add(ALL_TAGS);
  }
}

/**
 * Sends invalidations in batches, one after the other, and repeats each until it has succeeded. While one is
 * being sent, the tags of all callers are collected for the next one.
 */
export class InvalidationQueue {
  readonly #send: Send;
  #sending: Batch | undefined;
  #waiting: Batch | undefined;
  #closed: Error | undefined;

  constructor(send: Send) {
    this.#send = send;
  }

  /** Resolves when the tags are invalidated everywhere. Rejects if the queue is closed first. */
  add(tags: Iterable<string>): Promise<void> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    this.#waiting ??= new Batch();
    const { done } = this.#waiting;
    this.#waiting.add(tags);
    if (this.#sending === undefined) void this.#run();
    return done;
  }

  /** Whether an invalidation of one of these tags has not succeeded yet. */
  isPending(tags: readonly string[]): boolean {
    return isAmong(this.#sending, tags) || isAmong(this.#waiting, tags);
  }

  close(reason: Error): void {
    this.#closed = reason;
    this.#sending?.reject(reason);
    this.#waiting?.reject(reason);
    this.#waiting = undefined;
  }

  async #run(): Promise<void> {
    // Collects the calls of this turn of the event loop in one batch.
    this.#sending = new Batch();
    await Promise.resolve();
    while (this.#waiting !== undefined) {
      const batch: Batch = this.#waiting;
      this.#sending = batch;
      this.#waiting = undefined;
      await this.#sendBatch(batch);
      batch.resolve();
    }
    this.#sending = undefined;
  }

  async #sendBatch({ tags }: Batch): Promise<void> {
    const list = [...tags];
    for (let from = 0; from < list.length; from += CHUNK) {
      const chunk = list.slice(from, from + CHUNK);
      for (let wait = RETRY_MILLISECONDS; this.#closed === undefined; wait *= 2) {
        try {
          await this.#send(chunk);
          break;
        } catch {
          await delay(Math.min(wait, MAX_RETRY_MILLISECONDS));
        }
      }
    }
  }
}

function isAmong(batch: Batch | undefined, tags: readonly string[]): boolean {
  if (batch === undefined || batch.tags.size === 0) return false;
  return batch.tags.has(ALL_TAGS) || tags.some((tag) => batch.tags.has(tag));
}
