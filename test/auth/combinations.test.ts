/** @tags graphql */
import { channel } from 'node:diagnostics_channel';
import { buildSchema, type GraphQLObjectType } from 'graphql';
import { authTypeDefs, visibleSchema } from '../../middleware/auth.ts';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { AuthResolveInfo } from '../../types/auth.ts';
import { DIRECTIVES, V17 } from '../graphql/incremental-schema.ts';
import { jsonLines, merge } from '../graphql/merge.ts';
import { run } from '../graphql/server.ts';
import { codes, GRAPHQL, type Service, scopesOf, serve } from './service.ts';

// The option `auth` together with other options.

const services: { close(): Promise<unknown> }[] = [];
afterEach(() => Promise.all(services.splice(0).map((service) => service.close())));

async function create(...args: Parameters<typeof serve>): Promise<Service> {
  const service = await serve(...args);
  services.push(service);
  return service;
}

const policies = (): string[] => [];

describe.each(['compiled', 'graphql-js'] as const)('%s', (engine) => {
  const auth = { scopes: scopesOf, policies };
  const nulls = { ...auth, mode: 'null' } as const;

  it.each([
    ['null', 'mutation { write }', 'write'],
    ['reject', 'mutation { touch { id } }', 'a'],
  ] as const)(
    'idempotency, mode %s: a stored result is not sent to its user without the scope',
    async (mode, query, scope) => {
      const options = { auth: { ...auth, mode }, caller: () => ({ id: 'u' }), idempotency: true };
      const { url } = await create({ engine, ...options });
      const send = async (scopes: string) => {
        const headers = { accept: GRAPHQL, 'x-scopes': scopes, 'idempotency-key': '1' };
        const response = await fetch(url, {
          method: 'POST',
          headers: { ...headers, 'content-type': 'application/json' },
          body: JSON.stringify({ query }),
        });
        return { replayed: response.headers.get('idempotency-replayed'), body: await response.json() };
      };
      const { body } = await send(scope);
      expect(body).not.toHaveProperty('errors');
      // Other scopes do not matter.
      expect(await send(`${scope} other`)).toEqual({ replayed: 'true', body });
      const { replayed, body: refused } = await send('other');
      expect(replayed).toBeNull();
      expect(codes({ body: refused })).toEqual(['IDEMPOTENCY_KEY_REUSED']);
      expect(refused).not.toHaveProperty('data');
    },
  );

  it('responseCache: a schema that requires more does not find the results of the one before', async () => {
    const schemaWith = (directive: string) =>
      buildSchema(`${authTypeDefs} type Query { open: String secret: String ${directive} }`);
    const handler = graphqlHTTP(schemaWith('@requiresScopes(scopes: [["a"]])'), {
      engine,
      auth: nulls,
      rootValue: { open: 'OPEN', secret: 'SECRET' },
      httpCache: { defaultMaxAge: 60 },
      responseCache: { key: () => '' },
    });
    const service = await run((req, res) => handler(req, res));
    services.push(service);
    const ask = async () => {
      const url = `${service.url}?query=${encodeURIComponent('{ open secret }')}`;
      const response = await fetch(url, { headers: { 'x-scopes': 'a' } });
      return ((await response.json()) as { data: object }).data;
    };
    expect(await ask()).toEqual({ open: 'OPEN', secret: 'SECRET' });
    await handler.replace(schemaWith('@requiresScopes(scopes: [["a", "b"]])'));
    expect(await ask()).toEqual({ open: 'OPEN', secret: null });
  });

  it('idempotency: a schema that requires more does not send the results of the one before', async () => {
    const schemaWith = (directive: string) =>
      buildSchema(`${authTypeDefs} type Query { a: Int } type Mutation { write: String ${directive} }`);
    const handler = graphqlHTTP(schemaWith('@authenticated'), {
      engine,
      auth: nulls,
      rootValue: { write: 'SECRET' },
      caller: () => ({ id: 'u' }),
      idempotency: true,
    });
    const service = await run((req, res) => handler(req, res));
    services.push(service);
    const send = async () => {
      const response = await fetch(service.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-scopes': 'x', 'idempotency-key': '1' },
        body: JSON.stringify({ query: 'mutation { write }' }),
      });
      return response.text();
    };
    expect(await send()).toContain('SECRET');
    await handler.replace(schemaWith('@requiresScopes(scopes: [["a"]])'));
    expect(await send()).toContain('IDEMPOTENCY_KEY_REUSED');
  });

  it('responseCache: a request that waits for an equal one does not get what info.auth decided for that', async () => {
    const of = buildSchema(`${authTypeDefs} type Query { asked: String }`);
    let open = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const waiting: string[] = [];
    const asked = async (_args: object, { scopes }: { scopes: string }, info: AuthResolveInfo) => {
      waiting.push(scopes);
      await gate;
      Object(info).cacheControl.setCacheHint({ maxAge: 60 });
      return info.auth.has('a') ? 'SECRET' : 'nothing';
    };
    const { post } = await create(
      {
        engine,
        auth,
        rootValue: { asked },
        context: ({ headers }) => ({ scopes: headers['x-scopes'] }),
        httpCache: { defaultMaxAge: 60 },
        responseCache: { key: () => '' },
      },
      of,
    );
    const first = post('{ asked }', 'a');
    while (waiting.length === 0) await new Promise(setImmediate);
    const second = post('{ asked }', 'b');
    open();
    expect((await first).body.data).toEqual({ asked: 'SECRET' });
    expect((await second).body.data).toEqual({ asked: 'nothing' });
    expect((await post('{ asked }', 'b')).body.data).toEqual({ asked: 'nothing' });
  });

  it('schemaFor: a socket whose caller has lost a scope keeps what a hidden field of an interface requires', async () => {
    const of = buildSchema(`${authTypeDefs}
      type Query { t: T }
      interface N { x: String @requiresScopes(scopes: [["b"]]) y: Int }
      type T implements N { x: String y: Int }
      type U implements N { x: String @requiresScopes(scopes: [["a"]]) y: Int }`);
    let scopes = ['b'];
    const { post } = await create(
      {
        engine,
        rootValue: { t: { x: 'SECRET' } },
        context: {},
        caller: () => null,
        idempotency: true,
        auth: {
          // Without a context the schema is chosen, for a socket when it is opened.
          scopes: (_req, { context }) => (context === undefined ? ['b'] : scopes),
          schemaFor: (names, whole) => visibleSchema(whole, names),
        },
      },
      of,
    );
    expect((await post('{ __type(name: "N") { fields { name } } t { x } }')).body.data).toEqual({
      __type: { fields: [{ name: 'y' }] },
      t: { x: 'SECRET' },
    });
    scopes = [];
    expect(codes(await post('{ t { x } }'))).toEqual(['FORBIDDEN']);
  });

  it('schemaFor and replace: a schema that was chosen before is not used for the new one', async () => {
    const schemaWith = (directive: string) =>
      buildSchema(`${authTypeDefs} type Query { open: String secret: String ${directive} }`);
    const handler = graphqlHTTP(schemaWith(''), {
      engine,
      rootValue: { secret: 'SECRET' },
      auth: { ...auth, schemaFor: (names, whole) => visibleSchema(whole, names) },
    });
    const service = await run((req, res) => handler(req, res));
    services.push(service);
    const ask = async (query: string) => {
      const response = await fetch(`${service.url}?query=${encodeURIComponent(query)}`, {
        headers: { 'x-scopes': 'x' },
      });
      return response.text();
    };
    expect(await ask('{ secret }')).toContain('SECRET');
    await handler.replace(schemaWith('@requiresScopes(scopes: [["a"]])'));
    expect(await ask('{ secret }')).toContain('Cannot query field');
  });

  it('an argument of an interface requires the same in its types', async () => {
    const of = buildSchema(`${authTypeDefs}
      type Query { n: N t: T }
      interface N { x(deep: Int @requiresScopes(scopes: [["a"]])): String }
      type T implements N { x(deep: Int): String }`);
    const t = { __typename: 'T', x: 'SECRET' };
    const { post } = await create({ engine, rootValue: { n: t, t }, auth }, of);
    for (const query of ['{ n { x(deep: 1) } }', '{ t { x(deep: 1) } }']) {
      expect(codes(await post(query, 'x'))).toEqual(['FORBIDDEN']);
      expect((await post(query, 'a')).text).toContain('SECRET');
    }
    expect((await post('{ n { x } t { x } }', 'x')).status).toBe(200);
  });

  it('diagnostics channels: an execution that is traced is decided in the same way', async () => {
    const { post } = await create({ engine, auth: nulls });
    const query = '{ open secret nodes { id name } }';
    // Both forms of the document are compiled now.
    const answers = [await post(query, 'a admin'), await post(query, 'x')];
    for (const prefix of [
      'espalier:graphql:operation',
      'tracing:graphql:execute:',
      'tracing:graphql:resolve:',
    ]) {
      const names = prefix.endsWith(':')
        ? ['start', 'end', 'asyncStart', 'asyncEnd', 'error'].map((step) => prefix + step)
        : [prefix];
      let messages = 0;
      const listener = (): void => void messages++;
      for (const name of names) channel(name).subscribe(listener);
      expect((await post(query, 'a admin')).body).toEqual(answers[0]?.body);
      expect((await post(query, 'x')).body).toEqual(answers[1]?.body);
      for (const name of names) channel(name).unsubscribe(listener);
      if (V17 || !prefix.endsWith(':')) expect(messages).toBeGreaterThan(0);
    }
    expect(answers[1]?.text).not.toMatch(/SECRET|ADMIN|POST-ID/);
  });

  it('documents.only: a document that is only reported is decided as well', async () => {
    const { post } = await create({
      engine,
      auth,
      onError: false,
      documents: { from: { known: '{ open }' }, only: 'report' },
    });
    expect((await post('{ secret }', 'x')).status).toBe(403);
    expect((await post('{ secret }', 'a')).body).toEqual({ data: { secret: 'SECRET' } });
  });

  if (V17)
    it('@defer: info.auth of a deferred resolver is that of the caller', async () => {
      const of = buildSchema(
        `${authTypeDefs} ${DIRECTIVES} type Query { open: String asked: Boolean sure: String }`,
      );
      const { asked, sure } = (of.getQueryType() as GraphQLObjectType).getFields();
      Object.assign(asked ?? {}, {
        resolve: async (_source: object, _args: object, _context: object, info: AuthResolveInfo) =>
          info.auth.has('a'),
      });
      Object.assign(sure ?? {}, {
        resolve(_source: object, _args: object, _context: object, { auth: { assert } }: AuthResolveInfo) {
          assert('a');
          return 'SECRET';
        },
      });
      const { url } = await create({ engine, auth }, of);
      for (const [scopes, data, expected] of [
        ['a', { asked: true, sure: 'SECRET' }, []],
        ['x', { asked: false, sure: null }, ['FORBIDDEN']],
      ] as const) {
        const response = await fetch(url, {
          method: 'POST',
          headers: { accept: 'application/jsonl', 'content-type': 'application/json', 'x-scopes': scopes },
          body: JSON.stringify({ query: '{ open ... @defer { asked sure } }' }),
        });
        const payloads = jsonLines(await response.text());
        expect(payloads.length).toBeGreaterThan(1);
        const merged = merge(payloads);
        expect(merged.data).toEqual({ open: 'OPEN', ...data });
        expect(codes({ body: { errors: merged.errors as [] } })).toEqual(expected);
      }
    });
});
