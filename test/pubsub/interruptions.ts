import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { testTransport } from '../../middleware/testing.ts';
import { RedisTransport } from '../../src/pubsub/redis-transport.ts';
import type { RedisSource } from '../../types/redis.ts';
import { startRedis } from '../redis.ts';
import { startProxy } from './proxy.ts';

/** Times after which a silent Redis is noticed, and the limits of a history. */
export const SETTINGS = { heartbeat: 100, commandTimeout: 500 };
export const LIMITS = { length: 1000, age: 300_000 };

/** What may happen to a connection. */
export const INTERRUPTIONS = [
  'closed connections',
  'CLIENT KILL TYPE pubsub',
  'a stalled network',
  'a stopped server',
] as const;

/** A Redis behind a proxy, both of which can be interrupted. */
export interface InterruptedRedis {
  readonly url: string;
  /** Runs `testTransport` with an interruption; returns the names of the checks. */
  test(name: string, redis: RedisSource, history: typeof LIMITS | undefined): Promise<readonly string[]>;
  close(): Promise<void>;
}

export async function startInterruptedRedis(): Promise<InterruptedRedis> {
  const server = await startRedis();
  const proxy = await startProxy(server.url);
  const admin = new Redis(server.url);
  const interruptions: Readonly<Record<string, () => Promise<unknown>>> = {
    'closed connections': async () => proxy.drop(),
    'CLIENT KILL TYPE pubsub': () => admin.client('KILL', 'TYPE', 'PUBSUB'),
    'a stalled network': async () => {
      proxy.stall();
      await pause(800);
      proxy.heal();
    },
    'a stopped server': async () => {
      server.signal('SIGSTOP');
      await pause(800);
      server.signal('SIGCONT');
    },
  };
  return {
    url: proxy.url,
    test: (name, redis, history) =>
      testTransport(() => new RedisTransport(redis, { ...SETTINGS, sharded: false, history }), {
        interrupt: interruptions[name],
      }),
    async close() {
      await proxy.close();
      await admin.quit();
      await server.kill();
    },
  };
}
