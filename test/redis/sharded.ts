// Sharded channels of a Redis Cluster, with the cluster of one package.

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { redis } from '../../middleware/pubsub.ts';
import { testTransport } from '../../middleware/testing.ts';
import type { RedisSource } from '../../types/redis.ts';
import { publishWhenConnected, take } from '../pubsub/events.ts';
import { LIMITS, SETTINGS, withHistory } from '../pubsub/interruptions.ts';
import { type RedisCluster, startCluster } from '../redis-cluster.ts';
import { openPubSub } from './uses.ts';

/** Tests `sharded`. `connect` returns a cluster, which need not be connected, and disconnects it with `atEnd`. */
export function describeSharded(name: string, connect: (cluster: RedisCluster) => RedisSource): void {
  describe(`sharded channels with ${name}`, () => {
    let cluster: RedisCluster;
    let admins: readonly Redis[];
    beforeAll(async () => {
      cluster = await startCluster({ replicas: 1 });
      admins = cluster.nodes.map(cluster.connectTo);
    });
    afterAll(() => cluster.stop());

    /** Returns a prefix whose topic "tick" is on the master that has a replica. */
    async function prefixOf(admin: Redis): Promise<string> {
      for (;;) {
        const prefix = randomUUID();
        if (Number(await admin.call('CLUSTER', 'KEYSLOT', `{${prefix}tick}:events`)) < 5462) return prefix;
      }
    }

    /** Lets the replica take over all slots of its master. Redis gives an attempt up that takes too long. */
    async function failOver(): Promise<void> {
      const roles = await Promise.all(admins.map(async (admin) => (await admin.role())[0]));
      const replica = admins[roles.indexOf('slave')] as Redis;
      for (let end = 0; (await replica.role())[0] !== 'master'; await pause(10)) {
        if (performance.now() < end) continue;
        await replica.call('CLUSTER', 'FAILOVER').catch((error: Error) => {
          // It has become the master since its role was read.
          if (!error.message.includes('to a replica')) throw error;
        });
        end = performance.now() + 3000;
      }
    }

    it.each([
      ['a history', LIMITS, 8],
      ['no history', undefined, 6],
    ])('with %s pass testTransport when their connections are killed', async (_, history, count) => {
      const client = connect(cluster);
      const create = () =>
        withHistory(redis(client, { ...SETTINGS, commandTimeout: 5000, sharded: true }), history);
      const interrupt = () => Promise.all(admins.map((admin) => admin.client('KILL', 'TYPE', 'PUBSUB')));
      expect(await testTransport(create, { interrupt })).toHaveLength(count);
    });

    it('send an event to one node only', async () => {
      const events = openPubSub(connect(cluster), { sharded: true });
      const stream = events.subscribe('tick');
      await events.ready('tick');
      const sent = async (): Promise<readonly string[]> =>
        (await Promise.all(admins.map(async (admin) => String(await admin.call('CLUSTER', 'INFO'))))).map(
          (info) => /stats_messages_publish_sent:(\d+)/.exec(info)?.[1] ?? '0',
        );
      const before = await sent();
      await publishWhenConnected(() => events.publish('tick', 1));
      expect(await take(stream, 1)).toEqual([1]);
      expect(await sent()).toEqual(before);
      const nodes = await Promise.all(admins.map((admin) => admin.call('PUBSUB', 'SHARDCHANNELS')));
      expect(nodes.flat()).toHaveLength(1);
    });

    it('continue without a gap when their slot moves, with a history', async () => {
      const prefix = await prefixOf(admins[0] as Redis);
      const events = openPubSub(connect(cluster), {
        sharded: true,
        prefix,
        history: {},
        ...SETTINGS,
        onError: false,
      });
      const stream = events.subscribe('tick');
      await events.ready('tick');
      await publishWhenConnected(() => events.publish('tick', 1));
      await failOver();
      await publishWhenConnected(() => events.publish('tick', 2));
      expect(await take(stream, 2)).toEqual([1, 2]);
    });

    it('end their streams when their slot moves, without a history', async () => {
      const prefix = await prefixOf(admins[0] as Redis);
      const events = openPubSub(connect(cluster), { sharded: true, prefix, ...SETTINGS, onError: false });
      const stream = events.subscribe('tick');
      await events.ready('tick');
      await failOver();
      await expect(stream.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
      // Each attempt of the replica changes the epoch of the cluster, so that another gap may follow.
      for (let ticks: readonly number[] = []; ticks.length === 0; ) {
        const later = events.subscribe('tick');
        await events.ready('tick');
        await publishWhenConnected(() => events.publish('tick', 1));
        ticks = await take(later, 1).catch((error: { code?: string }) => {
          expect(error.code).toBe('ERR_EVENTS_MISSED');
          return [];
        });
      }
    });
  });
}
