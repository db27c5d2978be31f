/** @tags once */
import { createPubSub, redis as overRedis, type PubSub } from '../../middleware/pubsub.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { until } from '../until.ts';

const fail = (): never => {
  throw new Error('broken');
};
const reject = (): Promise<void> => Promise.reject(new Error('broken'));

const isPublished = (events: PubSub<Record<string, unknown>>): Promise<boolean> =>
  events.publish('tick', 1).then(
    () => true,
    () => false,
  );

describe('options of createPubSub that are functions', () => {
  let redis: RedisServer;
  const rejections: unknown[] = [];
  const warnings: string[] = [];
  const onRejection = (reason: unknown): void => void rejections.push(reason);
  beforeAll(async () => {
    redis = await startRedis();
    process.on('unhandledRejection', onRejection);
    jest.spyOn(process, 'emitWarning').mockImplementation((warning) => void warnings.push(String(warning)));
  });
  const open: { close(): Promise<void> }[] = [];
  beforeEach(() => {
    warnings.length = 0;
  });
  afterEach(async () => {
    for (const each of open.splice(0)) await each.close();
  });
  afterAll(async () => {
    process.off('unhandledRejection', onRejection);
    jest.restoreAllMocks();
    await redis.kill();
  });

  it.each([
    ['throws', fail],
    ['rejects', reject],
  ])('createPubSub reports an onGap that %s, and continues', async (_, onGap) => {
    const errors: string[] = [];
    const events = createPubSub({
      transport: overRedis(redis.url, { heartbeat: 100 }),
      onGap,
      onError: ({ message }) => errors.push(message),
    });
    open.push(events);
    await events.ready('tick');
    await redis.kill();
    await redis.start();
    await until(() => errors.includes('the option "onGap" failed: broken'));
    const stream = events.subscribe('tick');
    await events.ready('tick');
    // The connection of the publisher reconnects independently.
    while (!(await isPublished(events))) await new Promise(setImmediate);
    expect((await stream.next()).value).toBe(1);
  });

  it.each([
    ['throws', fail],
    ['rejects', reject],
  ])('an onError that %s becomes a warning with the error', async (_, onError) => {
    const events = createPubSub({ transport: 'redis://127.0.0.1:1', onError });
    open.push(events);
    await until(() => warnings.includes('createPubSub: the option "onError" failed: broken'));
    expect(rejections).toEqual([]);
  });
});
