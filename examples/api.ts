// A GraphQL API with the user in its context: `npx tsx examples/api.ts`, then
// curl -g -H 'authorization: Bearer ada' 'localhost:3000/graphql?query={me{name}}'
import { graphqlHTTP } from 'espalier/graphql';
import express from 'express';
import { buildSchema } from 'graphql';

const people = new Map([['ada', { id: 'ada', name: 'Ada Lovelace' }]]); // your own token check
const schema = buildSchema(`
  type Query { me: Person, hello(name: String = "world"): String! }
  type Person { name: String! }
`);
const rootValue = {
  hello: ({ name }: { name: string }) => `Hello ${name}`,
  me: (_args: object, { me }: { me: { name: string } | null | undefined }) => me,
};

const app = express();
const port = Number(process.env.PORT ?? 3000);
app.use(
  '/graphql',
  graphqlHTTP(schema, {
    rootValue,
    caller: ({ headers }) => people.get(headers.authorization?.replace(/^Bearer /, '') ?? '') ?? null,
    context: (_source, { caller }) => ({ me: caller }),
  }),
);
app.listen(port, (error) => {
  if (error) throw error;
  console.log(`GraphiQL on http://localhost:${port}/graphql`);
});
