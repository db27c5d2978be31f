/** @tags once */
import { buildSchema, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { graphqlHTTP, type ResolveMany } from '../../middleware/graphql.ts';
import { createServer } from '../../middleware/server.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';

const schema = buildSchema('type Query { hello: String }');
const SECRET = 'a secret of at least 32 bytes for cursors';

/** Compiles only if the type of the value is exactly `T`: `any` and `unknown` do not. */
type Exactly<T, Given> =
  (<X>() => X extends Given ? 1 : 2) extends <X>() => X extends T ? 1 : 2 ? Given : never;
const is = <T>() => ({ as: <Given>(value: Exactly<T, Given>): Given => value });

it('a batch resolver may return null, an error or a promise for each parent', async () => {
  const author: ResolveMany<{ id: string }, { name: string }> = (parents) =>
    parents.map(({ id }) =>
      id === '' ? new Error('No id') : id === '1' ? Promise.resolve({ name: 'Ada' }) : null,
    );
  const query = new GraphQLObjectType({
    name: 'Query',
    fields: { author: { type: GraphQLString, extensions: { resolveMany: author } } },
  });
  const handler = graphqlHTTP(new GraphQLSchema({ query }), { rootValue: { id: '2' } });
  expect(await handler.execute({ query: '{ author }' })).toEqual({ data: { author: null } });
});

it('functions of the options know what caller and context return, without a cast or an annotation', async () => {
  const seen: (string | undefined)[] = [];
  const handler = graphqlHTTP(schema, {
    caller: async ({ headers }) =>
      headers.authorization === undefined ? null : { id: 'ada', email: 'ada@example.com' },
    context: async (_source, { caller }) => ({ email: is<string | undefined>().as(caller?.email) }),
    rootValue: { hello: () => 'Hello' },
    onOperation: ({ context, caller }) => {
      seen.push(is<string | undefined>().as(context.email), is<string | undefined>().as(caller?.email));
    },
    onResult: ({ context, caller }) => {
      seen.push(is<string | undefined>().as(context.email), is<string | undefined>().as(caller?.id));
    },
    formatError: (formatted, _error, { context, caller }) => {
      seen.push(is<string | undefined>().as(context?.email), is<string | undefined>().as(caller?.email));
      return formatted;
    },
    auth: { policies: (names, _source, { context }) => (context?.email === 'root' ? names : []) },
    budget: { limit: 100, key: (_source, context) => is<string | undefined>().as(context.email) },
    clientLimits: {
      newOperations: 100,
      key: (_source, caller) => is<string | undefined>().as(caller?.email),
    },
    responseCache: { key: (_req, context) => context.email ?? null },
    idempotency: { user: (_source, context) => is<string | undefined>().as(context.email) },
    cursors: { key: SECRET, user: (_source, context) => is<string | undefined>().as(context.email) },
    usage: { client: (_source, context) => is<string | undefined>().as(context.email) },
  });
  const context = { email: 'ada@example.com' };
  expect(await handler.execute({ query: '{ hello }', context })).toEqual({ data: { hello: 'Hello' } });
  expect(seen).toEqual(['ada@example.com', undefined, 'ada@example.com', undefined]);
  const server = createServer(handler);
  attachSubscriptions(server, handler, {
    path: '/handler',
    share: ({ email }) => is<string | undefined>().as(email),
  });
  attachSubscriptions(server, schema, {
    path: '/schema',
    context: () => ({ tenant: 'a' }),
    onClose: ({ context }) => void is<string>().as(context.tenant),
    share: ({ tenant }) => is<string>().as(tenant),
  });
});
