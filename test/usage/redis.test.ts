/** @tags graphql */
import express from 'express';
import { buildSchema } from 'graphql';
import { Redis } from 'ioredis';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { run } from '../graphql/server.ts';
import { type RedisServer, startRedis } from '../redis.ts';

const schema = buildSchema('type Query { one: Int two(a: Int): Int }');

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  redis.on('error', () => undefined);
});
afterAll(async () => {
  redis.disconnect();
  await server.kill();
});

const createServer = () => {
  const handler = graphqlHTTP(schema, { usage: { redis } });
  return { handler, served: run(express().use('/graphql', handler)) };
};

it('several processes add to the hash of a day in Redis, which expires, and nothing is lost while Redis is down', async () => {
  const [first, second] = [createServer(), createServer()];
  const urls = [(await first.served).url, (await second.served).url];
  const send = async (index: number, name: string): Promise<void> => {
    const headers = { 'content-type': 'application/json', 'graphql-client-name': name };
    const body = JSON.stringify({ query: '{ one two(a: 1) }' });
    await (await fetch(urls[index] as string, { method: 'POST', headers, body })).text();
  };
  for (let turn = 0; turn < 3; turn++)
    await Promise.all([send(0, 'my app'), send(1, 'my app'), send(1, 'b')]);
  await Promise.all([first.handler.usage.flush(), second.handler.usage.flush()]);
  const coordinates = (count: number) => ({ 'Query.one': count, 'Query.two': count, 'Query.two(a:)': count });
  const day = new Date().toISOString().slice(0, 10);
  expect((await second.handler.usage.report()).days).toEqual({
    [day]: {
      'my app': { operations: 6, coordinates: coordinates(6) },
      b: { operations: 3, coordinates: coordinates(3) },
    },
  });
  const [key] = await redis.keys('espalier:*');
  expect(key).toBe(`espalier:usage:${day}`);
  expect(await redis.ttl(`espalier:usage:${day}`)).toBeGreaterThan(2 * 24 * 3600);

  await server.kill();
  await send(0, 'b');
  await expect(first.handler.usage.flush()).rejects.toThrow(/Redis|Connection/i);
  await server.start();
  for (let turn = 0; turn < 500 && redis.status !== 'ready'; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const report = await first.handler.usage.report();
  expect(report.days[day]?.['b']?.operations).toBe(1);
  await (await first.served).close();
  await (await second.served).close();
});
