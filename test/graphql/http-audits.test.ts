/** @tags graphql engine */
import type { RequestListener } from 'node:http';
import express5 from 'express';
import express4 from 'express4';
import { buildSchema } from 'graphql';
import { serverAudits } from 'graphql-http';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { listen } from '../kit.ts';

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
  let url = '';
  beforeAll(async () => {
    ({ url } = await listen(listener(), '/graphql'));
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

it("with statusCodes: 'spec' the only audits with a remark are those of a status that the draft has changed to 422", async () => {
  const { url } = await listen(graphqlHTTP(schema, { statusCodes: 'spec' }), '/graphql');
  const results = await Promise.all(serverAudits({ url }).map((audit) => audit.fn()));
  const remarks = results.filter(({ status }) => status !== 'ok');
  expect(remarks.filter(({ status }) => status === 'error')).toEqual([]);
  expect(remarks.length).toBe(22);
  for (const { name } of remarks) expect(name).toMatch(/^(?:MAY|SHOULD) use (?:a )?(?:400|200|status)/);
});
