// Run by budget.test.ts: sends 500 operations to a server in the same process, many of them at the same time.
import { buildSchema } from 'graphql';
import { Redis } from 'ioredis';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { TIMES } from '../../src/rate-limit/buckets.ts';
import { run } from '../graphql/server.ts';

const [url = '', key = ''] = process.argv.slice(2);
TIMES.wait = 20_000;
const redis = new Redis(url);
await redis.ping();
const handler = graphqlHTTP(buildSchema('type Query { one: Int }'), {
  budget: { limit: 137, window: 24 * 3_600_000, unit: 'operations', key: () => key, redis },
});
const server = await run((req, res) => handler(req, res));
const body = JSON.stringify({ query: '{ one }' });
const headers = { 'content-type': 'application/json' };
const statuses = await Promise.all(
  Array.from(
    { length: 500 },
    async () => (await fetch(server.url, { method: 'POST', headers, body })).status,
  ),
);
process.send?.(statuses);
redis.disconnect();
await server.close();
process.disconnect();
