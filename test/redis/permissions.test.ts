/** @tags once */
// Redis users that may do no more than the documentation says.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSchema } from 'graphql';
import { Redis } from 'ioredis';
import { redisStore } from '../../middleware/cache.ts';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createPubSub } from '../../middleware/pubsub.ts';
import { inject } from '../../middleware/testing.ts';
import { entryOf, textOf, versionOf } from '../cache/store-entries.ts';
import { atEnd } from '../kit.ts';
import { publishWhenConnected, take } from '../pubsub/events.ts';
import { type RedisServer, startRedis } from '../redis.ts';

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

/** The commands that a page of the documentation names between two phrases. */
function commandsIn(page: string, from: string, to: string): string[] {
  const text = readFileSync(join(__dirname, '../../docs', page), 'utf8').replaceAll(/\s+/g, ' ');
  const start = text.indexOf(from);
  const end = text.indexOf(to, start);
  expect([start, end]).not.toContain(-1);
  return [...text.slice(start, end).matchAll(/`([A-Z]+)`/g)].map(([, name]) => `+${name?.toLowerCase()}`);
}

/** Creates a user with permission for some commands, and returns the URL. */
async function urlFor(commands: readonly string[]): Promise<string> {
  expect(commands.length).toBeGreaterThan(2);
  await admin.call('ACL', 'SETUSER', 'limited', 'reset', 'on', '>p@ss', '~*', '&*', ...commands);
  return server.url.replace('redis://', 'redis://limited:p%40ss@');
}

it.each([
  ['without', undefined, '; with'],
  ['with', {}, ' With `sharded`'],
])('createPubSub %s history needs the documented permissions only', async (_, history, end) => {
  const redis = await urlFor(commandsIn('history.md', 'The user needs permission for', end));
  const errors: Error[] = [];
  const events = createPubSub<{ tick: number }>({
    transport: redis,
    history,
    onError: (error) => errors.push(error),
  });
  atEnd(() => events.close());
  const stream = events.subscribe('tick');
  await events.ready('tick');
  await publishWhenConnected(() => events.publish('tick', 1));
  const first = await stream.next();
  expect(first.value).toBe(1);
  if (first.cursor !== undefined) {
    await events.publish('tick', 2);
    expect(await take(events.subscribe('tick', { after: first.cursor }), 1)).toEqual([2]);
    expect((await events.stats()).topics).toMatchObject({ tick: { length: 2 } });
  }
  await stream.return();
  expect(errors).toEqual([]);
});

it('redisStore needs the documented permissions only', async () => {
  const redis = await urlFor(
    commandsIn('response-cache.md', 'This check needs the permission for', '- With a'),
  );
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation();
  atEnd(() => warn.mockRestore());
  const store = redisStore({ redis });
  atEnd(() => store.close());
  expect(await store.set('k', entryOf('1', ['a']), await versionOf(store))).toBe(true);
  expect(await textOf(store)).toBe('1');
  await store.invalidate(['a']);
  expect(await textOf(store)).toBeUndefined();
  expect(warn).not.toHaveBeenCalled();
});

it('a budget in Redis needs the documented permissions only', async () => {
  const url = await urlFor(commandsIn('cost.md', 'The Redis user needs permission for', '- In Redis'));
  const redis = new Redis(url, { enableReadyCheck: false });
  atEnd(() => redis.disconnect());
  while (redis.status !== 'ready') await new Promise(setImmediate);
  const budget = {
    limit: 1,
    unit: 'operations',
    redis,
    key: () => 'all',
    window: 3_600_000,
    onUnavailable: 'closed',
  } as const;
  const handler = graphqlHTTP(buildSchema('type Query { one: Int }'), { budget });
  const send = async (): Promise<number> => (await inject(handler, { query: '{ one }' })).status;
  expect([await send(), await send()]).toEqual([200, 429]);
});
