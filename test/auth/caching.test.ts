/** @tags graphql */
import { randomUUID } from 'node:crypto';
import express from 'express';
import { buildSchema, type GraphQLFieldResolver } from 'graphql';
import { authTypeDefs } from '../../middleware/auth.ts';
import { redisStore } from '../../middleware/cache.ts';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { AuthResolveInfo } from '../../types/auth.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import type { RedisStore } from '../../types/response-cache.ts';
import { versionOf } from '../cache/store-entries.ts';
import { run } from '../graphql/server.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { scopesOf } from './service.ts';

const stores: RedisStore[] = [];
let redis: RedisServer | undefined;
afterEach(async () => {
  await Promise.all(stores.splice(0).map((each) => each.close()));
});
afterAll(() => redis?.kill());

let executed = 0;
const counted: GraphQLFieldResolver<unknown, unknown> = () => `value ${++executed}`;

async function serve(
  options: GraphQLOptions,
): Promise<(query: string, scopes?: string) => Promise<Response>> {
  const schema = buildSchema(`${authTypeDefs}
    directive @cacheControl(maxAge: Int) on FIELD_DEFINITION
    type Query {
      secret: String @requiresScopes(scopes: [["a"], ["b"]]) @cacheControl(maxAge: 60)
      open: String @cacheControl(maxAge: 60)
      asked: Boolean @cacheControl(maxAge: 60)
    }
  `);
  const { secret, open, asked } = schema.getQueryType()?.getFields() ?? {};
  for (const field of [secret, open]) if (field !== undefined) field.resolve = counted;
  if (asked !== undefined) {
    asked.resolve = (_source, _args, _context, info) => {
      executed++;
      return (info as AuthResolveInfo).auth.has('a');
    };
  }
  const handler = graphqlHTTP(schema, { httpCache: true, ...options });
  const service = await run(express().use('/graphql', handler));
  return (query, scopes) =>
    fetch(`${service.url}?query=${encodeURIComponent(query)}`, {
      headers: { accept: 'application/json', ...(scopes !== undefined && { 'x-scopes': scopes }) },
    });
}

async function createRedisStore(): Promise<RedisStore> {
  redis ??= await startRedis();
  const store = redisStore({ redis: `${redis.url}?keyPrefix=${randomUUID()}` });
  stores.push(store);
  await versionOf(store);
  return store;
}

describe.each(['memory', 'redis'])('the response cache in %s', (where) => {
  const cache = async () => ({
    key: () => '',
    ...(where === 'redis' && { store: await createRedisStore() }),
  });

  it.each(['compiled', 'graphql-js'] as const)(
    'has an entry for each set of relevant scopes (%s)',
    async (engine) => {
      const get = await serve({
        engine,
        auth: { scopes: scopesOf, mode: 'null' },
        responseCache: await cache(),
      });
      const bodyOf = async (query: string, scopes?: string) => (await get(query, scopes)).json();
      const first = await bodyOf('{ secret open }', 'a x');
      expect(await bodyOf('{ secret open }', 'y a z')).toEqual(first);
      const other = await bodyOf('{ secret open }', 'b');
      expect(other).not.toEqual(first);
      for (const scopes of [undefined, 'x', '']) {
        const { data, errors } = (await bodyOf('{ secret open }', scopes)) as {
          data: object;
          errors: object[];
        };
        expect(data).toHaveProperty('secret', null);
        expect(errors).toHaveLength(1);
      }
      expect(await bodyOf('{ secret open }', 'a')).toEqual(first);
      // Without requirements all callers share the entry.
      expect(await bodyOf('{ open }', 'a')).toEqual(await bodyOf('{ open }'));
    },
  );

  it('mode reject: a stored result is not sent to others', async () => {
    const get = await serve({ auth: { scopes: scopesOf }, responseCache: await cache() });
    const stored = await (await get('{ secret }', 'a')).text();
    expect(await (await get('{ secret }', 'a x')).text()).toBe(stored);
    for (const scopes of [undefined, 'x'])
      expect(await (await get('{ secret }', scopes)).text()).not.toContain('value');
  });
});

it('only results without requirements are public', async () => {
  const get = await serve({ auth: { scopes: scopesOf }, responseCache: { key: () => '' } });
  expect((await get('{ open }')).headers.get('cache-control')).toContain('public');
  expect((await get('{ secret }', 'a')).headers.get('cache-control')).toContain('private');
});

it.each(['compiled', 'graphql-js'] as const)('what info.auth decides is not stored (%s)', async (engine) => {
  const get = await serve({ engine, auth: { scopes: scopesOf }, responseCache: { key: () => '' } });
  expect(await (await get('{ asked }', 'a')).json()).toEqual({ data: { asked: true } });
  const other = await get('{ asked }', 'b');
  expect(await other.json()).toEqual({ data: { asked: false } });
  expect(other.headers.get('cache-control')).toBe('no-store');
});

it('a refresh in the background keeps the caller', async () => {
  const get = await serve({
    auth: { scopes: scopesOf, mode: 'null' },
    responseCache: { key: () => '', staleWhileRevalidate: 60_000 },
  });
  expect((await get('{ secret }', 'a')).status).toBe(200);
});
