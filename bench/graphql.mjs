// graphqlHTTP compared with other servers: four queries over POST, default options, logging off.
import { runTopic } from './harness.mjs';
import { graphqlServers } from './lib/graphql-servers.mjs';

process.env.NODE_ENV = 'production';

const QUERIES = {
  trivial: '{ hello }',
  'list of 20 × 5': '{ items { id name price stock sold } }',
  'nested 20 × 5 × 3': '{ authors { id books { id title year } } }',
  'large 200 × 10, 480 KB': '{ pages { a b c d e f g h i j } }',
};

/** Properties of plain objects, so that the servers are measured and not the resolvers. */
async function makeSchema() {
  const { buildSchema } = await import('graphql');
  const schema = buildSchema(`
    type Query { hello: String! items: [Item!]! authors: [Author!]! pages: [Page!]! }
    type Item { id: ID! name: String! price: Float! stock: Int! sold: Boolean! }
    type Author { id: ID! books: [Book!]! }
    type Book { id: ID! title: String! year: Int! }
    type Page { a: String b: String c: String d: String e: String f: String g: String h: String i: String j: String }
  `);
  const times = (count, make) => Array.from({ length: count }, (_, index) => make(index));
  const items = times(20, (id) => ({
    id,
    name: `item ${id}`,
    price: id + 0.5,
    stock: id,
    sold: id % 2 === 0,
  }));
  const authors = times(20, (id) => ({
    id,
    books: times(5, (book) => ({ id: `${id}-${book}`, title: `book ${book}`, year: 1900 + book })),
  }));
  const pages = times(200, (id) =>
    Object.fromEntries([...'abcdefghij'].map((name) => [name, `${name}${id} `.padEnd(236, 'lorem ipsum ')])),
  );
  const resolvers = { hello: 'world', items, authors, pages };
  const fields = schema.getQueryType().getFields();
  for (const [name, value] of Object.entries(resolvers)) fields[name].resolve = () => value;
  return schema;
}

const { espalier, espalierOnExpress, mercurius, onExpress, others } = graphqlServers(makeSchema);

/** Without GraphQL: reads the body and sends a prepared text with the headers that espalier sends. */
async function makeFixed() {
  const { graphqlSync } = await import('graphql');
  const schema = await makeSchema();
  const responses = new Map();
  for (const query of Object.values(QUERIES)) {
    responses.set(JSON.stringify({ query }), JSON.stringify(graphqlSync({ schema, source: query })));
  }
  return (req, res) => {
    let body = '';
    req.on('data', (chunk) => {
      body += chunk;
    });
    req.on('end', () => {
      const response = responses.get(body);
      res.writeHead(200, {
        'content-type': 'application/json; charset=utf-8',
        'x-content-type-options': 'nosniff',
        vary: 'Accept',
        'cache-control': 'no-store',
        'content-length': String(Buffer.byteLength(response)),
      });
      res.end(response);
    });
  };
}

export const topic = {
  name: 'graphql',
  title: 'graphqlHTTP',
  about:
    'One POST with application/json per request, the same schema and data everywhere, plain properties as resolvers. ' +
    '"espalier, graphql-js" executes with graphql-js, as all others do except mercurius with its JIT. "espalier" uses the ' +
    'compiled engine. A fixed response is a handler without GraphQL: it reads the body, finds the prepared response for it ' +
    'and sends it with the headers that espalier sends.',
  packages: ['express', 'graphql', 'graphql-http', 'graphql-yoga', '@apollo/server', 'fastify', 'mercurius'],
  ratios: ['graphql-http (Express)', 'Yoga (Express)', 'Apollo Server (Express)', 'mercurius'],
  contestants: {
    'espalier, graphql-js (Express)': espalierOnExpress({ engine: 'graphql-js' }),
    'espalier, graphql-js (node:http)': espalier({ engine: 'graphql-js' }),
    'espalier (Express)': espalierOnExpress({}),
    'espalier (node:http)': espalier({}),
    'a fixed response (Express)': () => onExpress(async (app) => app.use('/graphql', await makeFixed())),
    'a fixed response (node:http)': makeFixed,
    ...others,
    mercurius: mercurius({}),
    'mercurius, JIT': mercurius({ jit: 1 }),
  },
  loads: Object.entries(QUERIES).map(([name, query]) => ({
    name,
    requests: [
      {
        method: 'POST',
        path: '/graphql',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query }),
      },
    ],
    expect: { status: 200 },
    check: ({ body }) => {
      const { data, errors } = JSON.parse(body.toString());
      if (errors !== undefined || Object.keys(data).length !== 1) throw new Error('the response is wrong');
    },
    ...(name.startsWith('large') ? { count: 2000 } : {}),
  })),
};

await runTopic(import.meta.url, topic);
