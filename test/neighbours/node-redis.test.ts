import { createClient, createCluster } from 'redis';
import { describeNodeRedis } from '../redis-node.ts';

describeNodeRedis('node-redis 5', { createClient, createCluster });
