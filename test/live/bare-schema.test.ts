/** @tags node graphql */
import http from 'node:http';
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { SubscriptionTarget } from '../../types/graphql.ts';

let warned: jest.SpyInstance;
beforeEach(() => {
  warned = jest.spyOn(console, 'warn').mockImplementation();
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** Attaches subscriptions and returns the warnings. */
async function warnings(target: SubscriptionTarget, later?: () => void): Promise<string[]> {
  const subscriptions = attachSubscriptions(http.createServer(), target);
  later?.();
  // The warning is given in the immediate that was scheduled before this one.
  await new Promise((resolve) => setImmediate(resolve));
  await subscriptions.close();
  return warned.mock.calls.map(([message]) => message);
}

const WARNING = [expect.stringContaining('attachSubscriptions was given a schema')];

it('attachSubscriptions with the schema of a handler warns that sockets do not use its options', async () => {
  const schema = buildSchema('type Query { hello: String }');
  graphqlHTTP(schema);
  expect(await warnings(schema)).toEqual(WARNING);
});

it('attachSubscriptions with a schema warns about a handler that is created after it', async () => {
  const schema = buildSchema('type Query { hello: String }');
  expect(await warnings(schema, () => void graphqlHTTP(schema))).toEqual(WARNING);
});

it('attachSubscriptions warns of nothing with the handler, or with a schema that has none', async () => {
  const schema = buildSchema('type Query { hello: String }');
  expect(await warnings(graphqlHTTP(schema))).toEqual([]);
  expect(await warnings(buildSchema('type Query { hello: String }'))).toEqual([]);
});
