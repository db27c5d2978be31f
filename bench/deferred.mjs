// @defer with graphql 17: the compiled engine compared with graphql-js behind the same handler.
// BENCH_GRAPHQL=17 node bench/deferred.mjs, with Node 22.15 or newer, or with BENCH_NODE=/path/to/node of such a version.
import assert from 'node:assert/strict';
import { runTopic } from './harness.mjs';

process.env.NODE_ENV = 'production';

const MULTIPART = 'multipart/mixed;incrementalSpec=v0.2, application/json';
const REST = '... @defer { summary orders { id total items { name price } } }';
const QUERIES = {
  'one deferred part of 10 × 3 objects': `{ user { id name ${REST} } }`,
  'a deferred part in each of 20 list items': '{ users { id name ... @defer { summary } } }',
  'the same document in one response': `{ user { id name ${REST} } }`,
  'promises, one deferred part': '{ later { id name ... @defer { summary orders { id total } } } }',
};
const ONE_RESPONSE = 'the same document in one response';

const times = (count, make) => Array.from({ length: count }, (_, index) => make(index));
const makeUser = (id) => ({
  id: `u${id}`,
  name: `User ${id}`,
  summary: `summary of user ${id}`,
  orders: times(10, (order) => ({
    id: `${id}-${order}`,
    total: order * 3.5,
    items: times(3, (item) => ({ name: `item ${item}`, price: item + 0.25 })),
  })),
});
const USERS = times(20, makeUser);

/** The schema declares the directives, so both engines deliver deferred parts. */
async function makeSchema() {
  const { buildSchema } = await import('graphql');
  const fields = '{ id: ID! name: String summary: String orders: [Order!]! }';
  const schema = buildSchema(`
    directive @defer(if: Boolean! = true, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT
    type Query { user: User users: [User!]! later: Later }
    type User ${fields} type Later ${fields}
    type Order { id: ID! total: Float items: [Item!]! }
    type Item { name: String price: Float }
  `);
  const resolve = (type, field, resolver) => {
    schema.getType(type).getFields()[field].resolve = resolver;
  };
  resolve('Query', 'user', () => USERS[0]);
  resolve('Query', 'users', () => USERS);
  resolve('Query', 'later', async () => USERS[0]);
  for (const name of ['name', 'summary', 'orders']) resolve('Later', name, async (user) => user[name]);
  return schema;
}

const espalier = (engine) => async () => {
  const { graphqlHTTP } = await import('espalier');
  return graphqlHTTP(await makeSchema(), { engine, graphiql: false, onError: false });
};

/** The parts of a response, or the response as its only part. */
function checkPayloads(name, { body }) {
  const text = body.toString();
  const payloads = text.startsWith('{')
    ? [JSON.parse(text)]
    : text.split('\r\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
  assert.equal(payloads.length, name === ONE_RESPONSE ? 1 : 2);
  assert.ok(payloads.every(({ errors }) => errors === undefined));
  assert.ok(text.includes('summary of user 0'));
}

export const topic = {
  name: 'deferred',
  title: '@defer with graphql 17',
  about:
    'A handler whose schema declares `@defer`, over multipart. A request ends when its last payload has arrived. ' +
    '"espalier, graphql-js" has the option `engine: \'graphql-js\'`.',
  packages: ['graphql'],
  ratios: ['espalier, graphql-js'],
  contestants: {
    espalier: espalier('compiled'),
    'espalier, graphql-js': espalier('graphql-js'),
  },
  loads: Object.entries(QUERIES).map(([name, query]) => ({
    name,
    requests: [
      {
        method: 'POST',
        path: '/graphql',
        headers: {
          'content-type': 'application/json',
          accept: name === ONE_RESPONSE ? 'application/json' : MULTIPART,
        },
        body: JSON.stringify({ query }),
      },
    ],
    check: (response) => checkPayloads(name, response),
    count: 8000,
  })),
};

if (process.env.BENCH_GRAPHQL !== '17') {
  throw new Error('graphql 16 has no incremental delivery; set BENCH_GRAPHQL=17, and BENCH_NODE on Node 20');
}
await runTopic(import.meta.url, topic);
