/** @tags once slow */
// Clusters of node-redis 5 are in test/neighbours.

import { Cluster } from 'ioredis';
import { Cluster as Cluster5 } from 'ioredis5';
import { Cluster as ValkeyCluster } from 'iovalkey';
import { createCluster } from 'redis';
import { redis } from '../../middleware/pubsub.ts';
import { atEnd } from '../kit.ts';
import type { RedisCluster } from '../redis-cluster.ts';
import { describeSharded } from './sharded.ts';

const seedsOf = ({ nodes }: RedisCluster) => nodes.map(({ port }) => ({ host: '127.0.0.1', port }));

describe.each([
  ['ioredis 6', Cluster],
  ['ioredis 5', Cluster5],
  ['iovalkey', ValkeyCluster],
])('a cluster', (name, Client) => {
  describeSharded(name, (cluster) => {
    const client = new Client(seedsOf(cluster), { keyPrefix: 'app:', lazyConnect: true });
    client.on('error', () => undefined);
    atEnd(() => client.disconnect());
    return client;
  });
});

describeSharded('node-redis 6', ({ nodes }) => {
  const client = createCluster({ rootNodes: nodes.map(({ url }) => ({ url })) });
  client.on('error', () => undefined);
  return client;
});

it('sharded is refused for a Redis that is not a cluster', () => {
  expect(() => redis('redis://127.0.0.1', { sharded: true })).toThrow(
    expect.objectContaining({ code: 'ERR_OPTION', message: expect.stringContaining('"sharded"') }),
  );
});
