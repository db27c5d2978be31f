/** @tags once slow */
import { setImmediate } from 'node:timers/promises';
import { createServer, graphqlHTTP } from 'espalier';
import { buildSchema } from 'graphql';
import { memoryInUse } from '../heap.ts';
import { run } from './server.ts';

const schema = buildSchema('type Query { a: Int }');

const { stats } = createServer(() => undefined);
/** The sum of the limits of the document caches of all handlers in memory. */
const budgets = (): number => stats().documents.maxBytes;

it('graphqlHTTP keeps nothing of handlers that are created for one request and then dropped', async () => {
  graphqlHTTP(schema);
  const before = budgets();
  for (let count = 0; count < 500; count++) graphqlHTTP(schema);
  expect(budgets()).toBeGreaterThan(before);
  for (let attempt = 0; attempt < 50 && budgets() > before; attempt++) {
    // References that were read stay until the end of the job.
    await setImmediate();
    memoryInUse();
  }
  expect(budgets()).toBeLessThanOrEqual(before);
});

it.each([
  ['above a limit', (alias: string) => `{ ${alias}: a ${'a '.repeat(4900)}}`],
  ['with a validation error', (alias: string) => `{ ${alias} }`],
])(
  'graphqlHTTP keeps neither documents nor requests of cached refusals: a document %s',
  async (_, document) => {
    const handler = graphqlHTTP(schema);
    const requests: WeakRef<object>[] = [];
    const server = await run((req, res) => {
      requests.push(new WeakRef(req));
      handler(req, res);
    });
    const send = async (count: number): Promise<number> => {
      const body = JSON.stringify({ query: document(`a${count}`) });
      const response = await fetch(server.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      await response.text();
      return response.status;
    };
    await send(0);
    const before = memoryInUse().heapUsed;
    for (let count = 1; count <= 50; count++) await send(count);
    await setImmediate();
    expect(memoryInUse().heapUsed - before).toBeLessThan(20_000_000);
    // The last ones may belong to open connections.
    expect(requests.slice(0, 25).filter((request) => request.deref() !== undefined)).toEqual([]);
  },
);
