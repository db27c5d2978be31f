/** @tags once */
import { createClient, createCluster } from 'redis';
import { describeNodeRedis } from '../redis/node-redis.ts';
import { describeSharded } from '../redis/sharded.ts';

describeNodeRedis('node-redis 5', { createClient, createCluster });

describeSharded('node-redis 5', ({ nodes }) => {
  const client = createCluster({ rootNodes: nodes.map(({ url }) => ({ url })) });
  client.on('error', () => undefined);
  return client;
});
