/** @tags once slow */
// Clients of node-redis and iovalkey. Those of node-redis 5 are in test/neighbours.

import { Redis as Valkey, Cluster as ValkeyCluster } from 'iovalkey';
import { createClient, createCluster } from 'redis';
import { atEnd } from '../kit.ts';
import { LIMITS, startInterruptedRedis } from '../pubsub/interruptions.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { startCluster } from '../redis-cluster.ts';
import { describeNodeRedis } from './node-redis.ts';
import { assertClusterOrder, openPubSub, USES } from './uses.ts';

describeNodeRedis('node-redis 6', { createClient, createCluster });

describe('iovalkey', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.kill());

  it.each(Object.keys(USES))('a client serves %s', async (use) => {
    const client = new Valkey(server.url, { keyPrefix: 'app:' });
    atEnd(() => client.disconnect());
    await client.ping();
    await USES[use]?.(client);
  });

  it('a cluster serves all of them', async () => {
    const cluster = await startCluster();
    atEnd(() => cluster.stop());
    const client = new ValkeyCluster(cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
    atEnd(() => client.disconnect());
    await client.ping();
    for (const use of Object.values(USES)) await use(client);
    await assertClusterOrder(openPubSub(client));
  });

  it('a client passes testTransport with closed connections', async () => {
    const redis = await startInterruptedRedis();
    atEnd(() => redis.close());
    const client = new Valkey(redis.url, { lazyConnect: true });
    expect(await redis.test('closed connections', client, LIMITS)).toHaveLength(8);
  });
});
