import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { testTransport } from '../../middleware/testing.ts';
import { RedisTransport } from '../../src/pubsub/redis-transport.ts';
import { type StallingProxy, startProxy } from '../pubsub/proxy.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { startCluster } from '../redis-cluster.ts';
import { type Faults, MemoryBroker } from './transports.ts';

const ALL = [
  'subscribe resolves when later messages arrive',
  'messages arrive once and in order',
  'any JSON is delivered unchanged',
  'channels are independent',
  'links name the message before',
  'the history is read without a gap',
  'an interruption loses nothing silently',
  'close ends the transport',
];
const WITHOUT_HISTORY = ALL.filter((name) => !/links|history/.test(name));

const SETTINGS = { heartbeat: 100, commandTimeout: 500 };
const LIMITS = { length: 1000, age: 300_000 };

describe.each([
  ['a history', true],
  ['no history', false],
])('a transport in memory with %s', (_, history) => {
  it('passes testTransport', async () => {
    const broker = new MemoryBroker({ history });
    const passed = await testTransport(broker.create, { interrupt: broker.interrupt });
    expect(passed).toEqual(history ? ALL : WITHOUT_HISTORY);
  });

  it.each<[string, Faults, RegExp]>([
    ['subscribes late', { late: 20 }, /- subscribe resolves when later messages arrive: /],
    ['delivers a message twice', { twice: true }, /- messages arrive once and in order: .* twice/],
    ['changes the order', { reordered: true }, /- messages arrive once and in order: .* another order/],
    ['sends an event again', { retries: true }, /the message 30 was delivered twice/],
  ])('fails testTransport if it %s', async (_fault, faults, message) => {
    const broker = new MemoryBroker({ history, faults });
    const tested = testTransport(broker.create, { interrupt: broker.interrupt, timeout: 500 });
    await expect(tested).rejects.toMatchObject({
      code: 'ERR_TRANSPORT',
      message: expect.stringMatching(message),
    });
  });
});

it.each<[string, boolean, Faults, RegExp]>([
  [
    'loses messages silently',
    false,
    { silent: true },
    /- an interruption loses nothing silently: the message \d+ was lost, and gap\(\) was not called/,
  ],
  [
    'loses messages silently and has no links',
    true,
    { silent: true, unlinked: true },
    /- an interruption loses nothing silently: the message \d+ was lost, and gap\(\) was not called/,
  ],
  [
    'begins a read elsewhere',
    true,
    { lenient: true },
    /- the history is read without a gap: read\(\) after the unknown id 7-7 returned events instead of 'missed'/,
  ],
  ['has no links', true, { unlinked: true }, /- links name the message before: the message 0 has no link/],
])('testTransport finds a transport that %s', async (_, history, faults, message) => {
  const broker = new MemoryBroker({ history, faults });
  const tested = testTransport(broker.create, { interrupt: broker.interrupt, timeout: 500 });
  await expect(tested).rejects.toThrow(message);
});

it('testTransport accepts links in place of gap()', async () => {
  const broker = new MemoryBroker({ faults: { silent: true } });
  expect(await testTransport(broker.create, { interrupt: broker.interrupt })).toEqual(ALL);
});

it.each([
  [undefined, undefined],
  [() => undefined, { interrupts: 1 }],
])('testTransport rejects wrong arguments (%p, %p)', async (create, options) => {
  await expect(testTransport(create as never, options as never)).rejects.toMatchObject({
    code: 'ERR_OPTION',
  });
});

describe('Redis', () => {
  let server: RedisServer;
  let proxy: StallingProxy;
  let admin: Redis;
  beforeAll(async () => {
    server = await startRedis();
    proxy = await startProxy(server.url);
    admin = new Redis(server.url);
  });
  afterAll(async () => {
    await proxy.close();
    await admin.quit();
    await server.kill();
  });

  const interruptions: Readonly<Record<string, () => Promise<unknown>>> = {
    'closed connections': async () => proxy.drop(),
    'CLIENT KILL TYPE pubsub': () => admin.client('KILL', 'TYPE', 'PUBSUB'),
    'a stalled network': async () => {
      proxy.stall();
      await pause(800);
      proxy.heal();
    },
    'a stopped server': async () => {
      server.signal('SIGSTOP');
      await pause(800);
      server.signal('SIGCONT');
    },
  };

  describe.each([
    ['with a history', LIMITS],
    ['without a history', undefined],
  ])('%s', (_, history) => {
    it.each(Object.keys(interruptions))('passes testTransport with %s', async (name) => {
      const create = () => new RedisTransport(proxy.url, { ...SETTINGS, history });
      const passed = await testTransport(create, { interrupt: interruptions[name] });
      expect(passed).toEqual(history === undefined ? WITHOUT_HISTORY : ALL);
    });
  });

  it('passes testTransport on a cluster', async () => {
    const cluster = await startCluster();
    try {
      const client = cluster.client();
      const create = () => new RedisTransport(client, { ...SETTINGS, history: LIMITS });
      expect(await testTransport(create)).toEqual(ALL.filter((name) => !name.includes('interruption')));
    } finally {
      await cluster.stop();
    }
  });
});
