// A server whose events are in a file. It sends its port to the parent, and is ended with SIGKILL.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createPubSub, file } from '../../middleware/pubsub.ts';

const [path = ''] = process.argv.slice(2);
const events = createPubSub<{ count: { count: number } }>({
  transport: file(path),
  history: { length: 100_000 },
});
const schema = buildSchema(
  'type Query { none: Int } type Mutation { emit(n: Int!): Int } type Subscription { count: Int! }',
);
Object.assign(schema.getSubscriptionType()?.getFields()['count'] ?? {}, {
  subscribe: () => events.subscribe('count'),
});
Object.assign(schema.getMutationType()?.getFields()['emit'] ?? {}, {
  resolve: async (_: unknown, { n }: { n: number }) => {
    await events.publish('count', { count: n });
    return n;
  },
});
const handler = graphqlHTTP(schema, { cursors: { key: 'a key that all processes have in common' } });
const server = http.createServer(handler).listen(0, '127.0.0.1', () => {
  process.send?.((server.address() as AddressInfo).port);
});
