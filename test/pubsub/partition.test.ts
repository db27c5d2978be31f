/** @tags once slow */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import type { PubSub } from '../../middleware/pubsub.ts';
import { until } from '../until.ts';
import { publishWhenConnected } from './events.ts';
import type { RedisPubSubOptions } from './redis-options.ts';
import { useRedis } from './use-redis.ts';

interface Events {
  tick: number;
}

const execute = promisify(execFile);

const fixture = useRedis<Events>();

const connect = (options: RedisPubSubOptions = {}): PubSub<Events> =>
  fixture.connect({ ...fixture.overProxy(), ...options });

describe('a connection to Redis without a reply', () => {
  it('createPubSub ends its streams with ERR_EVENTS_MISSED after a partition of an idle subscriber', async () => {
    let gaps = 0;
    const events = connect({ onGap: () => gaps++ });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    const ended = expect(stream.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED', closeCode: 1013 });
    fixture.proxy.stall();
    await fixture.admin.publish('espalier:tick', '1');
    fixture.proxy.heal();
    await ended;
    expect(gaps).toBe(1);

    const again = events.subscribe('tick');
    await events.ready('tick');
    await fixture.admin.publish('espalier:tick', '2');
    expect((await again.next()).value).toBe(2);
  });

  it('createPubSub rejects publishes during a partition and does not send them later', async () => {
    const direct = connect({ redis: fixture.redis.url });
    const received: number[] = [];
    const stream = direct.subscribe('tick');
    await direct.ready('tick');
    const events = connect();
    await events.publish('tick', 0);
    fixture.proxy.stall();
    await expect(events.publish('tick', 1)).rejects.toMatchObject({
      code: 'ERR_REDIS_TIMEOUT',
      message: 'Redis did not reply within 500 ms',
    });
    await expect(events.publish('tick', 2)).rejects.toThrow(/Redis/);
    fixture.proxy.heal();
    await publishWhenConnected(() => events.publish('tick', 3));
    while (received.at(-1) !== 3) received.push((await stream.next()).value);
    expect(received).toEqual([0, 3]);
  });

  it.each(['', 'secret'])(
    'createPubSub connects again after a proxy has accepted and closed connections (password "%s")',
    async (password) => {
      await fixture.admin.config('SET', 'requirepass', password);
      try {
        const client = new Redis(fixture.proxy.url, { lazyConnect: true, password, connectionName: 'chat' });
        const events = connect({ redis: client });
        const stream = events.subscribe('tick');
        await events.ready('tick');
        const ended = expect(stream.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
        fixture.proxy.refuse();
        await until(() => fixture.proxy.refused() >= 4);
        fixture.proxy.heal();
        await ended;
        const again = events.subscribe('tick');
        await events.ready('tick');
        await publishWhenConnected(() => events.publish('tick', 2));
        expect((await again.next()).value).toBe(2);
        expect(await fixture.admin.client('LIST')).toContain('name=chat');
      } finally {
        await fixture.admin.config('SET', 'requirepass', '');
      }
    },
  );

  it('createPubSub keeps its connections when only the event loop was blocked', async () => {
    const events = connect();
    const stream = events.subscribe('tick');
    await events.ready('tick');
    const until = performance.now() + 1500;
    while (performance.now() < until);
    await events.publish('tick', 1);
    expect((await stream.next()).value).toBe(1);
  });
});

it.each(['get', 'eval'])(
  'createPubSub reports nothing if it is closed during a read of the history (%s)',
  async (command) => {
    const errors: unknown[] = [];
    const events = connect({ history: {}, heartbeat: 100, onError: (error) => void errors.push(error) });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    const held = fixture.proxy.hold(command);
    // A message that was dropped: the next check reads it.
    const id = await fixture.admin.xadd('{espalier:tick}:events', '*', 'p', '', 'e', '1');
    await fixture.admin.set('{espalier:tick}:newest', String(id));
    await held.arrived(1);
    await Promise.all([events.close(), stream.next().catch(() => undefined)]);
    held.sendAll();
    expect(errors).toEqual([]);
  },
);

describe('a subscriber that joins while the last one leaves', () => {
  it('createPubSub delivers no event from before the new subscription, because later ones may be missing', async () => {
    const events = connect({ heartbeat: 5000, commandTimeout: 5000 });
    const first = events.subscribe('tick');
    await events.ready('tick');
    const held = fixture.proxy.hold('unsubscribe');
    await first.return?.();
    await held.arrived(1);
    const second = events.subscribe('tick');
    await held.arrived(2);
    await fixture.admin.publish('espalier:tick', '1');
    held.sendFirst();
    while ((await fixture.admin.pubsub('NUMSUB', 'espalier:tick'))[1] !== 0);
    await fixture.admin.publish('espalier:tick', '2');
    held.sendAll();
    await events.ready('tick');
    await fixture.admin.publish('espalier:tick', '3');
    expect((await second.next()).value).toBe(3);
  });

  it('createPubSub ends a stream whose connection is lost right after its first subscription', async () => {
    // Redis has confirmed SUBSCRIBE, but not yet replied to the PING that follows it.
    const held = fixture.proxy.hold('ping');
    const events = connect({ heartbeat: 5000, commandTimeout: 5000 });
    const stream = events.subscribe('tick');
    await held.arrived(1);
    let arrived = false;
    const first = stream.next().finally(() => {
      arrived = true;
    });
    // A message that arrives together with the confirmation is not delivered.
    while (!arrived) await fixture.admin.publish('espalier:tick', '1');
    expect((await first).value).toBe(1);
    fixture.proxy.drop();
    held.sendAll();
    const rest = async (): Promise<void> => {
      for await (const tick of stream) expect(tick).toBe(1);
    };
    await expect(rest()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
  });
});

describe('a Redis that refuses commands', () => {
  const asUser = (user: string, password: string): string =>
    fixture.redis.url.replace('//', `//${user}:${password}@`);

  it('createPubSub ends the streams of a refused channel with the reason', async () => {
    await fixture.admin.call(
      'ACL',
      'SETUSER',
      'limited',
      'on',
      '>secret',
      '+@all',
      'resetchannels',
      '&allowed:*',
    );
    const errors: string[] = [];
    const events = connect({
      redis: asUser('limited', 'secret'),
      onError: ({ message }) => errors.push(message),
    });
    const stream = events.subscribe('tick');
    const reason = /Cannot subscribe to the Redis channel "espalier:tick": NOPERM/;
    await expect(stream.next()).rejects.toMatchObject({
      code: 'ERR_EVENTS_REFUSED',
      message: expect.stringMatching(reason),
    });
    await expect(events.ready('tick')).rejects.toThrow(reason);
    await expect(events.publish('tick', 1)).rejects.toThrow(/NOPERM/);
    expect(errors).toContainEqual(expect.stringMatching(reason));

    const allowed = connect({ redis: asUser('limited', 'secret'), prefix: 'allowed:' });
    const other = allowed.subscribe('tick');
    await allowed.ready('tick');
    await fixture.admin.publish('allowed:tick', '1');
    expect((await other.next()).value).toBe(1);
  });

  it('createPubSub names a wrong password in streams, ready and publish', async () => {
    const events = connect({ redis: asUser('default', 'wrong') });
    await fixture.admin.config('SET', 'requirepass', 'right');
    try {
      const stream = events.subscribe('tick');
      await expect(stream.next()).rejects.toThrow(/WRONGPASS/);
      await expect(events.ready('tick')).rejects.toThrow(/WRONGPASS/);
      await expect(events.publish('tick', 1)).rejects.toThrow(/WRONGPASS|NOAUTH/);
    } finally {
      await fixture.admin.config('SET', 'requirepass', '');
    }
  });
});

describe('a process that uses createPubSub', () => {
  /** Returns the standard error of a scenario of child.ts; rejects when the process fails. */
  async function run(scenario: string): Promise<string> {
    const script = join(__dirname, 'child.ts');
    const { stderr } = await execute(process.execPath, [
      '--import',
      'tsx',
      script,
      scenario,
      fixture.redis.url,
    ]);
    return stderr;
  }

  it('createPubSub writes equal errors to standard error once by default, and none with onError: false', async () => {
    const lines = (await run('log')).split('\n').filter((line) => line.includes('PubSubWarning'));
    expect(lines).toEqual([
      expect.stringMatching(
        /PubSubWarning: createPubSub: A message on the Redis channel "espalier:tick" is not JSON$/,
      ),
    ]);
  });

  it('createPubSub can be closed during a reconnect without an unhandled rejection', async () => {
    expect(await run('close')).toBe('');
  });

  it('createPubSub with a history has no timer that keeps the process alive', async () => {
    await fixture.admin.flushall();
    expect(await run('timers')).toBe('');
  });

  it('createPubSub is ready although a hook of the module loader delays the import of ioredis', async () => {
    expect(await run('loader')).toBe('');
  });

  it('createPubSub accepts many subscribers of a topic without a MaxListenersExceededWarning', async () => {
    expect(await run('listeners')).toBe('');
  });
});
