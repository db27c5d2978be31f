import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { redis as overRedis } from '../../middleware/pubsub.ts';
import { testTransport } from '../../middleware/testing.ts';
import type { EventTransport } from '../../types/pubsub.ts';
import type { RedisSource } from '../../types/redis.ts';
import { startRedis } from '../redis.ts';
import { startProxy } from './proxy.ts';

/** Times after which a silent Redis is noticed, and the limits of a history. */
export const SETTINGS = { heartbeat: 100, commandTimeout: 500 };
export const LIMITS = { length: 1000, ttl: 300_000 };

/** Opens a transport with these limits, and not with those of `testTransport`. */
export function withHistory(transport: EventTransport, history: typeof LIMITS | undefined): EventTransport {
  const open = transport.open.bind(transport);
  transport.open = (listener) => open(listener, history);
  return transport;
}

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
      testTransport(() => withHistory(overRedis(redis, SETTINGS), history), {
        interrupt: interruptions[name],
      }),
    async close() {
      await proxy.close();
      await admin.quit();
      await server.kill();
    },
  };
}
