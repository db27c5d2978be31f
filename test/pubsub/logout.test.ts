/** @tags once */
import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import {
  attachSubscriptions,
  type SubscriptionConnection,
  type Subscriptions,
} from '../../middleware/index.ts';
import { createPubSub, type PubSub } from '../../middleware/pubsub.ts';
import { atEnd } from '../kit.ts';
import { listen, MODERN, ready } from '../live/client.ts';
import { type RedisServer, startRedis } from '../redis.ts';

type User = SubscriptionConnection<{ userId: string }>;

interface Events {
  logout: string;
}

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await redis.kill();
});

const schema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: 'Query', fields: { one: { type: GraphQLString } } }),
});

/** As in docs/scaling.md. */
async function disconnectOnLogout(sockets: Subscriptions, events: PubSub<Events>): Promise<void> {
  for await (const userId of events.subscribe('logout')) {
    sockets.disconnect(({ context }: User) => context.userId === userId, 4403, 'Logged out');
  }
}

/** One process: a server, its sockets and its pubsub. */
async function start(): Promise<{ url: string; events: PubSub<Events> }> {
  const { server, url } = await listen();
  const sockets = attachSubscriptions(server, schema, {
    onConnect: ({ context, connectionParams }) => {
      Object.assign(context as object, { userId: connectionParams['userId'] });
    },
  });
  const events = createPubSub<Events>({ transport: redis.url });
  void disconnectOnLogout(sockets, events);
  await events.ready('logout');
  atEnd(
    () => new Promise((resolve) => server.close(resolve)),
    () => sockets.close(),
    () => events.close(),
  );
  return { url, events };
}

it('a logout that is published in one process closes the sockets of the user in all processes', async () => {
  const [here, there] = [await start(), await start()];
  const connect = (url: string, userId: string) => ready(url, MODERN, { userId });
  const ada = await Promise.all([connect(here.url, 'ada'), connect(there.url, 'ada')]);
  const bob = await connect(there.url, 'bob');
  await here.events.publish('logout', 'ada');
  for (const client of ada) expect(await client.closed).toEqual({ code: 4403, reason: 'Logged out' });
  bob.send({ type: 'ping' });
  await bob.until(({ type }) => type === 'pong');
  await bob.close();
});
