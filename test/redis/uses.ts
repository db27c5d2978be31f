// What every client of Redis is used for, over the public options.

import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildSchema } from 'graphql';
import { redisStore } from '../../middleware/cache.ts';
import { graphqlHTTP, idempotentTypeDefs, type RedisSource } from '../../middleware/graphql.ts';
import { createPubSub, type EventStream, type PubSub } from '../../middleware/pubsub.ts';
import { inject } from '../../middleware/testing.ts';
import { TIMES } from '../../src/rate-limit/buckets.ts';
import { entryOf, textOf, versionOf } from '../cache/store-entries.ts';
import { atEnd } from '../kit.ts';
import { numbers, publishWhenConnected, take } from '../pubsub/events.ts';
import { type RedisPubSubOptions, withRedis } from '../pubsub/redis-options.ts';

interface Events {
  tick: number;
}

export function openPubSub(redis: RedisSource, options: RedisPubSubOptions = {}): PubSub<Events> {
  const events = createPubSub<Events>(withRedis({ redis, prefix: randomUUID(), ...options }));
  atEnd(() => events.close());
  return events;
}

/** A cluster keeps the order of publishes that do not wait for each other. */
export async function assertClusterOrder(events: PubSub<Events>): Promise<void> {
  const stream = events.subscribe('tick');
  await events.ready('tick');
  await publishWhenConnected(() => events.publish('tick', 0));
  await Promise.all(numbers(1, 300).map((number) => events.publish('tick', number)));
  expect(await take(stream, 300)).toEqual(numbers(0, 300));
}

