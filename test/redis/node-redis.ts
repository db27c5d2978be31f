import { setTimeout as pause } from 'node:timers/promises';
import { buildSchema } from 'graphql';
import { Redis } from 'ioredis';
import { redisStore } from '../../middleware/cache.ts';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { type RedisSource, redis } from '../../middleware/pubsub.ts';
import { inject, testTransport } from '../../middleware/testing.ts';
import { versionOf } from '../cache/store-entries.ts';
import { atEnd } from '../kit.ts';
import {
  INTERRUPTIONS,
  type InterruptedRedis,
  LIMITS,
  SETTINGS,
  startInterruptedRedis,
} from '../pubsub/interruptions.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { startCluster } from '../redis-cluster.ts';
import { until } from '../until.ts';
import { assertClusterOrder, assertClusterRecovery, openPubSub, USES } from './uses.ts';

/** The members of a client that the tests need. */
type Client = RedisSource & {
  connect(): Promise<unknown>;
  destroy(): void;
  /** Clusters have none. */
  readonly isReady?: boolean;
  on(event: 'error', listener: () => void): unknown;
};

interface NodeRedis {
  createClient(options: { url: string } & Record<string, unknown>): Client;
  createCluster(options: { rootNodes: { url: string }[] } & Record<string, unknown>): Client;
}

/** Tests the clients of one version of node-redis. */
export function describeNodeRedis(name: string, { createClient, createCluster }: NodeRedis): void {
  describe(name, () => {
    let server: RedisServer;
    beforeAll(async () => {
      server = await startRedis();
    });
    afterAll(() => server.kill());

    async function opened(client: Client): Promise<Client> {
      client.on('error', () => undefined);
      await client.connect();
      atEnd(() => client.destroy());
      return client;
    }

    describe.each<[string, Record<string, unknown>]>([
      ['no further option', {}],
      ['RESP 2', { RESP: 2 }],
      ['RESP 3', { RESP: 3 }],
      ['mapped types', { RESP: 3, commandOptions: { typeMapping: { 36: Buffer, 58: String } } }],
    ])('with %s', (_, options) => {
      it.each(Object.keys(USES))('a client serves %s', async (use) => {
        await USES[use]?.(await opened(createClient({ url: server.url, ...options })));
      });
    });

    it('a cluster serves all of them', async () => {
      const cluster = await startCluster();
      atEnd(() => cluster.stop());
      const rootNodes = cluster.nodes.map(({ url }) => ({ url }));
      const client = await opened(createCluster({ rootNodes }));
      for (const use of Object.values(USES)) await use(client);
      await assertClusterOrder(openPubSub(client));
      const create = () => redis(client, { ...SETTINGS, commandTimeout: 5000 });
      expect(await testTransport(create)).toHaveLength(7);
    });

    it('a cluster delivers events again after all of its nodes were restarted', async () => {
      const cluster = await startCluster();
      atEnd(() => cluster.stop());
      const client = await opened(createCluster({ rootNodes: cluster.nodes.map(({ url }) => ({ url })) }));
      const events = openPubSub(client, { onError: false, ...SETTINGS });
      const stream = events.subscribe('tick');
      await events.ready('tick');
      await Promise.all(cluster.nodes.map((node) => node.kill()));
      await Promise.all(cluster.nodes.map((node) => node.start()));
      await assertClusterRecovery(events, stream);
    });

    it('a cluster leaves no connection open that was being opened when it was closed', async () => {
      const cluster = await startCluster();
      atEnd(() => cluster.stop());
      const client = createCluster({ rootNodes: cluster.nodes.map(({ url }) => ({ url })) });
      client.on('error', () => undefined);
      const admin = cluster.connectTo(cluster.nodes[0] as RedisServer);
      const connections = async (): Promise<number> => String(await admin.client('LIST')).split('\n').length;
      const before = await connections();
      for (let count = 0; count < 3; count++) await openPubSub(client, SETTINGS).close();
      const later = openPubSub(client, SETTINGS);
      await later.ready('tick');
      await later.close();
      while ((await connections()) !== before) await pause(10);
    });

    describe('interrupted', () => {
      let redis: InterruptedRedis;
      beforeAll(async () => {
        redis = await startInterruptedRedis();
      });
      afterAll(() => redis.close());

      it.each(INTERRUPTIONS)('passes testTransport with %s', async (interruption) => {
        const client = createClient({ url: redis.url });
        expect(await redis.test(interruption, client, LIMITS)).toHaveLength(8);
      });

      it('passes testTransport without a history', async () => {
        const client = createClient({ url: redis.url, socket: { reconnectStrategy: false } });
        expect(await redis.test('closed connections', client, undefined)).toHaveLength(6);
      });
    });

    it('createPubSub and redisStore connect to a Redis that starts later, and refuse a wrong password', async () => {
      const own = await startRedis(['--requirepass', 'right']);
      atEnd(() => own.kill());
      await own.kill();
      const errors: Error[] = [];
      const client = createClient({ url: own.url, password: 'right' });
      const events = openPubSub(client, { onError: (error) => errors.push(error) });
      const store = redisStore({ redis: client });
      atEnd(() => store.close());
      const ready = events.ready('tick');
      await until(() => errors.length > 1);
      await own.start();
      await ready;
      await versionOf(store);
      expect(String(errors[0])).toMatch(/ECONNREFUSED/);

      const wrong = createClient({ url: own.url, password: 'wrong' });
      const refused = openPubSub(wrong, { onError: false });
      await expect(refused.ready('tick')).rejects.toMatchObject({ code: 'ERR_EVENTS_REFUSED' });
    });

    it('a budget counts in its process while Redis is away', async () => {
      const own = await startRedis();
      atEnd(() => own.kill());
      const client = await opened(createClient({ url: own.url }));
      let key = 'a';
      const budget = {
        limit: 1,
        unit: 'operations',
        redis: client,
        key: () => key,
        window: 3_600_000,
      } as const;
      const handler = graphqlHTTP(buildSchema('type Query { one: Int }'), { budget });
      const send = async (): Promise<number> => (await inject(handler, { query: '{ one }' })).status;
      let admitted = 0;
      while ((await send()) === 200) admitted++;
      // One more counts in the process where Redis is slower than the budget waits.
      expect([1, 2]).toContain(admitted);
      await own.kill();
      // A command of the time until then would be sent, and counted, when Redis is back.
      await until(() => client.isReady === false);
      key = 'b';
      expect([await send(), await send()]).toEqual([200, 429]);
      await own.start();
      // Redis was empty. A reply may be later than the budget waits, so that no status proves who has counted.
      const admin = new Redis(own.url);
      atEnd(() => admin.disconnect());
      for (let tries = 0; (await admin.dbsize()) === 0; tries++) {
        expect(tries).toBeLessThan(1000);
        // Without a pause the client would get no turn of the event loop to connect in.
        await pause(20);
        await send();
      }
    });
  });
}
