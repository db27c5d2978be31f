/** @tags node graphql */
import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { SubscriptionOptions } from '../../types/subscriptions.ts';
import { listen, ready } from './client.ts';

class Loader {
  readonly #names = ['ada'];
  load = () => this.#names[0];
}
interface Context {
  readonly user: { readonly name: string };
  readonly loaders: { readonly names: Loader };
  readonly tenant: string;
}
type Read = (context: Context) => unknown;

const { NODE_ENV } = process.env;
afterEach(() => {
  process.env['NODE_ENV'] = NODE_ENV;
  jest.restoreAllMocks();
});

const plainContext = () => ({ user: { name: 'ada' }, loaders: { names: new Loader() }, tenant: 'acme' });

/** Executes one event of a shared subscription, and returns its result and the lines of the console. */
async function run(read: Read, options: SubscriptionOptions, context: () => unknown = plainContext) {
  const warned = jest.spyOn(console, 'warn').mockImplementation();
  const news = {
    type: GraphQLString,
    async *subscribe() {
      yield 1;
    },
    resolve: (_source: unknown, _args: unknown, value: Context) => read(value),
  };
  const schema = new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { hello: { type: GraphQLString } } }),
    subscription: new GraphQLObjectType({ name: 'Subscription', fields: { news } }),
  });
  const handler = graphqlHTTP(schema, { context });
  const { server, url } = await listen(handler);
  const subscriptions = attachSubscriptions(server, handler, options);
  const client = await ready(url);
  client.send({ id: '1', type: 'subscribe', payload: { query: 'subscription { news }' } });
  const messages = await client.until(({ type }) => type !== 'next');
  await subscriptions.close();
  return { messages, lines: warned.mock.calls.map(([line]) => String(line)) };
}

const result = (news: string) => ({ type: 'next', payload: { data: { news } } });
const byTenant: SubscriptionOptions = { share: (context) => (context as Context).tenant };
const everyone: SubscriptionOptions = { share: () => 'everyone' };

it.each<[string, Read, SubscriptionOptions, string]>([
  ['a member that is in the key', ({ tenant }) => tenant, byTenant, 'acme'],
  ['loaders', ({ loaders }) => loaders.names.load(), everyone, 'ada'],
  ['a member of a private subscription', ({ user }) => user.name, { share: () => undefined }, 'ada'],
])('no notice: %s', async (_, read, options, value) => {
  const { messages, lines } = await run(read, options);
  expect(messages[0]).toMatchObject(result(value));
  expect(lines).toEqual([]);
});

it('no notice in production', async () => {
  process.env['NODE_ENV'] = 'production';
  const { messages, lines } = await run(({ user }) => user.name, everyone);
  expect(messages[0]).toMatchObject(result('ada'));
  expect(lines.filter((line) => line.includes('shared subscription'))).toEqual([]);
});

it.each<[string, SubscriptionOptions, readonly unknown[]]>([
  [
    'says once',
    { ...byTenant, contextPer: 'event' },
    [expect.stringMatching(/has read "user" .* option "share"/)],
  ],
  ['does not say again', everyone, []],
])(
  'the console %s that a shared subscription reads a member that is not in the key',
  async (_, options, expected) => {
    const { messages, lines } = await run(({ user }) => user.name, options);
    expect(messages[0]).toMatchObject(result('ada'));
    expect(lines).toEqual(expected);
  },
);
