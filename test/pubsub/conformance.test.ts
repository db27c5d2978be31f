/** @tags once slow */
import { redis as overRedis } from '../../middleware/pubsub.ts';
import { testTransport } from '../../middleware/testing.ts';
import { TIMES } from '../../src/testing/transport-checks.ts';
import { atEnd } from '../kit.ts';
import { startCluster } from '../redis-cluster.ts';
import {
  INTERRUPTIONS,
  type InterruptedRedis,
  LIMITS,
  SETTINGS,
  startInterruptedRedis,
} from './interruptions.ts';
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
/** Tests a transport with faults, for whose messages it does not wait long. */
function testSoon({ create, interrupt }: MemoryBroker): Promise<readonly string[]> {
  const { limit } = TIMES;
  atEnd(() => Object.assign(TIMES, { limit }));
  TIMES.limit = 500;
  return testTransport(create, { interrupt });
}

const WITHOUT_HISTORY = ALL.filter((name) => !/links|history/.test(name));

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
    ['delivers a message for each subscription', { repeated: true }, /- subscribe resolves .* twice/],
    ['confirms what is pending', { hasty: true }, /- subscribe resolves when later messages arrive: /],
    [
      'takes names for prefixes',
      { prefixes: true },
      /- channels are independent: .* got a message of the channel/,
    ],
    [
      'keeps the last message',
      { retained: true },
      /- channels are independent: .* published before subscribe/,
    ],
    ['unsubscribes late', { unsubscribed: 20 }, /- channels are independent: the message 4 did not arrive/],
    ['never unsubscribes', { unsubscribed: 60_000 }, /- channels are independent: .* after unsubscribe/],
    [
      'does not close',
      { endless: true },
      /- close ends the transport: close\(\) did not settle within 500 ms/,
    ],
    ['sends an event again', { retries: true }, /the message 30 was delivered twice/],
  ])('fails testTransport if it %s', async (_fault, faults, message) => {
    const broker = new MemoryBroker({ history, faults });
    const tested = testSoon(broker);
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
  ['has no start', true, { start: 'none' }, /- links name the message before: newest\(\) returned no id/],
  [
    'has the same start after a loss',
    true,
    { start: 'constant' },
    /- links name the message before: the id 0-0 of the start would be the same after the events were lost/,
  ],
  [
    'has another start for each call',
    true,
    { start: 'changing' },
    /- links name the message before: the id of the start has changed from 0-\d+ to 0-\d+ without an event/,
  ],
  ['has no links', true, { unlinked: true }, /- links name the message before: the message 0 has no link/],
])('testTransport finds a transport that %s', async (_, history, faults, message) => {
  const broker = new MemoryBroker({ history, faults });
  const tested = testSoon(broker);
  await expect(tested).rejects.toThrow(message);
});

it.each<[string, Faults]>([
  ['links in place of gap()', { silent: true }],
  ['a read that rejects after an interruption', { unread: true }],
])('testTransport accepts %s', async (_, faults) => {
  const broker = new MemoryBroker({ faults });
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
  let redis: InterruptedRedis;
  beforeAll(async () => {
    redis = await startInterruptedRedis();
  });
  afterAll(() => redis.close());

  describe.each([
    ['with a history', LIMITS],
    ['without a history', undefined],
  ])('%s', (_, history) => {
    it.each(INTERRUPTIONS)('passes testTransport with %s', async (name) => {
      const passed = await redis.test(name, redis.url, history);
      expect(passed).toEqual(history === undefined ? WITHOUT_HISTORY : ALL);
    });
  });

  it('passes testTransport on a cluster', async () => {
    const cluster = await startCluster();
    try {
      const client = cluster.client();
      const create = () => overRedis(client, { ...SETTINGS, commandTimeout: 5000 });
      expect(await testTransport(create)).toEqual(ALL.filter((name) => !name.includes('interruption')));
    } finally {
      await cluster.stop();
    }
  });
});
