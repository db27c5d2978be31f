import { toError } from '../../../http/reply.ts';
import { withTimeLimit } from '../../../http/timers.ts';
import type { PersistedQuerySettings } from '../options.ts';

/** Milliseconds without requests to a store that has failed. */
const PAUSE = 1000;
/** The maximum number of requests that wait for the store. */
const MAX_WAITING = 1000;

/** A store of several processes that never fails: without the store, every query is unknown. */
export class SharedStore {
  readonly #settings: PersistedQuerySettings;
  readonly #store: NonNullable<PersistedQuerySettings['store']>;
  readonly #onError: (error: unknown) => void;
  #waiting = 0;
  #pausedUntil = 0;

  constructor(
    store: NonNullable<PersistedQuerySettings['store']>,
    settings: PersistedQuerySettings,
    onError: (error: unknown) => void,
  ) {
    this.#store = store;
    this.#settings = settings;
    this.#onError = onError;
  }

  /** Returns a stored query; undefined if there is none, or if the store fails or is slow. */
  async get(hash: string): Promise<string | undefined> {
    const found = await this.#run((key) => this.#store.get(key), hash);
    return typeof found === 'string' ? found : undefined;
  }

  /** Stores a query. Does not wait for the store. */
  set(hash: string, query: string): void {
    void this.#run((key) => this.#store.set(key, query, 'PX', this.#settings.ttl), hash);
  }

  /** Runs a command. A store that does not reply is not used for a while: its client may queue all commands. */
  async #run(command: (key: string) => Promise<unknown>, hash: string): Promise<unknown> {
    if (this.#waiting >= MAX_WAITING || performance.now() < this.#pausedUntil) return undefined;
    this.#waiting += 1;
    const { prefix, timeout } = this.#settings;
    const late = (): Error => new Error(`no reply within ${timeout} ms`);
    try {
      return await withTimeLimit(Promise.resolve(command(prefix + hash)), timeout, late);
    } catch (error) {
      this.#fail(error);
      return undefined;
    } finally {
      this.#waiting -= 1;
    }
  }

  #fail(cause: unknown): void {
    // Commands that began before the pause fail too.
    if (performance.now() < this.#pausedUntil) return;
    this.#pausedUntil = performance.now() + PAUSE;
    const reason = toError(cause).message;
    this.#onError(
      new Error(`The store of persisted queries failed: ${reason}. Queries count as not found meanwhile`, {
        cause,
      }),
    );
  }
}
