// Executes an operation with each option that takes a Redis, and then has nothing left to do.

import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { inject } from '../../middleware/testing.ts';

const [redis = ''] = process.argv.slice(2);
const handler = graphqlHTTP(buildSchema('type Query { one: Int }'), {
  budget: { limit: 10, redis },
  usage: { redis },
  documents: { apq: { redis } },
  caller: () => null,
  idempotency: { redis },
});
const { status } = await inject(handler, { query: '{ one }' });
await handler.usage.flush().catch(() => undefined);
console.log(status);
