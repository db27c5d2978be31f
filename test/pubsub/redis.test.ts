/** @tags once */

import { Redis } from 'ioredis';
import { createPubSub, type PubSub } from '../../middleware/pubsub.ts';
import { freePort } from '../programs.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { take } from './events.ts';
import { type RedisPubSubOptions, withRedis } from './redis-options.ts';

interface Events {
  tick: number;
  'half \ud800': number;
}

let redis: RedisServer;
let admin: Redis;
const open: PubSub<Events>[] = [];

function connect(options: RedisPubSubOptions = {}): PubSub<Events> {
  const events = createPubSub<Events>(withRedis({ redis: redis.url, ...options }));
  open.push(events);
  return events;
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** The connection of the publisher reconnects independently. */
async function retry(publish: () => Promise<void>): Promise<void> {
  for (;;) {
    const failed = await publish().then(
      () => false,
      () => true,
    );
    if (!failed) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

beforeAll(async () => {
  redis = await startRedis();
  admin = new Redis(redis.url);
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((events) => events.close()));
});
afterAll(async () => {
  await admin.quit();
  await redis.kill();
});

describe('events over Redis', () => {
  it('createPubSub delivers events to the subscribers of every process, in order', async () => {
    const [here, there] = [connect(), connect()];
    const streams = [here, there, there].map((events) => events.subscribe('tick'));
    await Promise.all([here.ready('tick'), there.ready('tick')]);
    await Promise.all(numbers(200).map((tick) => here.publish('tick', tick)));
    for (const stream of streams) expect(await take(stream, 200)).toEqual(numbers(200));
  });

  it('createPubSub delivers the events of a topic with half of a surrogate pair', async () => {
    const events = connect();
    const stream = events.subscribe('half \ud800');
    await events.ready('half \ud800');
    await events.publish('half \ud800', 1);
    expect(await take(stream, 1)).toEqual([1]);
  });

  it('createPubSub delivers all events after ready() resolves', async () => {
    const [here, there] = [connect(), connect()];
    for (const tick of numbers(50)) {
      const stream = there.subscribe('tick');
      await there.ready('tick');
      await here.publish('tick', tick);
      expect((await stream.next()).value).toBe(tick);
      await stream.return?.();
    }
  });

  it('createPubSub delivers events to a subscriber while other subscribers join and leave', async () => {
    const [here, there] = [connect(), connect()];
    const stays = there.subscribe('tick');
    await there.ready('tick');
    for (const tick of numbers(60)) {
      const passing = there.subscribe('tick');
      await here.publish('tick', tick);
      await passing.return?.();
    }
    expect(await take(stays, 60)).toEqual(numbers(60));
    // The only subscriber leaves and joins in one tick.
    await stays.return?.();
    const joining = there.subscribe('tick');
    await there.ready('tick');
    await here.publish('tick', 7);
    expect((await joining.next()).value).toBe(7);
  });

  it('createPubSub unsubscribes from the channel when its last subscriber leaves', async () => {
    const events = connect();
    const streams = [events.subscribe('tick'), events.subscribe('tick')];
    await events.ready('tick');
    expect(await admin.pubsub('CHANNELS')).toEqual(['espalier:tick']);
    for (const stream of streams) await stream.return?.();
    const other = connect({ prefix: 'other:' });
    other.subscribe('tick');
    await other.ready('tick');
    await events.close();
    expect(await admin.pubsub('CHANNELS')).toEqual(['other:tick']);
  });

  it('createPubSub separates applications by prefix', async () => {
    const [here, there] = [connect({ prefix: 'a:' }), connect({ prefix: 'b:' })];
    const [mine, theirs] = [here.subscribe('tick'), there.subscribe('tick')];
    await Promise.all([here.ready('tick'), there.ready('tick')]);
    await here.publish('tick', 1);
    await there.publish('tick', 2);
    expect((await mine.next()).value).toBe(1);
    expect((await theirs.next()).value).toBe(2);
  });

  it('createPubSub reports messages that are not JSON and continues', async () => {
    const onError = jest.fn();
    const events = connect({ onError });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await admin.publish('espalier:tick', '{not json');
    await events.publish('tick', 1);
    expect((await stream.next()).value).toBe(1);
    expect(onError).toHaveBeenCalledTimes(1);
  });

  it('createPubSub ends the stream of a slow subscriber', async () => {
    const events = connect({ maxBufferedBytes: 1000 });
    const slow = events.subscribe('tick');
    await events.ready('tick');
    for (let batch = 0; batch < 10; batch++)
      await Promise.all(numbers(300).map((tick) => events.publish('tick', tick)));
    await events.ready('tick');
    await expect(slow.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
  });

  it('createPubSub copies the settings of a client and does not use it', async () => {
    const client = new Redis(redis.url, { lazyConnect: true });
    const events = connect({ redis: client });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await events.publish('tick', 1);
    expect((await stream.next()).value).toBe(1);
    await events.close();
    expect(client.status).toBe('wait');
  });
});

describe('an unavailable Redis', () => {
  it('createPubSub ends its streams after a restart of Redis, and publish rejects meanwhile', async () => {
    const onGap = jest.fn();
    const [here, there] = [connect(), connect({ onGap })];
    const stream = there.subscribe('tick');
    await Promise.all([here.ready('tick'), there.ready('tick')]);
    await here.publish('tick', 1);
    expect((await stream.next()).value).toBe(1);

    const ended = stream.next().catch((error) => error);
    await redis.kill();
    await expect(here.publish('tick', 2)).rejects.toThrow();
    await redis.start();
    expect(await ended).toMatchObject({ code: 'ERR_EVENTS_MISSED', closeCode: 1013 });
    expect(onGap).toHaveBeenCalledTimes(1);

    const again = there.subscribe('tick');
    await there.ready('tick');
    await retry(() => here.publish('tick', 3));
    expect((await again.next()).value).toBe(3);
  });

  it('createPubSub delivers no event between a lost connection and the end of the stream', async () => {
    const [here, there] = [connect(), connect()];
    let tick = 0;
    let publishing = true;
    const publisher = (async () => {
      // Pipelined, so that messages follow the confirmation of SUBSCRIBE without a pause.
      while (publishing) await Promise.all(numbers(20).map(() => there.publish('tick', tick++)));
    })();
    for (let round = 0; round < 10; round++) {
      const stream = here.subscribe('tick');
      await here.ready('tick');
      const received = await take(stream, 5);
      await admin.client('KILL', 'TYPE', 'PUBSUB');
      await expect(
        (async () => {
          for await (const event of stream) received.push(event);
        })(),
      ).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
      const first = received[0] as number;
      expect(received).toEqual(received.map((_, index) => first + index));
    }
    publishing = false;
    await publisher;
  });

  it('createPubSub can be created and closed without Redis', async () => {
    const onError = jest.fn();
    const events = connect({ redis: `redis://127.0.0.1:${await freePort()}`, onError });
    const stream = events.subscribe('tick');
    await expect(events.publish('tick', 1)).rejects.toThrow();
    expect(onError).toHaveBeenCalled();
    await events.close();
    expect(await stream.next()).toEqual({ value: undefined, done: true });
  });

  it.each(['never connected', 'lost'])(
    'createPubSub rejects pending ready() calls on close() with a connection that is %s',
    async (kind) => {
      const events = connect(kind === 'lost' ? {} : { redis: `redis://127.0.0.1:${await freePort()}` });
      if (kind === 'lost') {
        await events.ready('tick');
        await redis.kill();
        await expect(events.publish('tick', 1)).rejects.toThrow();
      }
      const waiting = [events.ready('tick'), events.ready('tick')].map((wait) =>
        wait.catch((error) => error.message),
      );
      await new Promise((resolve) => setImmediate(resolve));
      await events.close();
      waiting.push(events.ready('tick').catch((error) => error.message));
      for (const message of await Promise.all(waiting)) expect(message).toMatch(/closed/i);
      if (kind === 'lost') await redis.start();
    },
  );

  it('createPubSub passes the error of an unawaited publish to onError', async () => {
    let report: (error: Error) => void = () => undefined;
    const reported = new Promise<Error>((resolve) => {
      report = resolve;
    });
    const events = connect({
      redis: `redis://127.0.0.1:${await freePort()}`,
      onError: (error) => report(error),
    });
    void events.publish('tick', 1);
    expect((await reported).message).toMatch(/./);
  });
});
