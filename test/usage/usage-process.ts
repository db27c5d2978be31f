// Run by usage.test.ts: counts operations, and writes the counts to a file after each of them.
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { inject } from '../../middleware/testing.ts';

const [file = '', count = ''] = process.argv.slice(2);
const handler = graphqlHTTP(buildSchema('type Query { one: Int }'), { usage: { file } });
for (let sent = 0; sent < Number(count); sent++) {
  await inject(handler, { path: '/', body: { query: '{ one }' } });
  await handler.usage.flush();
}
