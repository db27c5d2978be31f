// One of several processes that share their events: `emit` publishes a run of numbers, `tick` streams them. With
// CURSOR_KEY clients can resume.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { attachSubscriptions, createServer, graphqlHTTP } from 'espalier';
import { createPubSub } from 'espalier/pubsub';
import express from 'express';
import { buildSchema, type GraphQLField } from 'graphql';

const key = process.env.CURSOR_KEY;
const events = createPubSub<{ tick: number }>({
  transport: process.env.REDIS_URL,
  onError: () => undefined,
  history: key === undefined ? undefined : { length: 10_000 },
});
const schema = buildSchema(`
  type Query { ready: Boolean! }
  type Mutation { emit(from: Int!, to: Int!): Boolean! }
  type Subscription { tick: Int! }
`);
const tick = schema.getSubscriptionType()?.getFields().tick as GraphQLField<unknown, unknown>;
tick.subscribe = () => events.subscribe('tick');
tick.resolve = (event) => event;
const rootValue = {
  // Events after this response reach all earlier subscribers.
  ready: () => events.ready('tick').then(() => true),
  async emit({ from, to }: { from: number; to: number }) {
    for (let tick = from; tick < to; tick++) await events.publish('tick', tick);
    return true;
  },
};

const app = express();
const graphql = graphqlHTTP(schema, { rootValue, cursors: key === undefined ? undefined : { key } });
app.use('/graphql', graphql);
const server = createServer(app);
// No pings: on a busy machine a test's sockets may be too slow to reply.
const sockets = attachSubscriptions(server, graphql, { share: () => 'all', ping: false });
server.listen(Number(process.env.PORT), () =>
  process.stdout.write(`http://localhost:${(server.address() as AddressInfo).port}\n`),
);

process.once('SIGTERM', async () => {
  const closed = once(server, 'close');
  server.close();
  await sockets.close({ drain: 300 });
  await closed;
  await events.close();
});
