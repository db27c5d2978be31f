/** @tags once slow */
import { buildSchema } from 'graphql';
import { createPubSub } from '../../middleware/pubsub.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { SubscriptionOptions } from '../../types/subscriptions.ts';
import { LEGACY, listen, MODERN, ready } from './client.ts';
import { until } from './serve.ts';

const COUNT = 5000;
const TEXT = 'x'.repeat(300);

describe.each([
  [MODERN, 'subscribe'],
  [LEGACY, 'start'],
])('a burst of 5000 events of 300 bytes over %s', (protocol, type) => {
  it.each([
    ['shared', 'awaited', { share: () => 'all' }],
    ['shared', 'not awaited', { share: () => 'all' }],
    ['private', 'awaited', {}],
    ['private', 'not awaited', {}],
  ])(
    'a burst of events reaches every client that reads: %s, %s',
    async (_, publishes, options) => {
      const pubsub = createPubSub<{ tick: { tick: string } }>();
      const schema = buildSchema('type Query { a: Int } type Subscription { tick: String }');
      const field = schema.getSubscriptionType()?.getFields()['tick'];
      if (field !== undefined) field.subscribe = () => pubsub.subscribe('tick');
      const { server, url } = await listen();
      const subscriptions = attachSubscriptions(server, schema, {
        ping: false,
        ...(options as SubscriptionOptions),
      });
      const clients = await Promise.all([1, 2, 3].map(() => ready(url, protocol)));
      for (const client of clients)
        client.send({ id: '1', type, payload: { query: 'subscription { tick }' } });
      await until(() => subscriptions.stats().operations === 3 && subscriptions.stats().sources > 0);
      for (let i = 0; i < COUNT; i++) {
        const published = pubsub.publish('tick', { tick: `${i} ${TEXT}` });
        if (publishes === 'awaited') await published;
      }
      for (const client of clients) {
        await until(() => client.received.length >= COUNT + 1 || client.websocket.readyState !== 1);
        const numbers = client.received.slice(1).map(({ payload }) => {
          const { data } = payload as { data: { tick: string } };
          return Number.parseInt(data.tick, 10);
        });
        expect(numbers).toEqual(Array.from({ length: COUNT }, (__, i) => i));
        await client.close();
      }
      await subscriptions.close();
      await pubsub.close();
      server.close();
    },
    20_000,
  );
});
