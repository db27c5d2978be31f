// The response cache: hits next to fixed buffers and the response caches of Yoga and Apollo Server; the cost of misses.
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import { runTopic } from './harness.mjs';

process.env.NODE_ENV = 'production';

const HINTS = `
  enum CacheControlScope { PUBLIC PRIVATE }
  directive @cacheControl(maxAge: Int, scope: CacheControlScope, inheritMaxAge: Boolean) on FIELD_DEFINITION | OBJECT
  directive @cacheTag(format: String!) repeatable on FIELD_DEFINITION | OBJECT
`;
const QUERY = 'query Items($from: Int) { items(from: $from) { id name price stock sold } }';
const SIZES = { small: 20, large: 2000 };

/** Full after a few requests: then a result is stored when it is requested for the second time. */
const FULL = { responseCache: { maxBytes: 4 * 1024 * 1024 } };
/** Never full. */
const LARGE = { responseCache: { maxBytes: 1024 * 1024 * 1024 } };

const itemsFrom = (from, count) =>
  Array.from({ length: count }, (_, index) => ({
    id: from + index,
    name: `item ${from + index}`,
    price: index + 0.5,
    stock: index,
    sold: index % 2 === 0,
  }));

async function makeSchema(count) {
  const { buildSchema } = await import('graphql');
  const schema = buildSchema(`
    ${HINTS}
    type Query { items(from: Int): [Item!]! @cacheControl(maxAge: 600) @cacheTag(format: "items") }
    type Item { id: ID! name: String! price: Float! stock: Int! sold: Boolean! }
  `);
  const first = itemsFrom(0, count);
  // Like a database: the result arrives in a later turn of the event loop.
  schema.getQueryType().getFields().items.resolve = (_source, { from }) =>
    new Promise((resolve) => setImmediate(resolve, from ? itemsFrom(from, count) : first));
  return schema;
}

const pathOf = (from) =>
  `/graphql?query=${encodeURIComponent(QUERY)}&variables=${encodeURIComponent(JSON.stringify({ from }))}`;
const HEADERS = { accept: 'application/json', 'apollo-require-preflight': '1' };

async function bodyOf(count) {
  const { graphql } = await import('graphql');
  const source = '{ items(from: 0) { id name price stock sold } }';
  return Buffer.from(JSON.stringify(await graphql({ schema: await makeSchema(count), source })));
}

async function fixed(count) {
  const body = await bodyOf(count);
  return (_req, res) => res.end(body);
}

async function fixedBrotli(count) {
  const body = brotliCompressSync(await bodyOf(count));
  return (_req, res) => res.setHeader('content-encoding', 'br').end(body);
}

/** With the headers of a result: on Node 24 under Express they take a tenth of the time. */
async function fixedResult(count) {
  const body = brotliCompressSync(await bodyOf(count));
  return (_req, res) => {
    res.writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'x-content-type-options': 'nosniff',
      vary: 'Accept, Accept-Encoding',
      'cache-control': 'no-store',
      'accept-query': 'application/json',
      'content-encoding': 'br',
      'content-length': String(body.length),
    });
    res.end(body);
  };
}

async function onExpress(handler) {
  const { default: express } = await import('express');
  return express().use('/graphql', handler);
}

async function espalier(count, options) {
  const { graphqlHTTP } = await import('espalier');
  return graphqlHTTP(await makeSchema(count), { graphiql: false, ...options });
}

/** The handler for paths of both loads, in a server of `createServer`. */
async function inServer(options) {
  const { createServer } = await import('espalier');
  const [small, large] = [await espalier(SIZES.small, options), await espalier(SIZES.large, options)];
  return createServer((req, res) => (req.headers['x-size'] === 'large' ? large : small)(req, res));
}

async function bothSizes(create) {
  const [small, large] = [await create(SIZES.small), await create(SIZES.large)];
  return (req, res, next) => (req.headers['x-size'] === 'large' ? large : small)(req, res, next);
}

const contestants = {
  'a fixed Buffer (node:http)': () => bothSizes(fixed),
  'espalier, hit (createServer)': () => inServer({ responseCache: true }),
  'espalier, hit with headers (createServer)': () => inServer({ responseCache: true, httpCache: true }),
  'espalier, no cache (createServer)': () => inServer({}),
  'a fixed Buffer (Express)': async () => onExpress(await bothSizes(fixed)),
  'espalier, hit (Express)': async () =>
    onExpress(await bothSizes((count) => espalier(count, { responseCache: true }))),
  'Yoga, hit (Express)': async () => {
    const [{ createYoga }, { useResponseCache }] = await Promise.all([
      import('graphql-yoga'),
      import('@graphql-yoga/plugin-response-cache'),
    ]);
    const create = async (count) =>
      createYoga({
        schema: await makeSchema(count),
        logging: false,
        graphiql: false,
        plugins: [useResponseCache({ session: () => null, ttl: 600_000 })],
      });
    return onExpress(await bothSizes(create));
  },
  'Apollo Server, hit (Express)': async () => {
    const [{ ApolloServer }, { expressMiddleware }, { default: plugin }, { default: express }] =
      await Promise.all([
        import('@apollo/server'),
        import('@as-integrations/express5'),
        import('@apollo/server-plugin-response-cache'),
        import('express'),
      ]);
    const create = async (count) => {
      const server = new ApolloServer({
        schema: await makeSchema(count),
        plugins: [plugin.default?.() ?? plugin()],
      });
      await server.start();
      return expressMiddleware(server);
    };
    const both = await bothSizes(create);
    return express().use('/graphql', express.json(), both);
  },
  'espalier, no cache (Express)': async () => onExpress(await bothSizes((count) => espalier(count, {}))),
  'espalier, miss (createServer)': () => inServer(FULL),
  'espalier, miss (Express)': async () => onExpress(await bothSizes((count) => espalier(count, FULL))),
  'espalier, miss, all stored (createServer)': () => inServer(LARGE),
  'espalier, miss, all stored (Express)': async () =>
    onExpress(await bothSizes((count) => espalier(count, LARGE))),
  'espalier, headers (createServer)': () => inServer({ httpCache: true }),
  'espalier, miss with headers (createServer)': () => inServer({ ...FULL, httpCache: true }),
  'espalier, miss with headers, all stored (createServer)': () => inServer({ ...LARGE, httpCache: true }),
};

