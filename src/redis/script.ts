import { createHash } from 'node:crypto';
import type { BudgetClient } from '../../types/graphql.ts';
import { withTimeLimit } from '../http/timers.ts';

/** A script in Lua that reads and writes one key, so that it also runs in a cluster. */
export class RedisScript {
  readonly #text: string;
  readonly #sha: string;

  constructor(text: string) {
    this.#text = text;
    this.#sha = createHash('sha1').update(text).digest('hex');
  }

  /** Runs the script with a key. Rejects if Redis is unavailable, or does not reply within `timeout` milliseconds. */
  async run(
    client: BudgetClient,
    timeout: number,
    ...inputs: [key: string, ...values: (string | number)[]]
  ): Promise<readonly unknown[]> {
    const problem = problemOf(client);
    if (problem !== undefined) throw problem;
    const sent = client.evalsha(this.#sha, 1, ...inputs).catch((error: Error) => {
      // The scripts of the server were flushed.
      if (!error.message.startsWith('NOSCRIPT')) throw error;
      return client.eval(this.#text, 1, ...inputs);
    });
    const late = (): Error => new Error(`Redis did not reply within ${timeout} ms`);
    const reply = await withTimeLimit(sent, timeout, late);
    if (Array.isArray(reply)) return reply;
    // The reply is QUEUED between MULTI and EXEC.
    throw new Error(`Redis replied ${String(reply)}; use a client without MULTI`);
  }
}

/** Why no command can be sent: ioredis would queue it, and execute it long after the response. */
export function problemOf({ status }: BudgetClient): Error | undefined {
  return status === 'ready' ? undefined : new Error(`Redis is not connected: ${status}`);
}
