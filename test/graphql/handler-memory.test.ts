import { setImmediate } from 'node:timers/promises';
import { graphqlHTTP } from 'espalier';
import { buildSchema } from 'graphql';
import { memoryInUse } from '../heap.ts';
import { run } from './server.ts';

const schema = buildSchema('type Query { a: Int }');

/** The references that the process keeps to the owners of gauges. */
const owners = (): number =>
  (globalThis as unknown as Record<symbol, { owners: Set<unknown> }>)[Symbol.for('espalier.gauges')]?.owners
    .size ?? 0;

it('graphqlHTTP keeps nothing of handlers that are created for one request and then dropped', async () => {
  graphqlHTTP(schema);
  const before = owners();
  for (let count = 0; count < 500; count++) graphqlHTTP(schema);
  expect(owners()).toBeGreaterThan(before);
  for (let attempt = 0; attempt < 50 && owners() > before; attempt++) {
    memoryInUse();
    await setImmediate();
  }
  expect(owners()).toBeLessThanOrEqual(before);
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
    await server.close();
  },
);
