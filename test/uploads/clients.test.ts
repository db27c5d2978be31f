/** @tags node-lines graphql */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { graphqlHTTP } from 'espalier';
import { isAvailable } from '../programs.ts';
import { createSchema } from './schema.ts';
import { startServer, type TestServer } from './server.ts';

const run = promisify(execFile);

describe('clients of the multipart request specification', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer(graphqlHTTP(createSchema([])));
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it.each(['urql', 'FormData', ...(isAvailable('curl') ? ['curl'] : [])])(
    '%s uploads a file without extra headers',
    async (name) => {
      const { stdout } = await run(process.execPath, [join(__dirname, 'clients.mjs'), name, server.url]);
      expect(JSON.parse(stdout)).toMatchObject({
        one: { filename: 'a.txt', text: 'first' },
        many: [{ text: 'second' }, { text: 'first' }],
      });
    },
  );
});
