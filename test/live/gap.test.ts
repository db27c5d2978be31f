/** @tags node graphql */
import { GraphQLInt, GraphQLObjectType, GraphQLSchema } from 'graphql';
import { attachSubscriptions } from '../../middleware/index.ts';
import { createPubSub } from '../../middleware/pubsub.ts';
import { LEGACY, listen, MODERN, ready } from './client.ts';

// Outside production, responses contain the messages of unexpected errors.
process.env['NODE_ENV'] = 'production';

type Source = () => AsyncIterable<number>;

/** Listens with one subscription field; resolves with its URL and a function that stops it. */
async function serve(subscribe: Source, options = {}) {
  const schema = new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { one: { type: GraphQLInt } } }),
    subscription: new GraphQLObjectType({
      name: 'Subscription',
      fields: { tick: { type: GraphQLInt, subscribe, resolve: (tick) => tick } },
    }),
  });
  const { server, url } = await listen();
  const subscriptions = attachSubscriptions(server, schema, options);
  const stop = async () => {
    await subscriptions.close();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url, stop };
}

/** A stream of one event that then ends with an error. */
const failing = (error: Error): Source =>
  async function* () {
    yield 1;
    throw error;
  };

async function subscribed(url: string, protocol: string) {
  const client = await ready(url, protocol);
  const type = protocol === MODERN ? 'subscribe' : 'start';
  client.send({ id: 'a', type, payload: { query: 'subscription { tick }' } });
  return client;
}

describe.each([MODERN, LEGACY])('a source that may have missed events, over %s', (protocol) => {
  it.each([{}, { share: () => 'all' }])(
    'attachSubscriptions closes the socket with 1013 after the delivered events (%j)',
    async (options) => {
      const source = failing(Object.assign(new Error('Events may have been missed.'), { closeCode: 1013 }));
      const { url, stop } = await serve(source, options);
      const client = await subscribed(url, protocol);
      expect(await client.closed).toEqual({ code: 1013, reason: 'Events may have been missed.' });
      expect(client.received.at(-1)).toMatchObject({ id: 'a', payload: { data: { tick: 1 } } });
      await stop();
    },
  );

  it.each([undefined, 1000, 3000, 5000, '1013'])(
    'attachSubscriptions ignores the closeCode %p of a source',
    async (closeCode) => {
      const { url, stop } = await serve(failing(Object.assign(new Error('secret'), { closeCode })));
      const client = await subscribed(url, protocol);
      const received = await client.until(({ type }) => type === 'error');
      expect(JSON.stringify(received)).not.toContain('secret');
      await client.close();
      await stop();
    },
  );
});

it('attachSubscriptions closes the socket of a subscriber above maxBufferedBytes with 1013', async () => {
  const events = createPubSub<{ tick: number }>({ maxBufferedBytes: 100 });
  const { url, stop } = await serve(() => {
    const stream = events.subscribe('tick');
    for (let tick = 0; tick < 2000; tick++) void events.publish('tick', tick);
    return stream;
  });
  const client = await subscribed(url, MODERN);
  expect((await client.closed).code).toBe(1013);
  await stop();
  await events.close();
});
