// Runs distinct documents through the document cache and the compiled engine. The heap must not grow with them.
// node --expose-gc engine-soak.mjs [number of documents, default 100000]
import assert from 'node:assert/strict';
import { graphqlHTTP } from 'espalier';
import { buildSchema } from 'graphql';

const schema = buildSchema(
  'type Row { id: ID name: String } type Query { hello(n: Int): String rows: [Row!]! }',
);
const core = graphqlHTTP(schema, { graphiql: false })[Symbol.for('espalier.core')];
const rootValue = { hello: ({ n }) => `hello ${n}`, rows: [{ id: 1, name: async () => 'late' }] };
const inputs = { rootValue, contextValue: undefined, variableValues: undefined };
const count = Number(process.argv[2] ?? 100_000);
const heap = () => {
  globalThis.gc();
  return process.memoryUsage().heapUsed / 2 ** 20;
};

let first = 0;
for (let n = 0; n < count; n++) {
  const query = n % 2 === 0 ? `{ hello(n: ${n}) }` : `{ rows { a${n}: id name } }`;
  const operation = core.prepare(schema, { query, operationName: undefined, variables: undefined });
  const { body } = await operation.execute(inputs);
  assert(body.includes(n % 2 === 0 ? `hello ${n}` : `a${n}`));
  // The cache is full by then.
  if (n === Math.floor(count / 5)) first = heap();
}
const last = heap();
console.log(
  `${count} documents: heap ${first.toFixed(1)} MiB after a fifth of them, ${last.toFixed(1)} MiB at the end`,
);
assert(last - first < 5, 'the heap grew with the documents');
