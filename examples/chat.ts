// Live subscriptions: `npx tsx examples/chat.ts`. Open GraphiQL twice: subscribe in one tab with
// subscription { said { by text } } and speak in the other with mutation { say(by: "Ada", text: "Hello") }
import { attachSubscriptions, graphqlHTTP } from 'espalier';
import { createPubSub } from 'espalier/pubsub';
import express from 'express';
import { buildSchema } from 'graphql';

type Message = { by: string; text: string };

const events = createPubSub<{ said: { said: Message } }>();
const schema = buildSchema(`
  type Message { by: String!, text: String! }
  type Query { hello: String }
  type Mutation { say(by: String!, text: String!): Boolean! }
  type Subscription { said: Message! }
`);
const rootValue = {
  say: (message: Message) => events.publish('said', { said: message }).then(() => true),
  said: () => events.subscribe('said'),
};

const graphql = graphqlHTTP(schema, { rootValue });
const app = express().use('/graphql', graphql);
const server = app.listen(Number(process.env.PORT ?? 3000), () => {
  console.log(`Chat on http://localhost:${Object(server.address()).port}/graphql`);
});
attachSubscriptions(server, graphql, { share: () => 'everybody hears the same' });
