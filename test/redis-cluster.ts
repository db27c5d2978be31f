import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import { freePort } from './programs.ts';
import { type RedisServer, startRedis } from './redis.ts';

/** A Redis Cluster that a test has started. */
export interface RedisCluster {
  /** The masters, in the order of their slots, and then the replicas of the first one. */
  readonly nodes: readonly RedisServer[];
  /** Returns a client that is not connected yet. */
  client(options?: { readonly keyPrefix?: string }): Cluster;
  /** Returns a client of one node. */
  connectTo(node: RedisServer): Redis;
  stop(): Promise<void>;
}

const MASTERS = 3;
const SLOTS_PER_MASTER = 5462;
const LAST_SLOT = 16383;

/** Starts a cluster of three masters, with replicas of the first one. */
export async function startCluster({ replicas = 0 } = {}): Promise<RedisCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-cluster-'));
  const nodes: RedisServer[] = [];
  const clients: (Cluster | Redis)[] = [];

  function connectTo({ port }: RedisServer): Redis {
    const client = new Redis(port, '127.0.0.1');
    client.on('error', () => undefined);
    clients.push(client);
    return client;
  }

  const buses: number[] = [];
  for (let index = 0; index < MASTERS + replicas; index++) {
    const bus = await freePort();
    const config = join(folder, `nodes-${index}.conf`);
    const words = ['--cluster-enabled', 'yes', '--cluster-port', `${bus}`, '--cluster-config-file', config];
    buses.push(bus);
    nodes.push(
      await startRedis([...words, '--cluster-node-timeout', '3000', '--repl-diskless-sync-delay', '0']),
    );
  }
  const admins = nodes.map(connectTo);
  for (const [index, admin] of admins.entries()) {
    // As redis-cli does it: nodes with equal epochs would change them later.
    await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', `${index + 1}`);
    if (index < MASTERS) {
      const first = index * SLOTS_PER_MASTER;
      const last = Math.min(first + SLOTS_PER_MASTER - 1, LAST_SLOT);
      await admin.call('CLUSTER', 'ADDSLOTSRANGE', `${first}`, `${last}`);
    }
    const [first] = nodes as [RedisServer];
    if (index > 0) await admin.call('CLUSTER', 'MEET', '127.0.0.1', `${first.port}`, `${buses[0]}`);
  }
  const isComplete = async (admin: Redis): Promise<boolean> => {
    const info = String(await admin.call('CLUSTER', 'INFO'));
    const settled = ['state:ok', `known_nodes:${nodes.length}`, `current_epoch:${nodes.length}`];
    return settled.every((text) => info.includes(`cluster_${text}\r`));
  };
  for (const admin of admins) while (!(await isComplete(admin))) await pause(20);
  const master = String(await admins[0]?.call('CLUSTER', 'MYID'));
  for (const replica of admins.slice(MASTERS)) {
    await replica.call('CLUSTER', 'REPLICATE', master);
    while (!(await replica.info('replication')).includes('master_link_status:up')) await pause(20);
  }

  return {
    nodes,
    client(options) {
      const seeds = nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
      // After a second, the default, ioredis gives up the nodes of a busy machine.
      const client = new Cluster(seeds, { lazyConnect: true, slotsRefreshTimeout: 20_000, ...options });
      client.on('error', () => undefined);
      clients.push(client);
      return client;
    },
    connectTo,
    async stop() {
      for (const client of clients) client.disconnect();
      await Promise.all(nodes.map((node) => node.kill()));
      rmSync(folder, { recursive: true });
    },
  };
}
