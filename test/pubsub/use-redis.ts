import { Redis } from 'ioredis';
import { createPubSub, type PubSub } from '../../middleware/pubsub.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { type StallingProxy, startProxy } from './proxy.ts';
import { type RedisPubSubOptions, withRedis } from './redis-options.ts';

/** Milliseconds between two heartbeats, short so that tests need not wait. */
export const HEARTBEAT = 100;

/** A Redis for the tests of one file. */
interface RedisFixture<Events extends object> {
  redis: RedisServer;
  /** A client without the proxy. */
  admin: Redis;
  /** A new proxy for each test. */
  proxy: StallingProxy;
  /** Creates a pubsub that is closed after the test. */
  connect(options?: RedisPubSubOptions): PubSub<Events>;
  /** The options of a pubsub that connects through the proxy, and soon notices a partition. */
  overProxy(): RedisPubSubOptions;
  /** Returns how often Redis has executed a command. */
  commandCalls(name: string): Promise<number>;
}

/** Starts a Redis for the tests of a file, and empties it before each of them. */
export function useRedis<Events extends object>(): RedisFixture<Events> {
  const open: PubSub<Events>[] = [];
  const fixture = {
    connect(options: RedisPubSubOptions = {}) {
      const events = createPubSub<Events>(withRedis({ onError: false, ...options }));
      open.push(events);
      return events;
    },
    overProxy: () => ({ redis: fixture.proxy.url, heartbeat: HEARTBEAT, commandTimeout: 500 }),
    async commandCalls(name: string) {
      const line = (await fixture.admin.info('commandstats')).match(
        new RegExp(`cmdstat_${name}:calls=(\\d+)`),
      );
      return Number(line?.[1] ?? 0);
    },
  } as RedisFixture<Events>;
  beforeAll(async () => {
    fixture.redis = await startRedis();
    fixture.admin = new Redis(fixture.redis.url);
  });
  beforeEach(async () => {
    await fixture.admin.flushall();
    fixture.proxy = await startProxy(fixture.redis.url);
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((events) => events.close()));
    await fixture.proxy.close();
  });
  afterAll(async () => {
    await fixture.admin.quit();
    await fixture.redis.kill();
  });
  return fixture;
}
