/** @tags once slow */
// createPubSub with a Redis Cluster and with Sentinel.

import net from 'node:net';
import { pipeline } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import { createPubSub, type EventStream, type PubSub } from '../../middleware/pubsub.ts';
import { atEnd, listen } from '../kit.ts';
import { freePort } from '../programs.ts';
import { assertClusterOrder } from '../redis/uses.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { type RedisCluster, startCluster } from '../redis-cluster.ts';
import { startSentinel } from '../redis-sentinel.ts';
import { numbers, publishWhenConnected, take } from './events.ts';
import { type RedisPubSubOptions, withRedis } from './redis-options.ts';

interface Events {
  [topic: string]: number;
}

const servers: RedisServer[] = [];

afterAll(async () => {
  await Promise.all(servers.map((server) => server.kill()));
});

function connect<Topics extends object = Events>(options: RedisPubSubOptions): PubSub<Topics> {
  const events = createPubSub<Topics>(
    withRedis({ heartbeat: 200, commandTimeout: 2000, onError: false, ...options }),
  );
  atEnd(() => events.close());
  return events;
}

function connectTo(port: number): Redis {
  const client = new Redis(port, '127.0.0.1');
  client.on('error', () => undefined);
  atEnd(async () => client.disconnect());
  return client;
}

describe('a Redis Cluster', () => {
  let nodes: RedisCluster;

  beforeAll(async () => {
    nodes = await startCluster();
  });
  afterAll(() => nodes.stop());

  const cluster = (): Cluster => nodes.client();

  it('createPubSub delivers the events of topics on every node to every process', async () => {
    const [here, there] = [connect({ redis: cluster() }), connect({ redis: cluster() })];
    const topics = numbers(0, 8).map((number) => `topic ${number}`);
    const streams = topics.map((topic) => there.subscribe(topic));
    for (const topic of topics) await there.ready(topic);
    for (const topic of topics) await publishWhenConnected(() => here.publish(topic, 1));
    for (const stream of streams) expect(await take(stream, 1)).toEqual([1]);
  });

  it('createPubSub keeps the order of publishes that do not wait for each other', async () => {
    await assertClusterOrder(connect<{ tick: number }>({ redis: cluster() }));
  });

  it('createPubSub with a history resumes streams, also after the loss of the connection to a node', async () => {
    const history = { length: 100 };
    const [here, there] = [connect({ redis: cluster(), history }), connect({ redis: cluster(), history })];
    const topics = numbers(0, 8).map((number) => `recorded ${number}`);
    const streams = topics.map((topic) => there.subscribe(topic));
    for (const topic of topics) await there.ready(topic);
    for (const topic of topics)
      for (const tick of numbers(0, 5)) await publishWhenConnected(() => here.publish(topic, tick));
    const cursors: string[] = [];
    for (const stream of streams) {
      cursors.push((await stream.next()).cursor as string);
      expect(await take(stream, 4)).toEqual([1, 2, 3, 4]);
    }
    for (const node of nodes.nodes) await nodes.connectTo(node).client('KILL', 'TYPE', 'PUBSUB');
    for (const topic of topics)
      for (const tick of numbers(5, 10)) await publishWhenConnected(() => here.publish(topic, tick));
    for (const [index, topic] of topics.entries()) {
      expect(await take(streams[index] as EventStream<number>, 5)).toEqual(numbers(5, 10));
      expect(await take(there.subscribe(topic, { after: cursors[index] }), 9)).toEqual(numbers(1, 10));
    }
  });

  it('publish rejects when one node of the cluster is silent, also while the others reply', async () => {
    const own = await startCluster();
    atEnd(() => own.stop());
    const [silent] = own.nodes as [RedisServer];
    for (const node of own.nodes) {
      await own.connectTo(node).config('SET', 'cluster-require-full-coverage', 'no');
    }
    const events = connect({ redis: own.client(), history: {} });
    // The first third of the slots belongs to the first node.
    const admin = own.connectTo(silent);
    const slots = await Promise.all(
      numbers(0, 20).map((topic) => admin.cluster('KEYSLOT', `espalier:${topic}`)),
    );
    const onSilent = String(slots.findIndex((slot) => slot < 5462));
    const onOther = String(slots.findIndex((slot) => slot >= 5462));
    for (const topic of [onSilent, onOther]) await publishWhenConnected(() => events.publish(topic, 1));
    silent.signal('SIGSTOP');
    let isDone = false;
    atEnd(async () => {
      isDone = true;
    });
    const others = (async () => {
      for (; !isDone; await pause(20)) await events.publish(onOther, 2).catch(() => undefined);
    })();
    await expect(events.publish(onSilent, 2)).rejects.toMatchObject({ code: 'ERR_REDIS_TIMEOUT' });
    isDone = true;
    await others;
  });

  it('publish waits for a node of the cluster longer than the commandTimeout of the client', async () => {
    const seeds = nodes.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
    const client = new Cluster(seeds, { lazyConnect: true, redisOptions: { commandTimeout: 50 } });
    const events = connect({ redis: client, history: {}, commandTimeout: 5000 });
    const topics = numbers(0, 8).map((number) => `slow ${number}`);
    for (const topic of topics) await publishWhenConnected(() => events.publish(topic, 1));
    for (const node of nodes.nodes) node.signal('SIGSTOP');
    const published = topics.map((topic) => events.publish(topic, 2));
    await pause(200);
    for (const node of nodes.nodes) node.signal('SIGCONT');
    expect(await Promise.allSettled(published)).toEqual(
      topics.map(() => ({ status: 'fulfilled', value: undefined })),
    );
    client.disconnect();
  });

  it('createPubSub can be closed when no node of the cluster can be reached', async () => {
    const client = new Cluster([{ host: '127.0.0.1', port: await freePort() }], { lazyConnect: true });
    const events = connect({ redis: client });
    const stream = events.subscribe('tick');
    await expect(events.publish('tick', 1)).rejects.toThrow(/Redis is not connected/);
    await events.close();
    expect(await stream.next()).toEqual({ value: undefined, done: true });
    client.disconnect();
  });
});

