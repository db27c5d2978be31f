import { createHash } from 'node:crypto';
import { keyPrefixOf, type RedisCommands } from '../../redis/connection.ts';
import { isReplyError } from '../../redis/reply-errors.ts';

/** Sends a command on the connection for publishing. */
export type Send = <T>(command: (client: RedisCommands) => Promise<T>) => Promise<T>;

/** The two keys and the argument of a script. */
type Inputs = readonly [key: string, otherKey: string, argument: string];

/** Returns the text of a script for the key prefix of the client. */
type ScriptText = (keyPrefix: string) => string;

/** A Lua script, which Redis stores by its hash: a call sends only the hash. */
export class RedisScript {
  readonly #textFor: ScriptText;
  #text = '';
  #hash: string | undefined;
  readonly #onDone = (): void => this.#settled();
  #pending = 0;
  /**
   * The calls that wait because Redis did not have the script. They start when all earlier calls have settled,
   * which keeps their order.
   */
  #waiting: (() => void)[] | undefined;

  constructor(textFor: ScriptText) {
    this.#textFor = textFor;
  }

  /** Runs the script. */
  run(send: Send, inputs: Inputs): Promise<void> {
    const waiting = this.#waiting;
    if (waiting !== undefined) {
      return new Promise<void>((resolve) => waiting.push(resolve)).then(() => this.#start(send, inputs));
    }
    return this.#start(send, inputs);
  }

  #start(send: Send, inputs: Inputs): Promise<void> {
    this.#pending++;
    const [key, otherKey, argument] = inputs;
    return send((client) =>
      client.evalsha(this.#hash ?? this.#load(client), 2, key, otherKey, argument),
    ).then(this.#onDone, (error: unknown) => this.#failed(error, send, inputs));
  }

  /** Creates the text when the client is known. */
  #load(client: RedisCommands): string {
    this.#text = this.#textFor(keyPrefixOf(client));
    this.#hash = createHash('sha1').update(this.#text).digest('hex');
    return this.#hash;
  }

  /** Sends the whole script if Redis has started again, or another node has taken over. */
  async #failed(error: unknown, send: Send, inputs: Inputs): Promise<void> {
    try {
      if (!isReplyError(error) || !error.message.startsWith('NOSCRIPT')) throw error;
      this.#waiting ??= [];
      await send((client) => client.eval(this.#text, 2, ...inputs));
    } finally {
      this.#settled();
    }
  }

  #settled(): void {
    this.#pending--;
    if (this.#pending > 0 || this.#waiting === undefined) return;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    for (const start of waiting) start();
  }
}
