/** @tags once slow */
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { mcp } from '../../middleware/mcp.ts';
import { createServer } from '../../middleware/server.ts';
import { descriptorsIn } from '../descriptors.ts';
import { memoryInUse } from '../heap.ts';
import { listen } from '../kit.ts';

jest.setTimeout(180_000);

it('2000 calls of a tool leave neither memory nor descriptors behind', async () => {
  const documents = { from: { me: 'query whoAmI { me }' } };
  const endpoint = mcp(
    graphqlHTTP(buildSchema('type Query { me: String }'), { rootValue: { me: 'ada' }, documents }),
    { name: 'test', version: '1.0.0' },
  );
  const { url } = await listen(
    createServer((req, res) => endpoint(req, res, () => res.end())),
    '/',
  );
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2025-11-25',
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoAmI' } });
  const callMany = async (count: number): Promise<void> => {
    for (let done = 0; done < count; done += 10) {
      const texts = await Promise.all(
        Array.from({ length: 10 }, async () => (await fetch(url, { method: 'POST', headers, body })).text()),
      );
      for (const text of texts) expect(text).toContain('"me":"ada"');
    }
  };
  await callMany(500);
  const [heap, open] = [memoryInUse().heapUsed, descriptorsIn('')];
  await callMany(2000);
  expect(memoryInUse().heapUsed - heap).toBeLessThan(2_000_000);
  expect(descriptorsIn('') - open).toBeLessThan(20);
});
