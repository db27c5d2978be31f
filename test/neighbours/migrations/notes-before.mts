import express from 'express';
import { createPubSub, createSchema, createYoga } from 'graphql-yoga';

type Note = { text: string; by: string };
const pubsub = createPubSub<{ added: [note: Note] }>();
const notes: Note[] = [];

const schema = createSchema<{ user: string }>({
  typeDefs: `
    scalar File
    type Note { text: String!, by: String! }
    type Query { notes: [Note!]!, broken: String }
    type Mutation { add(text: String!): Note!, attach(file: File!): String! }
    type Subscription { added: Note! }
  `,
  resolvers: {
    Query: {
      notes: () => notes,
      broken() {
        throw new Error('password of the database');
      },
    },
    Mutation: {
      add(_root, { text }: { text: string }, { user }) {
        const note = { text, by: user };
        notes.push(note);
        pubsub.publish('added', note);
        return note;
      },
      attach: async (_root, { file }: { file: File }) => `${file.name} (${file.type}): ${await file.text()}`,
    },
    Subscription: { added: { subscribe: () => pubsub.subscribe('added'), resolve: (note: Note) => note } },
  },
});
const yoga = createYoga({
  schema,
  cors: false,
  logging: false,
  context: ({ request }) => ({ user: request.headers.get('x-user') ?? 'guest' }),
});

const app = express();
app.use(yoga.graphqlEndpoint, yoga as unknown as express.RequestHandler);
app.listen(3000);
