import { createHash } from 'node:crypto';
import { isReplyError, type RedisCommands } from '../../redis/connection.ts';

/** Sends a command on the connection for publishing. */
export type Send = <T>(command: (client: RedisCommands) => Promise<T>) => Promise<T>;

/** A Lua script, which Redis stores by its hash: a call sends only the hash. */
export class RedisScript {
  readonly #text: string;
  readonly #hash: string;
  readonly #pending = new Set<Promise<unknown>>();
  /**
   * Settles when the calls are over that have found no script. Later calls wait, so that they keep their
   * order.
   */
  #loaded: Promise<unknown> | undefined;

  constructor(text: string) {
    this.#text = text;
    this.#hash = createHash('sha1').update(text).digest('hex');
  }

  /** Runs the script with two keys. */
  async run(
    send: Send,
    keys: readonly [string, string],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    while (this.#loaded !== undefined) await this.#loaded;
    const sent = send((client) => this.#call(client, keys, args));
    this.#pending.add(sent);
    try {
      return await sent;
    } finally {
      this.#pending.delete(sent);
    }
  }

  async #call(
    client: RedisCommands,
    keys: readonly [string, string],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    try {
      return await client.evalsha(this.#hash, 2, ...keys, ...args);
    } catch (error) {
      if (!isReplyError(error) || !error.message.startsWith('NOSCRIPT')) throw error;
      // Redis has started again, or another node has taken over.
      this.#loaded ??= Promise.allSettled(this.#pending).then(() => {
        this.#loaded = undefined;
      });
      return client.eval(this.#text, 2, ...keys, ...args);
    }
  }
}
