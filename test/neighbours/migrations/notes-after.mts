import { makeExecutableSchema } from '@graphql-tools/schema';
import { attachSubscriptions, graphqlHTTP, Upload } from 'espalier';
import { createPubSub } from 'espalier/pubsub';
import express from 'express';
import { GraphQLScalarType } from 'graphql';

type Note = { text: string; by: string };
const pubsub = createPubSub<{ added: Note }>();
const notes: Note[] = [];

const schema = makeExecutableSchema<{ user: string }>({
  typeDefs: `
    scalar File
    type Note { text: String!, by: String! }
    type Query { notes: [Note!]!, broken: String }
    type Mutation { add(text: String!): Note!, attach(file: File!): String! }
    type Subscription { added: Note! }
  `,
  resolvers: {
    File: new GraphQLScalarType({ ...Upload.toConfig(), name: 'File' }),
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
      attach: async (_root, { file }: { file: Upload }) =>
        `${file.filename} (${file.mimetype}): ${await file.text()}`,
    },
    Subscription: { added: { subscribe: () => pubsub.subscribe('added'), resolve: (note: Note) => note } },
  },
});
const handler = graphqlHTTP(schema, {
  onError: false,
  context: ({ headers }) => ({ user: headers['x-user'] ?? 'guest' }),
});

const app = express();
app.use('/graphql', handler);
attachSubscriptions(app.listen(3000), handler);
