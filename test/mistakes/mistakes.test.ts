import { HABITS } from './habits.ts';
import type { Mistake } from './mistake.ts';
import { REQUESTS, RESOLVERS, SOCKETS, UPLOADS } from './requests.ts';
import { GRAPHQL, PUBSUB, SCHEMA, SERVER, STATIC, SUBSCRIPTIONS } from './startup.ts';
import { VALUES } from './values.ts';

// Mistakes of new users, each with the message that the user sees: it names the problem and what to do.

const TABLES: Record<string, readonly Mistake[]> = {
  'the options of staticFiles': STATIC,
  'the schema of graphqlHTTP': SCHEMA,
  'the options of graphqlHTTP': GRAPHQL,
  'the arguments of attachSubscriptions': SUBSCRIPTIONS,
  'the options of createServer': SERVER,
  'the options of createPubSub': PUBSUB,
  requests: REQUESTS,
  uploads: UPLOADS,
  'resolvers and option functions': RESOLVERS,
  WebSockets: SOCKETS,
  'arguments and options of other packages': HABITS,
  'values of options and arguments': VALUES,
};

it('the tables contain at least 200 mistakes', () => {
  expect(Object.values(TABLES).flat().length).toBeGreaterThanOrEqual(200);
});

describe.each(Object.entries(TABLES))('mistakes in %s', (_name, mistakes) => {
  it.each(mistakes)('the message for %s names the problem and the fix', async (_what, run, problem, fix) => {
    const message = await run();
    expect(message).toMatch(problem);
    expect(message).toMatch(fix);
  });
});
