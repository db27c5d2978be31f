// One of several processes that cache the values of a database: `/write` changes a value and invalidates its tag.
import type { AddressInfo } from 'node:net';
import { makeExecutableSchema } from '@graphql-tools/schema';
import { graphqlHTTP } from 'espalier';
import { redisStore } from 'espalier/cache';
import { createPubSub, redis } from 'espalier/pubsub';
import express from 'express';
import { Redis } from 'ioredis';

const { DATABASE_URL = '', BUS_URL = '', STORE } = process.env;
const database = new Redis(DATABASE_URL);
const onError = (): void => undefined;
const pause = (most: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, Math.random() ** 3 * most));

const schema = makeExecutableSchema({
  typeDefs: `
    directive @cacheControl(maxAge: Int) on FIELD_DEFINITION
    directive @cacheTag(format: String!) repeatable on FIELD_DEFINITION
    type Query { value(key: ID!): Int! @cacheControl(maxAge: 600) @cacheTag(format: "value-{$args.key}") }
  `,
  resolvers: {
    Query: {
      async value(_: unknown, { key }: { key: string }) {
        await pause(5);
        const value = Number(await database.get(`value:${key}`));
        await pause(40);
        return value;
      },
    },
  },
});

const cache =
  STORE === 'redis'
    ? { store: redisStore({ redis: BUS_URL }) }
    : {
        pubsub: createPubSub({
          transport: redis(BUS_URL, { heartbeat: 500, commandTimeout: 500 }),
          onError,
        }),
      };
const graphql = graphqlHTTP(schema, { responseCache: cache });
const app = express();
app.use('/graphql', graphql);
app.post('/write', async (req, res) => {
  const { key = '', value = '' } = req.query;
  await database.set(`value:${key}`, String(value));
  await graphql.invalidate(`value-${key}`);
  res.end();
});
const server = app.listen(0, () =>
  process.stdout.write(`http://localhost:${(server.address() as AddressInfo).port}\n`),
);