/** Hits of a result that is stored compressed. */
const compressed = {
  'a fixed Buffer, brotli (node:http)': () => bothSizes(fixedBrotli),
  'the same with the headers of a result (node:http)': () => bothSizes(fixedResult),
  'espalier, hit, brotli (createServer)': () => inServer({ responseCache: true, compress: true }),
  'espalier, hit with headers, brotli (createServer)': () =>
    inServer({ responseCache: true, httpCache: true, compress: true }),
  'a fixed Buffer, brotli (Express)': async () => onExpress(await bothSizes(fixedBrotli)),
  'the same with the headers of a result (Express)': async () => onExpress(await bothSizes(fixedResult)),
  'espalier, hit, brotli (Express)': async () =>
    onExpress(await bothSizes((count) => espalier(count, { responseCache: true, compress: true }))),
};
const BROTLI = { ...HEADERS, 'accept-encoding': 'br' };
const BROTLI_RATIOS = ['a fixed Buffer, brotli (node:http)', 'a fixed Buffer, brotli (Express)'];

const isMiss = (name) => /miss|no cache|espalier, headers/.test(name);
const hits = Object.keys(contestants).filter((name) => !isMiss(name));
const misses = Object.keys(contestants).filter(isMiss);

function checkItems(count, coding) {
  return ({ headers, body }, contestant) => {
    if (headers['content-encoding'] !== coding) throw new Error(`${contestant}: the coding is not ${coding}`);
    const { data } = JSON.parse(coding === 'br' ? brotliDecompressSync(body) : body);
    if (data.items.length !== count) throw new Error(`${contestant} sent ${data.items.length} items`);
  };
}

export const topic = {
  name: 'caching',
  title: 'The response cache',
  about:
    'Requests for one query, with GET unless the load says POST. A hit sends a stored result; "a fixed Buffer" is a ' +
    'handler that ends a prepared buffer, sets no header but the coding and does not read the body. Yoga and Apollo Server use ' +
    'the plugins of their projects. A miss executes the query with variables that no request had before, while ' +
    'the cache is full, or has space for all results.',
  packages: [
    'express',
    'graphql',
    'graphql-yoga',
    '@graphql-yoga/plugin-response-cache',
    '@apollo/server',
    '@apollo/server-plugin-response-cache',
  ],
  ratios: ['a fixed Buffer (node:http)', 'a fixed Buffer (Express)'],
  contestants: { ...contestants, ...compressed },
  loads: [
    {
      name: 'hit, 20 × 5',
      requests: [{ path: pathOf(0), headers: HEADERS }],
      check: checkItems(SIZES.small),
      contestants: hits,
    },
    {
      name: 'hit by POST, 20 × 5',
      requests: [
        {
          method: 'POST',
          path: '/graphql',
          headers: { ...HEADERS, 'content-type': 'application/json' },
          body: JSON.stringify({ query: QUERY, variables: { from: 0 } }),
        },
      ],
      check: checkItems(SIZES.small),
      contestants: [
        'a fixed Buffer (node:http)',
        'espalier, hit (createServer)',
        'a fixed Buffer (Express)',
        'espalier, hit (Express)',
      ],
    },
    {
      name: 'hit, 2000 × 5, 140 KB',
      requests: [{ path: pathOf(0), headers: { ...HEADERS, 'x-size': 'large' } }],
      check: checkItems(SIZES.large),
      contestants: hits,
      count: 8000,
    },
    {
      name: 'hit, brotli, 20 × 5',
      requests: [{ path: pathOf(0), headers: BROTLI }],
      check: checkItems(SIZES.small, 'br'),
      contestants: Object.keys(compressed),
      ratios: BROTLI_RATIOS,
    },
    {
      name: 'hit, brotli, 2000 × 5',
      requests: [{ path: pathOf(0), headers: { ...BROTLI, 'x-size': 'large' } }],
      check: checkItems(SIZES.large, 'br'),
      contestants: Object.keys(compressed),
      ratios: BROTLI_RATIOS,
    },
    {
      name: 'miss, 20 × 5',
      requests: (index) => ({ path: pathOf(index + 1), headers: HEADERS }),
      // More than the rounds send, so that each request is new.
      distinct: 300_000,
      check: checkItems(SIZES.small),
      contestants: misses,
      ratios: ['espalier, no cache (createServer)', 'espalier, no cache (Express)'],
    },
  ],
};

await runTopic(import.meta.url, topic);
