// Requests by id compared with the same operation as text: one server per row, with the same schema and options.
// With --write the rows become the table of docs/documents.md.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { runTopic } from './harness.mjs';
import { httpLoad } from './lib/http-load.mjs';
import { ratio } from './lib/report.mjs';

process.env.NODE_ENV = 'production';

const QUERY = `query Items($first: Int!, $withPrice: Boolean = true) {
  items(first: $first) {
    ...ItemFields
    price @include(if: $withPrice)
  }
}

fragment ItemFields on Item {
  id
  name
  stock
  sold
}`;
const HASH = createHash('sha256').update(QUERY).digest('hex');
const ID = `sha256:${HASH}`;
const variables = { first: 5 };
const extensions = { persistedQuery: { version: 1, sha256Hash: HASH } };

const post = (params) => ({
  method: 'POST',
  path: '/graphql',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ ...params, variables }),
});
const search = (params) =>
  new URLSearchParams({ ...params, variables: JSON.stringify(variables) }).toString();
const get = (path) => ({ path, headers: { accept: 'application/json' } });

/** The request of each row. */
const REQUESTS = {
  'text, POST, without documents': post({ query: QUERY }),
  'text, POST': post({ query: QUERY }),
  'documentId, POST': post({ documentId: ID }),
  'hash of APQ, POST': post({ extensions }),
  'text and hash of APQ, POST': post({ query: QUERY, extensions }),
  'text, GET': get(`/graphql?${search({ query: QUERY })}`),
  'documentId, GET': get(`/graphql?${search({ documentId: ID })}`),
  'id in the path, GET': get(`/graphql/${ID}?${search({})}`),
};

/** The option `documents` of each row. */
function optionOf(name) {
  if (name.endsWith('without documents')) return {};
  return { documents: name.includes('APQ') ? { apq: true } : { from: { [ID]: QUERY } } };
}

async function makeServer(name) {
  const [{ buildSchema }, { graphqlHTTP }, { default: express }] = await Promise.all([
    import('graphql'),
    import('espalier'),
    import('express'),
  ]);
  const schema = buildSchema(`
    type Query { items(first: Int!): [Item!]! }
    type Item { id: ID! name: String! price: Float! stock: Int! sold: Boolean! }
  `);
  const items = Array.from({ length: 5 }, (_, id) => ({
    id,
    name: `item ${id}`,
    price: id + 0.5,
    stock: id,
    sold: id % 2 === 0,
  }));
  const handler = graphqlHTTP(schema, { rootValue: { items: () => items }, ...optionOf(name) });
  const app = express();
  app.use('/graphql', handler);
  return app;
}

export const topic = {
  name: 'documents',
  title: 'Documents by id',
  about:
    'One operation with a variable and five objects in the response, under Express: as text, and by id in each place ' +
    'that the option `documents` reads. The hash of APQ is registered before.',
  packages: ['express', 'graphql'],
  ratios: ['text, POST', 'text, GET'],
  contestants: Object.fromEntries(Object.keys(REQUESTS).map((name) => [name, () => makeServer(name)])),
  loads: [
    {
      name: 'five objects',
      drive: async ({ port, count, warming, contestant }) => {
        const request = REQUESTS[contestant];
        if (warming && contestant.startsWith('hash')) {
          await httpLoad({ name: 'register', requests: [post({ query: QUERY, extensions })] }, port, 1);
        }
        return httpLoad({ name: contestant, requests: [request] }, port, count);
      },
    },
  ],
};

const result = await runTopic(import.meta.url, topic);
if (result !== undefined && process.argv.includes('--write')) writeTable(result.loads[0].rows);

/** Writes the medians, and the medians of the rounds' ratios to the row of the text with the same method. */
function writeTable(rows) {
  const page = new URL('../docs/documents.md', import.meta.url);
  const lines = rows
    .filter(({ name }) => !name.endsWith('without documents'))
    .map((row) => {
      const peer = rows.find(({ name }) => name === `text, ${row.name.split(', ').at(-1)}`);
      const compared = row === peer ? '1' : ratio(row, peer).toFixed(2);
      return `| ${row.name.replace('documentId', '`documentId`')} | ${row.cpu.toFixed(0)} µs | ${compared} |\n`;
    });
  const head = '| request | CPU time | compared with the text |\n|---|---:|---:|\n';
  const table = /\| request \| CPU time \|.*\n(?:\|.*\n)+/;
  writeFileSync(page, readFileSync(page, 'utf8').replace(table, head + lines.join('')));
}
