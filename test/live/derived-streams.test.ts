/** @tags node graphql */
import { buildSchema } from 'graphql';
import { createPubSub, filter, map, merge } from '../../middleware/pubsub.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { LEGACY, listen, MODERN, type RawClient, ready } from './client.ts';
import { NOTHING, until } from './serve.ts';

const pubsub = createPubSub<{ idle: number }>();
const idle = (): AsyncIterableIterator<number> => pubsub.subscribe('idle');
const even = (value: number): boolean => value % 2 === 0;
const derived: [string, () => AsyncIterable<unknown>][] = [
  ['filter', () => filter(idle(), even)],
  ['map', () => map(idle(), (value) => value)],
  ['merge', () => merge(idle(), idle())],
  [
    'filter, map and merge',
    () =>
      filter(
        map(merge(idle(), idle()), (value) => value),
        even,
      ),
  ],
];
const ways: [string, (client: RawClient) => void][] = [
  [
    'cancels',
    (client) => client.send({ id: '1', type: client.websocket.protocol === MODERN ? 'complete' : 'stop' }),
  ],
  ['closes its socket', (client) => client.websocket.close()],
  ['disconnects', (client) => client.websocket.terminate()],
];
const cases = [MODERN, LEGACY].flatMap((protocol) =>
  derived.flatMap(([name, create]) =>
    ways.map(([way, leave]) => [name, way, protocol, create, leave] as const),
  ),
);

afterAll(() => pubsub.close());

it.each(cases)(
  'the stream of %s in an idle topic is released when the client %s over %s',
  async (_, __, protocol, create, leave) => {
    const schema = buildSchema('type Query { a: Int } type Subscription { tick: Int }');
    const field = schema.getSubscriptionType()?.getFields()['tick'];
    if (field !== undefined) field.subscribe = create;
    const { server, url } = await listen();
    const subscriptions = attachSubscriptions(server, schema);
    const client = await ready(url, protocol);
    const type = protocol === MODERN ? 'subscribe' : 'start';
    client.send({ id: '1', type, payload: { query: 'subscription { tick }' } });
    await until(() => subscriptions.stats().sources === 1);
    leave(client);
    await until(() => subscriptions.stats().operations === 0 && subscriptions.stats().unreleased === 0);
    expect(subscriptions.stats()).toMatchObject({ ...NOTHING, connections: expect.any(Number) });
    client.websocket.terminate();
    await subscriptions.close();
    server.close();
  },
);
