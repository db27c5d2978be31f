/** @tags node graphql engine */
import { GraphQLError, GraphQLInt, GraphQLObjectType, GraphQLSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { filter, map, merge } from '../../middleware/pubsub.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { SubscriptionOptions } from '../../types/subscriptions.ts';
import { atEnd } from '../kit.ts';
import { LEGACY, listen, MODERN, ready } from './client.ts';
import { inProduction, NOTHING, until } from './serve.ts';

inProduction();

/** A source whose `next` rejects, with a `return` that no asynchronous generator has. */
const brokenSource = (members: object): AsyncIterable<unknown> => ({
  [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error('secret')), ...members }),
});

const thrower = (value: unknown) => (): never => {
  throw value;
};

const SOURCES: [string, () => object][] = [
  ['returns an object from "return"', () => brokenSource({ return: () => ({ done: true }) })],
  ['returns undefined from "return"', () => brokenSource({ return: () => undefined })],
  ['throws in "return"', () => brokenSource({ return: thrower(new Error('secret')) })],
  ['throws in "next" and "return"', () => brokenSource({ next: thrower(1), return: thrower(2) })],
  ['has a "return" that is not a function', () => brokenSource({ return: 1 })],
  ['returns a number from "next"', () => brokenSource({ next: () => 5 })],
  ['resolves to a text in "next"', () => brokenSource({ next: async () => 'secret' })],
  ['resolves to null in "next"', () => brokenSource({ next: async () => null })],
  [
    'gives an event that rejects',
    () => brokenSource({ next: async () => ({ value: Promise.reject(new Error('secret')) }) }),
  ],
  ['is filtered and has no object', () => filter(brokenSource({ next: async () => 5 }), () => true)],
  ['is mapped and has no object', () => map(brokenSource({ next: async () => 5 }), String)],
  ['is merged and has no object', () => merge(brokenSource({ next: async () => 5 }))],
];

const cyclic: Record<string, unknown> = {};
cyclic['self'] = cyclic;
const ERRORS: [string, () => object][] = [
  [
    'fails with a BigInt in the extensions of its error',
    thrower(new GraphQLError('secret', { extensions: { id: 10n } })),
  ],
  [
    'fails with a cycle in the extensions of its error',
    thrower(new GraphQLError('secret', { extensions: cyclic })),
  ],
  [
    'fails with extensions whose "toJSON" throws',
    thrower(new GraphQLError('secret', { extensions: { toJSON: thrower(1) } })),
  ],
];

/** Serves a schema with one subscription field. */
async function serve(subscribe: () => unknown, options: SubscriptionOptions) {
  const schema = new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { one: { type: GraphQLInt } } }),
    subscription: new GraphQLObjectType({
      name: 'Subscription',
      fields: { tick: { type: GraphQLInt, subscribe } },
    }),
  });
  const reports: unknown[] = [];
  const handler = graphqlHTTP(schema, { onError: (error) => reports.push(error) });
  const { server, url, port } = await listen(handler);
  const subscriptions = attachSubscriptions(server, handler, options);
  atEnd(async () => {
    await subscriptions.close();
    server.close();
  });
  return { url, port, reports, subscriptions };
}

describe.each([
  ['private', {}],
  ['shared', { share: () => 'all' }],
])('a %s subscription', (_, options) => {
  it.each([...SOURCES, ...ERRORS])(
    'ends with an error over both subprotocols and as an event stream if its source %s',
    async (_, subscribe) => {
      const { url, port, reports, subscriptions } = await serve(subscribe, options);
      for (const [protocol, type] of [
        [MODERN, 'subscribe'],
        [LEGACY, 'start'],
      ]) {
        const client = await ready(url, protocol);
        client.send({ id: '1', type, payload: { query: 'subscription { tick }' } });
        const received = await client.until((message) => message['type'] === 'error');
        expect(JSON.stringify(received.at(-1)?.['payload'])).toContain('Internal server error');
        await client.close();
      }
      const response = await fetch(`http://127.0.0.1:${port}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
        body: JSON.stringify({ query: 'subscription { tick }' }),
      });
      expect(await response.text()).toMatch(/"Internal server error".*\n\nevent: complete/s);
      expect(reports).toHaveLength(3);
      await until(() => subscriptions.stats().connections === 0);
      expect(subscriptions.stats()).toEqual(NOTHING);
    },
  );
});
