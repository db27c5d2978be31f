// Live subscriptions: `npx tsx examples/chat.ts`. Open GraphiQL in two tabs. Subscribe in one with
// subscription { said { by text } } and send a message in the other with mutation { say(by: "Ada", text: "Hello") }
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
const port = Number(process.env.PORT ?? 3000);
const server = app.listen(port, (error) => {
  if (error) throw error;
  console.log(`Chat on http://localhost:${port}/graphql`);
});
attachSubscriptions(server, graphql);
