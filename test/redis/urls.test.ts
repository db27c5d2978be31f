/** @tags once slow */
// URLs, and URLs with a function that returns the password.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { buildSchema } from 'graphql';
import { Redis } from 'ioredis';
import { redisStore } from '../../middleware/cache.ts';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { inject } from '../../middleware/testing.ts';
import type { RedisLogin } from '../../types/redis.ts';
import { versionOf } from '../cache/store-entries.ts';
import { atEnd } from '../kit.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { assertRecovery, openPubSub, USES } from './uses.ts';

let server: RedisServer;
let admin: Redis;
beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.url);
});
afterAll(async () => {
  admin.disconnect();
  await server.kill();
});

const schema = buildSchema('type Query { one: Int }');

it.each(Object.keys(USES))('a URL serves %s', async (use) => {
  await USES[use]?.(server.url);
});

it('the options of all handlers share one connection to a URL', async () => {
  const own = await startRedis();
  atEnd(() => own.kill());
  for (let count = 0; count < 3; count++) {
    const budget = { limit: 10, redis: own.url };
    const handler = graphqlHTTP(schema, { budget, usage: { redis: own.url } });
    const { headers } = await inject(handler, { query: '{ one }' });
    expect(headers['ratelimit']).toMatch(/^"cost"/);
    await handler.usage.flush();
  }
  const observer = new Redis(own.url);
  atEnd(() => observer.disconnect());
  expect(
    String(await observer.client('LIST'))
      .trim()
      .split('\n'),
  ).toHaveLength(2);
});

it('the connection to a URL opens again after Redis was away', async () => {
  const own = await startRedis();
  atEnd(() => own.kill());
  const budget = { limit: 1_000_000, redis: own.url, onUnavailable: 'closed' } as const;
  const handler = graphqlHTTP(schema, { budget });
  const send = async (): Promise<number> => (await inject(handler, { query: '{ one }' })).status;
  // On a busy machine Redis may reply too late to some of the requests.
  const untilStatus = async (expected: number): Promise<void> => {
    while ((await send()) !== expected) await sleep(5);
  };
  await untilStatus(200);
  await own.kill();
  await untilStatus(503);
  await own.start();
  await untilStatus(200);
});

it.each(['runs', 'is away', 'is silent'])(
  'a process with a URL ends by itself while Redis %s',
  async (state) => {
    const url = state === 'is away' ? 'redis://127.0.0.1:1' : server.url;
    if (state === 'is silent') server.signal('SIGSTOP');
    const args = ['--import', 'tsx', join(__dirname, 'url-process.ts'), url];
    const { stdout } = await promisify(execFile)(process.execPath, args).finally(() =>
      server.signal('SIGCONT'),
    );
    expect(stdout).toBe('200\n');
  },
);

describe('a URL with credentials', () => {
  const login = async (credentials: RedisLogin['credentials']): Promise<RedisLogin> => {
    await admin.call('ACL', 'SETUSER', 'app', 'reset', 'on', '>first', '~*', '&*', '+@all');
    return { url: server.url, credentials };
  };

  it.each(Object.keys(USES))('serves %s', async (use) => {
    await USES[use]?.(await login(async () => ({ username: 'app', password: 'first' })));
  });

  it('calls the function again for each connection, and after it has failed or its password was refused', async () => {
    const answers = [
      () => Promise.reject(new Error('no token')),
      () => ({ username: 'app', password: 'expired' }),
      () => ({ username: 'app' }) as { username: string; password: string },
      () => undefined as unknown as { username: string; password: string },
    ];
    let password = 'first';
    const current = () => ({ username: 'app', password });
    const redis = await login(() => (answers.shift() ?? current)());
    const errors: string[] = [];
    const onError = (error: Error) => errors.push(error.message);
    // The store writes warnings, with its name before the message.
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation((warning) => {
      errors.push(String(warning).replace('redisStore: ', ''));
    });
    atEnd(() => warn.mockRestore());
    const events = openPubSub(redis, { onError });
    const store = redisStore({ redis });
    atEnd(() => store.close());
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await versionOf(store);
    expect(errors).toEqual(
      expect.arrayContaining([
        'no token',
        expect.stringMatching(/^Redis refused the credentials: WRONGPASS/),
        'credentials() returned no password',
      ]),
    );
    expect(errors.join()).not.toMatch(/undefined/);

    password = 'second';
    await admin.call('ACL', 'SETUSER', 'app', 'resetpass', '>second');
    await admin.call('CLIENT', 'KILL', 'USER', 'app');
    await assertRecovery(events, stream);
    await versionOf(store);
  });

  it('connects no more when the pubsub was closed during a call of the function', async () => {
    // Those of the tests before may still close their connections to the other one.
    const own = await startRedis();
    atEnd(() => own.kill());
    const observer = new Redis(own.url);
    atEnd(() => observer.disconnect());
    let resolve = (_: { password: string }): void => undefined;
    let calls = 0;
    const redis: RedisLogin = {
      url: own.url,
      credentials: () => {
        calls++;
        return new Promise((settle) => {
          resolve = settle;
        });
      },
    };
    const events = openPubSub(redis);
    while (calls < 2) await new Promise(setImmediate);
    await events.close();
    resolve({ password: 'first' });
    await new Promise(setImmediate);
    expect(
      String(await observer.client('LIST'))
        .trim()
        .split('\n'),
    ).toHaveLength(1);
  });
});
