/** @tags once slow */

import { Redis as Valkey } from 'iovalkey';
import pg from 'pg';
import { createClient, createCluster } from 'redis';
import { postgres } from '../../middleware/postgres.ts';
import { createPubSub, type PubSub } from '../../middleware/pubsub.ts';
import { atEnd } from '../kit.ts';
import { type PostgresServer, startPostgres } from '../postgres.ts';
import { type RedisPubSubOptions, withRedis } from '../pubsub/redis-options.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { type RedisCluster, startCluster } from '../redis-cluster.ts';
import { describePresence } from './stores.ts';

function open(options: RedisPubSubOptions = {}): PubSub<object> {
  const events = createPubSub<object>(withRedis(options));
  atEnd(() => events.close());
  return events;
}

/** Two processes with the same options. */
const pair = (create: () => RedisPubSubOptions): [PubSub<object>, PubSub<object>] => [
  open(create()),
  open(create()),
];

describePresence('memory', () => {
  const events = open();
  return [events, events];
});

describePresence('memory with a history', () => {
  const events = open({ history: {} });
  return [events, events];
});

describe('over Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.kill());
  let count = 0;
  const prefix = (): string => `${++count}:`;

  describePresence('ioredis without a history', () => {
    const options = { redis: redis.url, prefix: prefix() };
    return pair(() => options);
  });

  describePresence('iovalkey with a history', () => {
    const client = new Valkey(redis.url, { keyPrefix: 'app:', lazyConnect: true });
    const options = { redis: client, prefix: prefix(), history: {} };
    return pair(() => options);
  });

  describePresence('node-redis with a history', () => {
    const options = { redis: createClient({ url: redis.url }), prefix: prefix(), history: {} };
    return pair(() => options);
  });
});

describe('over a cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster.stop());

  describePresence('ioredis', () => {
    const client = cluster.client();
    atEnd(() => client.disconnect());
    return pair(() => ({ redis: client }));
  });

  describePresence('node-redis with sharded channels and a history', () => {
    const rootNodes = cluster.nodes.map(({ url }) => ({ url }));
    const client = createCluster({ rootNodes });
    return pair(() => ({ redis: client, sharded: true, history: {}, prefix: 'sharded:' }));
  });
});

describe('over PostgreSQL', () => {
  let server: PostgresServer;
  let pool: pg.Pool;
  beforeAll(async () => {
    server = await startPostgres(['fsync=off']);
    pool = new pg.Pool({ connectionString: server.url });
  });
  afterAll(async () => {
    await pool.end();
    await server.remove();
  });

  let count = 0;
  describePresence('PostgreSQL', () => {
    const prefix = `${++count}:`;
    return pair(() => ({ transport: postgres(pool), prefix }));
  });
});
