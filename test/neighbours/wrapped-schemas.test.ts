/** @tags once */
import { wrapSchema } from '@graphql-tools/wrap';
import { graphqlHTTP } from 'espalier';
import { inject } from 'espalier/testing';
import { buildSchema, GraphQLError, type GraphQLObjectType } from 'graphql';

// A gateway over a local subschema: errors of its resolvers are located twice.

process.env['NODE_ENV'] = 'production';

const SECRET = 'connect ECONNREFUSED 10.0.0.5:5432';
const RESOLVERS: Record<string, () => unknown> = {
  ok: () => 'fine',
  plain: () => {
    throw new Error(SECRET);
  },
  late: async () => {
    throw new Error(SECRET);
  },
  withHttp: () => {
    const extensions = { http: { status: 418, headers: { 'x-leak': SECRET } } };
    throw Object.assign(new Error(SECRET), { extensions });
  },
  invalid: () => ({ secret: SECRET }),
  denied: () => {
    throw new GraphQLError('Log in first', { extensions: { code: 'UNAUTHENTICATED' } });
  },
};

function gateway() {
  const names = Object.keys(RESOLVERS).join(': String ');
  const schema = buildSchema(`type Inner { ${names}: String } type Query { ${names}: String inner: Inner }`);
  for (const type of ['Query', 'Inner']) {
    const fields = (schema.getType(type) as GraphQLObjectType).getFields();
    for (const [name, resolve] of Object.entries(RESOLVERS)) Object.assign(fields[name] ?? {}, { resolve });
  }
  Object.assign(schema.getQueryType()?.getFields()['inner'] ?? {}, { resolve: () => ({}) });
  return wrapSchema({ schema });
}

describe.each(['compiled', 'graphql-js'] as const)('a wrapped schema under the engine %s', (engine) => {
  const reported: unknown[] = [];
  const handler = graphqlHTTP(gateway(), { engine, onError: (error) => void reported.push(error) });
  const ask = async (query: string) => {
    reported.length = 0;
    return inject(handler, { query });
  };

  it('responds with the data of the subschema', async () => {
    expect((await ask('{ ok inner { ok } }')).data).toEqual({ ok: 'fine', inner: { ok: 'fine' } });
  });

  it.each(['plain', 'late', 'withHttp', 'invalid'])(
    'masks the error of %s and reports it once',
    async (name) => {
      for (const query of [`{ ok ${name} }`, `{ inner { ok ${name} } }`]) {
        const { status, headers, data, errors } = await ask(query);
        expect(status).toBe(200);
        expect(headers).not.toHaveProperty('x-leak');
        expect(errors).toHaveLength(1);
        expect(errors?.[0]).toMatchObject({
          message: 'Internal server error',
          path: query.includes('inner') ? ['inner', name] : [name],
          extensions: { code: 'INTERNAL_SERVER_ERROR' },
        });
        expect(JSON.stringify([data, errors])).not.toContain('10.0.0.5');
        expect(reported).toHaveLength(1);
        expect(String(reported)).toContain(name === 'invalid' ? 'cannot represent' : SECRET);
      }
    },
  );

  it('sends a GraphQLError of the subschema to the client', async () => {
    const { errors } = await ask('{ denied }');
    expect(errors?.[0]).toMatchObject({ message: 'Log in first', extensions: { code: 'UNAUTHENTICATED' } });
    expect(reported).toEqual([]);
  });
});
