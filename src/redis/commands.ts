import { createHash } from 'node:crypto';
import type { RedisLogin, RedisSource } from '../../types/redis.ts';
import { withTimeLimit } from '../http/timers.ts';
import { isString } from '../options/values.ts';
import {
  type Ioredis,
  isLogin,
  isNodeCluster,
  isNodeRedis,
  type RedisCommand,
  type RedisCommands,
  sendToIoredis,
  sendToNodeRedis,
} from './clients.ts';
import { connectShared } from './connect.ts';

const notConnected = (reason: string): Error => new Error(`Redis is not connected: ${reason}`);

/** Sends commands over a client as it is, or over the shared connection to a URL. */
export function commandsOf(redis: RedisSource): RedisCommands {
  if (isString(redis) || isLogin(redis)) return sharedCommands(redis);
  if (isNodeRedis(redis)) {
    return {
      get problem() {
        const isReady = isNodeCluster(redis) ? redis.isOpen : redis.isReady;
        return isReady ? undefined : notConnected('call its method connect(), or wait until it is ready');
      },
      send: (command) => sendToNodeRedis(redis, command),
    };
  }
  const client = redis as Ioredis;
  return {
    get problem() {
      // A client with `lazyConnect` connects with its first command.
      return /^(?:ready|wait)$/.test(client.status)
        ? undefined
        : notConnected(`the status of the client is "${client.status}"`);
    },
    send: (command) => sendToIoredis(client, command),
  };
}

/** The connections that the options of all handlers of this process share. */
const shared = new Map<string | RedisLogin, RedisCommands>();

function sharedCommands(redis: string | RedisLogin): RedisCommands {
  const known = shared.get(redis);
  if (known !== undefined) return known;
  let opened: RedisCommands | undefined;
  const opening = connectShared(redis);
  opening.then(
    (connection) => {
      opened = connection;
    },
    // Each command rejects with it.
    () => undefined,
  );
  const commands: RedisCommands = {
    get problem() {
      return opened?.problem;
    },
    async send(command) {
      return (await opening).send(command);
    },
  };
  shared.set(redis, commands);
  return commands;
}

/** A script in Lua, which Redis stores by its hash: a call sends only the hash. */
export class RedisScript {
  readonly text: string;
  readonly #sha: string;

  constructor(text: string) {
    this.text = text;
    this.#sha = createHash('sha1').update(text).digest('hex');
  }

  /** Sends the script, with its text if Redis does not have it yet. */
  async send(
    redis: Pick<RedisCommands, 'send'>,
    inputs: Pick<RedisCommand, 'keys' | 'args'>,
  ): Promise<unknown> {
    try {
      return await redis.send({ name: 'evalsha', script: this.#sha, ...inputs });
    } catch (error) {
      if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
      return redis.send({ name: 'eval', script: this.text, ...inputs });
    }
  }

  /** Runs a script of one key. Rejects if Redis is unavailable, or does not reply within `timeout` milliseconds. */
  async run(
    redis: RedisCommands,
    timeout: number,
    key: string,
    ...args: readonly (string | number)[]
  ): Promise<readonly unknown[]> {
    if (redis.problem !== undefined) throw redis.problem;
    const late = (): Error => new Error(`Redis did not reply within ${timeout} ms`);
    const reply = await withTimeLimit(this.send(redis, { keys: [key], args }), timeout, late);
    if (Array.isArray(reply)) return reply;
    // The reply is QUEUED between MULTI and EXEC.
    throw new Error(`Redis replied ${String(reply)}; use a client without MULTI`);
  }
}