describe('a master with a replica', () => {
  it('createPubSub connects again when its server has become a replica', async () => {
    const [first, second] = await Promise.all([startRedis(), startRedis()]);
    servers.push(first, second);
    // An address that leads to the master, as those of hosted services do.
    let target = first.port;
    const address = net.createServer((client) => {
      const server = net.connect(target, '127.0.0.1');
      pipeline(client, server, client, () => undefined);
    });
    const { port } = await listen(address);
    atEnd(async () => address.close());
    const events = connect({ redis: `redis://127.0.0.1:${port}`, history: {} });
    await events.ready('tick');
    await events.publish('tick', 1);
    await connectTo(first.port).replicaof('127.0.0.1', second.port);
    target = second.port;
    await expect(events.publish('tick', 2)).rejects.toThrow('READONLY');
    await publishWhenConnected(() => events.publish('tick', 3));
    expect(await connectTo(second.port).xlen('{espalier:tick}:events')).toBe(1);
  });
});

describe('a master with a replica and Sentinel', () => {
  it('createPubSub with a history continues after a failover without a gap, or ends with EVENTS_MISSED', async () => {
    const master = await startRedis();
    const replica = await startRedis([
      '--replicaof',
      '127.0.0.1',
      `${master.port}`,
      '--repl-diskless-sync-delay',
      '0',
    ]);
    servers.push(master, replica);
    const follower = connectTo(replica.port);
    while (!(await follower.info('replication')).includes('master_link_status:up')) await pause(20);
    const { port, stop } = await startSentinel(master.port);
    atEnd(stop);
    const client = new Redis({
      sentinels: [{ host: '127.0.0.1', port }],
      name: 'main',
      lazyConnect: true,
    });
    const events = connect({ redis: client, history: {} });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    for (const tick of numbers(0, 10)) await publishWhenConnected(() => events.publish('tick', tick));
    expect(await take(stream, 10)).toEqual(numbers(0, 10));
    const known = connectTo(port);
    // Sentinel refuses until it knows the replica.
    const failover = (): Promise<unknown> =>
      known.call('SENTINEL', 'FAILOVER', 'main').catch(() => undefined);
    while ((await failover()) !== 'OK') await pause(20);
    const role = async (): Promise<unknown> => (await follower.role())[0];
    while ((await role()) !== 'master') await pause(20);
    for (const tick of numbers(10, 20)) await publishWhenConnected(() => events.publish('tick', tick));
    const rest = await take(stream, 10).catch((error) => error.code);
    expect([numbers(10, 20), 'ERR_EVENTS_MISSED']).toContainEqual(rest);
    client.disconnect();
  });
});
