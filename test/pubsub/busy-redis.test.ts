/** @tags once */
import { Redis } from 'ioredis';
import { createPubSub } from '../../middleware/pubsub.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { until } from '../until.ts';

describe.each([
  ['without', {}],
  ['with', { history: {} }],
])('a Redis that refuses for some time, %s a history', (_, options) => {
  let redis: RedisServer;
  let url: string;
  let admin: Redis;
  beforeEach(async () => {
    redis = await startRedis(['--requirepass', 'secret', '--busy-reply-threshold', '20']);
    url = redis.url.replace('//', '//:secret@');
    admin = new Redis(url);
    await admin.ping();
  });
  const open: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const each of open.splice(0)) await each.close();
    admin.disconnect();
    await redis.kill();
  });

  it('createPubSub subscribes after a slow script has ended', async () => {
    const errors: string[] = [];
    const events = createPubSub({
      transport: url,
      onError: ({ message }) => errors.push(message),
      ...options,
    });
    open.push(events);
    await events.ready('warm');
    const other = new Redis(url);
    await other.ping();
    const script = admin.eval(
      "local first = redis.call('TIME')[1]; repeat until redis.call('TIME')[1] - first > 1",
      0,
    );
    const isBusy = (): Promise<boolean> =>
      other.ping().then(
        () => false,
        ({ message }: Error) => message.startsWith('BUSY'),
      );
    while (!(await isBusy())) await new Promise(setImmediate);
    const stream = events.subscribe('tick');
    const next = stream.next();
    await until(() => errors.some((message) => message.startsWith('BUSY')));
    await script;
    await events.ready('tick');
    await events.publish('tick', 1);
    expect((await next).value).toBe(1);
    other.disconnect();
  });

  it('createPubSub connects again after Redis had too many clients', async () => {
    const errors: string[] = [];
    const events = createPubSub({
      transport: url,
      onError: ({ message }) => errors.push(message),
      ...options,
    });
    open.push(events);
    const next = events.subscribe('tick').next();
    next.catch(() => undefined);
    await events.ready('tick');
    await admin.config('SET', 'maxclients', '1');
    await admin.client('KILL', 'TYPE', 'PUBSUB');
    await until(() => errors.some((message) => message.startsWith('ERR max number of clients')));
    await admin.config('SET', 'maxclients', '100');
    // Without a history the stream ends with a code after which clients connect again.
    if (!('history' in options)) await expect(next).rejects.toMatchObject({ closeCode: 1013 });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await events.publish('tick', 1);
    expect((await stream.next()).value).toBe(1);
    if ('history' in options) expect((await next).value).toBe(1);
  });
});
