/** @tags node graphql */
import { createServer } from 'node:http';
import { attachSubscriptions, graphqlHTTP, staticFiles, Upload } from 'espalier';
import { createPubSub } from 'espalier/pubsub';
import { inject, subscribe } from 'espalier/testing';
import express from 'express';
import { buildSchema, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import request from 'supertest';

// Fake timers replace setImmediate, nextTick and queueMicrotask too. Requests to Express still get their responses.

const schema = buildSchema('type Query { hello: String, later: String } type Subscription { ticks: Int }');
const rootValue = {
  hello: 'world',
  later: () => Promise.resolve('later'),
  async *ticks() {
    yield { ticks: 1 };
    yield { ticks: 2 };
  },
};
const query = '{ hello later }';
// Its preparation yields to the event loop.
const longQuery = `{ hello\n${'# a comment of a long document\n'.repeat(2000)} }`;
const handler = graphqlHTTP(schema, { rootValue });
const app = express().use('/graphql', handler).use(staticFiles('test'));

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

it.each([
  ['an app', app],
  ['a handler', handler],
])('inject to %s works while timers are fake', async (_name, target) => {
  expect((await inject(target, { query })).data).toEqual({ hello: 'world', later: 'later' });
  expect((await inject(target, { query: longQuery })).status).toBe(200);
});

it.each(['websocket', 'event-stream'] as const)(
  'subscribe over a transport %s works while timers are fake',
  async (transport) => {
    const results = await subscribe(handler, { query: 'subscription { ticks }', transport });
    const received: unknown[] = [];
    for await (const { data } of results) received.push(data);
    expect(received).toEqual([{ ticks: 1 }, { ticks: 2 }]);
  },
);

it.each(['websocket', 'event-stream'] as const)(
  'subscribe over a transport %s gets events of an open subscription while timers are fake',
  async (transport) => {
    const events = createPubSub<{ ticks: { ticks: number } }>();
    const live = graphqlHTTP(schema, { rootValue: { ticks: () => events.subscribe('ticks') } });
    const results = await subscribe(live, { query: 'subscription { ticks }', transport });
    for (const ticks of [1, 2]) {
      const next = results.next();
      await events.publish('ticks', { ticks });
      expect((await next).value).toMatchObject({ data: { ticks } });
    }
    await results.return?.();
    await events.close();
  },
);

it('supertest gets responses of graphqlHTTP and staticFiles while timers are fake', async () => {
  const server = createServer(app);
  attachSubscriptions(server, handler);
  for (const text of [query, longQuery])
    await request(server).post('/graphql').send({ query: text }).expect(200);
  await request(server).get('/tsconfig.json').expect(200);
});

it('inject uploads while all but nextTick and setImmediate are fake', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] });
  const read = {
    type: GraphQLString,
    args: { file: { type: Upload } },
    resolve: (_root: unknown, { file }: { file: Upload }) => file.text(),
  };
  const uploads = new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { hello: { type: GraphQLString } } }),
    mutation: new GraphQLObjectType({ name: 'Mutation', fields: { read } }),
  });
  const { data } = await inject(graphqlHTTP(uploads), {
    query: 'mutation ($file: Upload) { read(file: $file) }',
    variables: { file: new File(['some text'], 'note.txt') },
  });
  expect(data).toEqual({ read: 'some text' });
});
