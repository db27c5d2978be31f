// The compiled engine inside graphqlHTTP with all checks, compared with mercurius with its JIT and servers on Express.
import assert from 'node:assert/strict';
import { runTopic } from './harness.mjs';
import { graphqlServers } from './lib/graphql-servers.mjs';

process.env.NODE_ENV = 'production';

const QUERIES = {
  trivial: 'query ($name: String!) { hello(name: $name) }',
  'list of 20 × 5': '{ items { id name price stock sold } }',
  'nested 20 × 5 × 3': '{ authors { id name books { id title pages { number text } } } }',
  'large 200 × 10, 480 KB': '{ pages { a b c d e f g h i j } }',
  'promises, 20 × 5': '{ promised { id name price stock sold } }',
  '5 % of fields fail': '{ failing { id name price stock sold } }',
};
const ON_EXPRESS = ['trivial', 'list of 20 × 5', 'nested 20 × 5 × 3', 'large 200 × 10, 480 KB'];
const HUNDREDFOLD = 'large 200 × 10, 480 KB';

const times = (count, make) => Array.from({ length: count }, (_, index) => make(index));

const makeItem = (id) => ({
  id: `i${id}`,
  name: `item number ${id}`,
  price: id + 0.5,
  stock: id * 7,
  sold: id % 2 === 0,
});

const DATA = {
  items: times(20, makeItem),
  authors: times(20, (id) => ({
    id: `a${id}`,
    name: `Author ${id}`,
    books: times(5, (book) => ({
      id: `${id}-${book}`,
      title: `Book "${book}" of ${id}`,
      pages: times(3, (number) => ({ number, text: `page ${number} of book ${book}` })),
    })),
  })),
  pages: times(200, (id) =>
    Object.fromEntries([...'abcdefghij'].map((name) => [name, `${name}${id} `.padEnd(236, 'lorem ipsum ')])),
  ),
};

/** Every field that is not a plain property has a resolver, because the JIT does not support methods. */
async function makeSchema() {
  const { buildSchema } = await import('graphql');
  const item = '{ id: ID! name: String price: Float stock: Int sold: Boolean }';
  const schema = buildSchema(`
    type Query {
      hello(name: String!): String! items: [Item!]! authors: [Author!]! pages: [Page!]!
      promised: [Promised!]! failing: [Failing!]!
    }
    type Item ${item} type Promised ${item} type Failing ${item}
    type Author { id: ID! name: String books: [Book!]! }
    type Book { id: ID! title: String pages: [Leaf!]! }
    type Leaf { number: Int! text: String }
    type Page { a: String b: String c: String d: String e: String f: String g: String h: String i: String j: String }
  `);
  const resolve = (type, field, resolver) => {
    schema.getType(type).getFields()[field].resolve = resolver;
  };
  resolve('Query', 'hello', (_source, { name }) => `hello ${name}`);
  for (const field of ['items', 'authors', 'pages']) resolve('Query', field, () => DATA[field]);
  for (const field of ['promised', 'failing']) resolve('Query', field, () => DATA.items);
  for (const field of ['name', 'price', 'stock', 'sold'])
    resolve('Promised', field, async (row) => row[field]);
  resolve('Failing', 'name', (row) => {
    if (row.stock % 28 === 0) throw new Error('no name');
    return row.name;
  });
  return schema;
}

const { espalier, espalierOnExpress, mercurius, onExpress, others } = graphqlServers(makeSchema);

// The peers do not log the errors of resolvers either.
const SILENT = { onError: false };

/** A handler that sends a fixed Buffer: the minimum cost of a request, on node:http and on Express. */
const fixedBuffer = () => {
  const body = Buffer.from(JSON.stringify({ data: { pages: DATA.pages } }));
  return (req, res) => {
    req.resume();
    req.once('end', () => {
      const length = String(body.length);
      res.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': length });
      res.end(body);
    });
  };
};

const failing = DATA.items.map((item) => (item.stock % 28 === 0 ? { ...item, name: null } : item));
const EXPECTED = [
  { hello: 'hello world' },
  { items: DATA.items },
  { authors: DATA.authors },
  { pages: DATA.pages },
  { promised: DATA.items },
  { failing },
];

/** Messages of plain errors differ, because some servers mask them. Their locations must be equal. */
function checkResponse(wanted, body) {
  const { data, errors = [] } = JSON.parse(body.toString());
  assert.deepEqual(data, wanted);
  const paths = (wanted.failing ?? []).flatMap(({ name }, index) =>
    name === null ? [`failing.${index}.name`] : [],
  );
  assert.deepEqual(errors.map(({ path }) => path.join('.')).sort(), paths.sort());
}

const BARE = ['espalier (node:http)', 'mercurius, JIT', 'espalier, graphql-js (node:http)'];
const FLOORS = ['a fixed Buffer (node:http)', 'a fixed Buffer (Express)'];
const HOSTED = ['espalier (Express)', 'graphql-http (Express)', 'Yoga (Express)', 'Apollo Server (Express)'];

export const topic = {
  name: 'engine',
  title: 'The compiled engine',
  about:
    'One POST with application/json per request. Fields that are not plain properties have explicit resolvers. ' +
    'Every response is compared with the result of graphql-js before the measurement.',
  packages: [
    'express',
    'graphql',
    'graphql-http',
    'graphql-yoga',
    '@apollo/server',
    'fastify',
    'mercurius',
    'graphql-jit',
  ],
  ratios: ['mercurius, JIT', 'graphql-http (Express)', 'Yoga (Express)', 'Apollo Server (Express)'],
  contestants: {
    'espalier (node:http)': espalier({ ...SILENT, graphiql: false }),
    'a fixed Buffer (node:http)': async () => fixedBuffer(),
    'a fixed Buffer (Express)': () =>
      onExpress((app) => {
        app.all('/graphql', fixedBuffer());
      }),
    'espalier, graphql-js (node:http)': espalier({ ...SILENT, graphiql: false, engine: 'graphql-js' }),
    'mercurius, JIT': mercurius({ jit: 1 }),
    'espalier (Express)': espalierOnExpress(SILENT),
    ...others,
  },
  loads: Object.entries(QUERIES).map(([name, query], index) => {
    const variables = name === 'trivial' ? { name: 'world' } : undefined;
    const request = {
      method: 'POST',
      path: '/graphql',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables }),
    };
    return {
      name,
      // The first responses are checked: the JIT compiles after the first one.
      requests: [request, request, request, request],
      contestants: [
        ...BARE,
        ...(ON_EXPRESS.includes(name) ? HOSTED : []),
        ...(name === HUNDREDFOLD ? FLOORS : []),
      ],
      check: ({ body }) => checkResponse(EXPECTED[index], body),
      columns: name === HUNDREDFOLD ? ['peakRssMiB'] : [],
      ...(name === HUNDREDFOLD ? { count: 2000, warmup: 1500 } : {}),
    };
  }),
};

await runTopic(import.meta.url, topic);