/** The stream ends with an error, because its connection was lost, and a later one gets events again. */
export async function assertRecovery(events: PubSub<Events>, stream: EventStream<number>): Promise<void> {
  await expect(stream.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
  const later = events.subscribe('tick');
  await events.ready('tick');
  await publishWhenConnected(() => events.publish('tick', 1));
  expect(await take(later, 1)).toEqual([1]);
}

/** Like `assertRecovery`, for a cluster. Its nodes lose events until they have found each other again. */
export async function assertClusterRecovery(
  events: PubSub<Events>,
  stream: EventStream<number>,
): Promise<void> {
  await expect(stream.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
  const later = events.subscribe('tick');
  await events.ready('tick');
  let hasArrived = false;
  const first = later.next().finally(() => {
    hasArrived = true;
  });
  while (!hasArrived) {
    await publishWhenConnected(() => events.publish('tick', 1));
    await sleep(20);
  }
  expect((await first).value).toBe(1);
}

/** Publishes ten events to two processes, and replays those after the first. */
export async function assertHistory(client: RedisSource): Promise<void> {
  const prefix = `${randomUUID()}{x}`;
  const [here, there] = [1, 2].map(() => openPubSub(client, { prefix, history: {} })) as [
    PubSub<Events>,
    PubSub<Events>,
  ];
  const stream = there.subscribe('tick');
  await there.ready('tick');
  // `ready` waits for the subscriber of the other process only.
  await publishWhenConnected(() => here.publish('tick', 0));
  for (let tick = 1; tick < 10; tick++) await here.publish('tick', tick);
  const first = await stream.next();
  expect([first.value, ...(await take(stream, 9))]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  const { cursor } = first as { cursor?: string };
  expect(await take(here.subscribe('tick', { after: cursor }), 9)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  const { topics } = await there.stats();
  expect(topics).toEqual({ tick: { length: 10, oldest: expect.any(Number) } });
}

/** Subscribes, unsubscribes and subscribes again without a wait, on a pubsub without a history. */
export async function assertEvents(client: RedisSource): Promise<void> {
  const events = openPubSub(client);
  const first = events.subscribe('tick');
  await events.ready('tick');
  await publishWhenConnected(() => events.publish('tick', 1));
  expect(await take(first, 1)).toEqual([1]);
  await first.return();
  const second = events.subscribe('tick');
  await events.ready('tick');
  await events.publish('tick', 2);
  expect(await take(second, 1)).toEqual([2]);
}

/** Stores an entry, and invalidates it by one of its tags. */
export async function assertInvalidation(redis: RedisSource): Promise<void> {
  const [here, there] = [1, 2].map(() => {
    const store = redisStore({ redis });
    atEnd(() => store.close());
    return store;
  }) as [ReturnType<typeof redisStore>, ReturnType<typeof redisStore>];
  await versionOf(there);
  expect(await here.set('k', entryOf('1', ['a', 'b']), await versionOf(here))).toBe(true);
  expect(await textOf(there)).toBe('1');
  await there.invalidate(['b']);
  expect(await textOf(here)).toBeUndefined();
}

const schema = buildSchema('type Query { one: Int }');

/** Gives two operations to a client with a budget of two, and refuses the third one. */
export async function assertBudget(redis: RedisSource): Promise<void> {
  const key = randomUUID();
  const budget = {
    limit: 2,
    window: 3_600_000,
    unit: 'operations',
    redis,
    key: () => key,
    onUnavailable: 'closed',
  } as const;
  TIMES.wait = 20_000;
  const handler = graphqlHTTP(schema, { budget });
  const statuses: number[] = [];
  for (let i = 0; i < 3; i++) statuses.push((await inject(handler, { query: '{ one }' })).status);
  expect(statuses).toEqual([200, 200, 429]);
}

/** Two processes add to the counts of a day. */
export async function assertUsage(redis: RedisSource): Promise<void> {
  const name = randomUUID();
  const create = () => graphqlHTTP(schema, { usage: { redis } });
  const [here, there] = [create(), create()];
  for (const handler of [here, there])
    await inject(handler, { query: '{ one }', headers: { 'graphql-client-name': name } });
  await here.usage.flush();
  const { days } = await there.usage.report();
  const [clients] = Object.values(days);
  expect(clients?.[name]).toEqual({ operations: 2, coordinates: { 'Query.one': 2 } });
}

/** A mutation that is repeated in another process is executed once. */
export async function assertIdempotency(redis: RedisSource): Promise<void> {
  let calls = 0;
  const mutations = buildSchema(`${idempotentTypeDefs}
    type Query { one: Int } type Mutation { pay: Int }`);
  Object.assign(mutations.getMutationType()?.getFields()['pay'] ?? {}, { resolve: () => ++calls });
  const user = randomUUID();
  const options = { caller: () => ({ id: user }), idempotency: { redis } };
  const query = `mutation { pay @idempotent(key: "a") }`;
  for (let i = 0; i < 2; i++) {
    const { data } = await inject(graphqlHTTP(mutations, options), { query });
    expect(data).toEqual({ pay: 1 });
  }
}

/** A process finds a query that another one has registered. */
export async function assertPersistedQueries(redis: RedisSource): Promise<void> {
  const apq = { redis };
  const query = `query Q${randomUUID().replaceAll('-', '')} { one }`;
  const sha256Hash = createHash('sha256').update(query).digest('hex');
  const extensions = JSON.stringify({ persistedQuery: { version: 1, sha256Hash } });
  const send = async (handler: ReturnType<typeof graphqlHTTP>, more: object): Promise<string> => {
    const path = `/graphql?${new URLSearchParams({ extensions, ...more })}`;
    return (await inject(handler, { path, headers: { accept: 'application/json' } })).text;
  };
  const [here, there] = [1, 2].map(() => graphqlHTTP(schema, { documents: { apq } })) as [
    ReturnType<typeof graphqlHTTP>,
    ReturnType<typeof graphqlHTTP>,
  ];
  expect(await send(here, { query })).toBe('{"data":{"one":null}}');
  let found = await send(there, {});
  while (!found.includes('data')) {
    await sleep(5);
    found = await send(there, {});
  }
  expect(found).toBe('{"data":{"one":null}}');
}

/** Everything. */
export const USES: Readonly<Record<string, (redis: RedisSource) => Promise<void>>> = {
  'a pubsub with history': assertHistory,
  'a pubsub without history': assertEvents,
  redisStore: assertInvalidation,
  budget: assertBudget,
  usage: assertUsage,
  idempotency: assertIdempotency,
  'documents.apq': assertPersistedQueries,
};
