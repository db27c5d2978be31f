import { graphqlHTTP } from 'espalier';
import express from 'express';
import { buildSchema, GraphQLError } from 'graphql';

const schema = buildSchema(`
  type Team { name: String!, size: Int }
  type Query { me: String, team(name: String!): Team, denied: String, broken: String }
  type Mutation { rename(to: String!): String }
`);
const rootValue = {
  me: (_args: object, { user }: { user?: string }) => user,
  team: ({ name }: { name: string }) => (name === 'core' ? { name, size: () => 3 } : null),
  denied() {
    throw new GraphQLError('Not for you', { extensions: { code: 'FORBIDDEN' } });
  },
  broken() {
    throw new Error('password of the database');
  },
  rename: ({ to }: { to: string }) => to,
};

const app = express();
app.use(
  '/graphql',
  graphqlHTTP(schema, {
    rootValue,
    context: (req) => ({ user: req.headers['x-user'] }),
    formatError: ({ message, path }, { extensions }) => ({
      message,
      ...(path && { path }),
      code: extensions.code ?? 'NONE',
    }),
    graphiql: true,
  }),
);
app.listen(3000);
