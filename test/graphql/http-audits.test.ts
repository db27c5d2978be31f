import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express5 from 'express';
import express4 from 'express4';
import { buildSchema } from 'graphql';
import { serverAudits } from 'graphql-http';
import { graphqlHTTP } from '../../middleware/graphql.ts';

const schema = buildSchema('type Query { hello: String } type Mutation { hello: String }');

const mounted = (express: typeof express5, parser: boolean): RequestListener => {
  const app = express();
  if (parser) app.use(express.json());
  return app.use('/graphql', graphqlHTTP(schema));
};

const hosts: Record<string, () => RequestListener> = {
  'Express 5': () => mounted(express5, false),
  'Express 5 behind express.json()': () => mounted(express5, true),
  'Express 4': () => mounted(express4 as unknown as typeof express5, false),
  'Express 4 behind express.json()': () => mounted(express4 as unknown as typeof express5, true),
  'bare node:http': () => graphqlHTTP(schema),
};

describe.each(Object.entries(hosts))('the GraphQL over HTTP audits on %s', (_host, listener) => {
  let server: Server;
  let url = '';
  beforeAll(async () => {
    server = createServer(listener());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
  });
  afterAll(() => {
    server.close();
    server.closeAllConnections();
  });

  it('the audit suite of graphql-http has 61 audits', () => {
    expect(serverAudits({ url }).length).toBe(61);
  });

  it.each(serverAudits({ url: () => url }).map((audit) => [audit.id, audit.name, audit.fn] as const))(
    'graphqlHTTP passes audit %s: %s',
    async (_id, _name, run) => {
      expect(await run()).toMatchObject({ status: 'ok' });
    },
  );
});

it("with statusCodes: '2026' the only audits with a remark are those of a status that the draft has changed to 422", async () => {
  const server = createServer(graphqlHTTP(schema, { statusCodes: '2026' }));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
  const results = await Promise.all(serverAudits({ url }).map((audit) => audit.fn()));
  const remarks = results.filter(({ status }) => status !== 'ok');
  expect(remarks.filter(({ status }) => status === 'error')).toEqual([]);
  expect(remarks.length).toBe(22);
  for (const { name } of remarks) expect(name).toMatch(/^(?:MAY|SHOULD) use (?:a )?(?:400|200|status)/);
  server.close();
  server.closeAllConnections();
});
