/** @tags once slow */
import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { attachSubscriptions } from '../../middleware/index.ts';
import { createPubSub } from '../../middleware/pubsub.ts';
import { listen, MODERN, ready } from '../live/client.ts';

interface Events {
  text: string;
}

const COUNT = 5000;
const text = (index: number): string => `${index}`.padEnd(300, '.');

describe('a burst of events in one process', () => {
  it.each([
    ['awaited', 'shared'],
    ['awaited', 'private'],
    ['not awaited', 'shared'],
    ['not awaited', 'private'],
  ])('createPubSub delivers 5 000 publishes that are %s to a healthy %s reader', async (how, sharing) => {
    const events = createPubSub<Events>();
    const schema = new GraphQLSchema({
      query: new GraphQLObjectType({ name: 'Query', fields: { one: { type: GraphQLString } } }),
      subscription: new GraphQLObjectType({
        name: 'Subscription',
        fields: {
          text: { type: GraphQLString, subscribe: () => events.subscribe('text'), resolve: (value) => value },
        },
      }),
    });
    const { server, url } = await listen();
    const subscriptions = attachSubscriptions(
      server,
      schema,
      sharing === 'shared' ? { share: () => 'all' } : {},
    );
    const client = await ready(url, MODERN);
    client.send({ id: 'a', type: 'subscribe', payload: { query: 'subscription { text }' } });
    while (subscriptions.stats().operations === 0) await new Promise(setImmediate);
    for (let index = 0; index < COUNT; index++) {
      const published = events.publish('text', text(index));
      if (how === 'awaited') await published;
    }
    await client.until(() => client.received.filter(({ type }) => type === 'next').length >= COUNT);
    const received = client.received.filter(({ type }) => type === 'next');
    expect(received).toHaveLength(COUNT);
    expect(received.at(-1)).toMatchObject({ payload: { data: { text: text(COUNT - 1) } } });
    await client.close();
    await subscriptions.close();
    await new Promise((resolve) => server.close(resolve));
    await events.close();
  });
});

describe('a reader that stops reading', () => {
  it('createPubSub ends a stream that is not read when more than 1024 events are queued', async () => {
    const events = createPubSub<Events>();
    const [slow, quick] = [events.subscribe('text'), events.subscribe('text')];
    for (let index = 0; index < 1100; index++) await events.publish('text', text(index));
    for (let index = 0; index < 500; index++) await quick.next();
    await new Promise((resolve) => setTimeout(resolve, 2500));
    await expect(slow.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED', closeCode: 1013 });
    expect((await quick.next()).value).toBe(text(500));
    await events.close();
  });

  it('createPubSub ends a stream immediately when its queue exceeds maxBufferedBytes', async () => {
    const events = createPubSub<Events>({ maxBufferedBytes: 1000 });
    const stream = events.subscribe('text');
    for (let index = 0; index < 70; index++) await events.publish('text', text(index));
    await expect(stream.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
    await events.close();
  });
});
