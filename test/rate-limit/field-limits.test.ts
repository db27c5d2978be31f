/** @tags node graphql */
import { makeExecutableSchema } from '@graphql-tools/schema';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import express from 'express';
import type { GraphQLSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { mcp } from '../../middleware/mcp.ts';
import { createServer } from '../../middleware/server.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { inject, subscribe } from '../../middleware/testing.ts';
import { TIMES } from '../../src/rate-limit/buckets.ts';
import type { Caller } from '../../types/caller.ts';
import type { ContextSource } from '../../types/connect.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import { atEnd, listen, makeFolder, postJson } from '../kit.ts';
import { startRedis } from '../redis.ts';

const DIRECTIVE = `
  directive @rateLimit(limit: Int!, window: String = "1m", by: String = "CALLER") repeatable on FIELD_DEFINITION`;
const typeDefs = `${DIRECTIVE}
  interface Node { id: ID  secret: Int @rateLimit(limit: 1, window: "1h") }
  type A implements Node { id: ID  secret: Int  code: Int @rateLimit(limit: 1, window: "1h") }
  type B implements Node { id: ID  secret: Int  code: Int }
  input Login { email: String! = "nobody"  codes: [Code!] }
  input Code { value: Int }
  type Query {
    free: Int
    login(password: Int): Int @rateLimit(limit: 2, window: "1h")
    byEmail(input: Login, email: String): Int @rateLimit(limit: 1, window: "1h", by: "input.email")
    byCode(input: Login): Int @rateLimit(limit: 1, window: "1h", by: "input.codes.value")
    byAddress: Int @rateLimit(limit: 1, window: "1h", by: "ADDRESS")
    twice: Int @rateLimit(limit: 3, window: "1h") @rateLimit(limit: 1, window: "1h", by: "ADDRESS")
    nodes: [Node]
    list: [A]
  }
  type Mutation { login(password: Int): Int @rateLimit(limit: 2, window: "1h") }
  type Subscription { ticks: Int @rateLimit(limit: 1, window: "1h") }`;

function createSchema(calls: string[]): GraphQLSchema {
  const called =
    (name: string) =>
    (_: unknown, args?: object): number =>
      calls.push(`${name} ${JSON.stringify(args ?? {})}`);
  const nodes = [{ __typename: 'A' }, { __typename: 'B' }, { __typename: 'A' }];
  return makeExecutableSchema({
    typeDefs,
    resolvers: {
      Query: {
        free: () => 1,
        login: called('login'),
        byEmail: called('byEmail'),
        byCode: called('byCode'),
        byAddress: called('byAddress'),
        twice: called('twice'),
        nodes: () => nodes,
        list: () => nodes.slice(0, 1).concat(nodes.slice(2)),
      },
      Mutation: { login: called('login') },
      A: { secret: called('secret'), code: called('code') },
      B: { secret: called('secret'), code: () => 7 },
      Subscription: {
        ticks: {
          async *subscribe() {
            yield { ticks: 1 };
            yield { ticks: 2 };
          },
        },
      },
    },
  });
}

const callerOf = ({ headers }: ContextSource): Caller | null =>
  headers['x-user'] === undefined ? null : { id: String(headers['x-user']) };

async function serve(options: GraphQLOptions = {}) {
  const calls: string[] = [];
  const handler = graphqlHTTP(createSchema(calls), {
    onError: false,
    batching: true,
    caller: callerOf,
    clientLimits: true,
    ...options,
  });
  const app = express().use('/graphql', handler);
  if (options.documents !== undefined) app.use('/mcp', mcp(handler, { name: 'limits', version: '1.0.0' }));
  const server = createServer(app);
  attachSubscriptions(server, handler);
  const { url } = await listen(server);
  const send = async (body: unknown, headers = {}) => {
    const response = await postJson(`${url}/graphql`, body, headers);
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  const post = async (query: string, variables = {}, headers = {}) =>
    (await send({ query, variables }, headers)).body;
  return { handler, url, calls, send, post };
}

const refused = (...paths: (string | number)[][]) =>
  paths.map((path) => expect.objectContaining({ path, extensions: LIMITED }));
const LIMITED = { code: 'RATE_LIMITED', retryAfter: expect.any(Number) };
const A_USER = { 'x-user': 'ada' };

describe.each(['compiled', 'graphql-js'] as const)('@rateLimit with the engine %s', (engine) => {
  it('refuses a field above its limit, and executes the rest of the operation', async () => {
    const { post, calls, send } = await serve({ engine });
    expect(await post('{ login }')).toEqual({ data: { login: 1 } });
    expect(await post('{ login }')).toEqual({ data: { login: 2 } });
    const { status, body } = await send({ query: '{ login free }' });
    expect(status).toBe(200);
    expect(body).toEqual({
      errors: [
        {
          message: expect.stringMatching(
            /^The field "Query.login" was requested too often; retry after \d+ s$/,
          ),
          path: ['login'],
          locations: [{ line: 1, column: 3 }],
          extensions: LIMITED,
        },
      ],
      data: { login: null, free: 1 },
    });
    expect(body.errors[0].extensions.retryAfter).toBeGreaterThan(1700);
    expect(calls).toHaveLength(2);
    expect(await post('{ login }', {}, A_USER)).toEqual({ data: { login: 3 } });
  });

  it('counts each alias, and refuses those for which nothing is left', async () => {
    const { post, calls } = await serve({ engine });
    const aliases = 'a: login(password: 1) b: login(password: 2) c: login(password: 3) d: login(password: 4)';
    expect(await post(`{ ${aliases} }`)).toEqual({
      errors: refused(['c'], ['d']),
      data: { a: 1, b: 2, c: null, d: null },
    });
    expect(calls).toHaveLength(2);
  });

  it('counts each mutation', async () => {
    const { post, calls } = await serve({ engine });
    const result = await post('mutation { a: login b: login c: login }');
    expect(result).toEqual({ errors: refused(['c']), data: { a: 1, b: 2, c: null } });
    expect(calls).toHaveLength(2);
  });

  it('counts a field that several selections merge once, and a fragment at each place', async () => {
    const { post, calls } = await serve({ engine });
    expect(await post('{ login login ...F ...F } fragment F on Query { login }')).toEqual({
      data: { login: 1 },
    });
    const query = '{ list { ...F } again: list { ...F } } fragment F on A { code }';
    const result = await post(query);
    expect(result.errors).toHaveLength(4);
    expect(calls).toHaveLength(1);
  });

  it('counts a field below a list once', async () => {
    const { post, calls } = await serve({ engine });
    expect(await post('{ list { code } }')).toMatchObject({ data: { list: [{ code: 1 }, { code: 2 }] } });
    expect(await post('{ list { code } }')).toEqual({
      errors: refused(['list', 0, 'code'], ['list', 1, 'code']),
      data: { list: [{ code: null }, { code: null }] },
    });
    expect(calls).toHaveLength(2);
  });

  it('limits a field whose interface declares it, by any selection, and leaves other types alone', async () => {
    const { post } = await serve({ engine });
    expect(await post('{ nodes { ... on B { secret } } }')).not.toHaveProperty('errors');
    expect((await post('{ nodes { secret } }')).errors).toHaveLength(3);
    expect((await post('{ nodes { ... on A { secret } } }')).errors).toHaveLength(2);
    expect(await post('{ nodes { ... on A { code } ... on B { code } } }')).not.toHaveProperty('errors');
    const again = await post('{ nodes { ... on A { code } ... on B { code } } }');
    expect(again.errors).toEqual(refused(['nodes', 0, 'code'], ['nodes', 2, 'code']));
    expect(again.data.nodes[1]).toEqual({ code: 7 });
  });

  it('counts a field that an interface and a type select at one place once', async () => {
    const { post, calls } = await serve({ engine });
    const query =
      '{ nodes { secret ... on Node { secret } ... on A { secret } ...F } } fragment F on B { secret }';
    expect(await post(query)).not.toHaveProperty('errors');
    expect((await post(query)).errors).toHaveLength(3);
    expect(calls).toHaveLength(3);
  });

  it('counts what @include and @skip leave, by the variables and their defaults', async () => {
    const { post, calls } = await serve({ engine });
    const query = `query ($on: Boolean = false, $off: Boolean = true) {
      a: login @include(if: $on) b: login @skip(if: $off) ... @include(if: $on) { c: login }
    }`;
    for (let i = 0; i < 4; i++) expect(await post(query)).toEqual({ data: {} });
    expect(await post(query, { on: true, off: false })).toEqual({
      errors: refused(['c']),
      data: { a: 1, b: 2, c: null },
    });
    expect(calls).toHaveLength(2);
  });

  it('counts each operation of a batch and of a batch of variables', async () => {
    const { send, calls } = await serve({ engine });
    const batch = [1, 2, 3].map((password) => ({ query: `{ login(password: ${password}) }` }));
    expect((await send(batch)).body[2]).toEqual({ errors: refused(['login']), data: { login: null } });
    const query = 'query ($password: Int) { login(password: $password) }';
    const variables = [{ password: 1 }, { password: 2 }, { password: 3 }];
    const { status, body } = await send({ query, variables }, A_USER);
    expect(status).toBe(200);
    expect(JSON.stringify(body).match(/RATE_LIMITED/g)).toHaveLength(1);
    expect(calls).toHaveLength(4);
  });

  it('limits by the value of an argument, also from variables, defaults and lists', async () => {
    const { post, calls } = await serve({ engine });
    const limitedOf = async (query: string, variables = {}) =>
      ((await post(query, variables)).errors ?? []).map(({ path }: { path: unknown }) => path);
    expect(await limitedOf('{ byEmail(input: { email: "a" }) b: byEmail(input: { email: "b" }) }')).toEqual(
      [],
    );
    const query = 'query ($email: String! = "a") { byEmail(input: { email: $email }) }';
    expect(await limitedOf(query)).toEqual([['byEmail']]);
    expect(await limitedOf(query, { email: 'b' })).toEqual([['byEmail']]);
    expect(await limitedOf('query ($input: Login) { byEmail(input: $input) }', { input: {} })).toEqual([]);
    expect(await limitedOf('{ byEmail(input: {}) }')).toEqual([['byEmail']]);
    // Without a value the caller counts.
    expect(await limitedOf('{ a: byEmail(email: "a") b: byEmail(email: "b") }')).toEqual([['b']]);
    expect(await limitedOf('{ byCode(input: { codes: [{ value: 1 }, { value: 2 }] }) }')).toEqual([]);
    expect(await limitedOf('{ byCode(input: { codes: [{ value: 3 }, { value: 2 }] }) }')).toEqual([
      ['byCode'],
    ]);
    // Each item counts, also an equal one.
    expect(await limitedOf('{ byCode(input: { codes: [{ value: 4 }, { value: 4 }] }) }')).toEqual([
      ['byCode'],
    ]);
    expect(calls).toHaveLength(5);
  });

  it('applies every @rateLimit of a field', async () => {
    const { post } = await serve({ engine });
    expect(await post('{ twice }', {}, A_USER)).toEqual({ data: { twice: 1 } });
    expect((await post('{ twice }', {}, { 'x-user': 'bob' })).errors).toEqual(refused(['twice']));
  });

  it('limits results of the response cache without giving one client the refusal of another', async () => {
    const { post } = await serve({ engine, responseCache: true, httpCache: { defaultMaxAge: 60 } });
    await post('{ login }');
    await post('{ login }');
    const query = '{ login free }';
    const results = await Promise.all([post(query), post(query, {}, A_USER), post(query)]);
    expect(results.map(({ errors }) => errors?.length)).toEqual([1, undefined, 1]);
  });
});

describe('@rateLimit on other transports', () => {
  it.each(['websocket', 'event-stream'] as const)('refuses a subscription over %s', async (transport) => {
    const { handler } = await serve({ clientLimits: true });
    const values = [];
    const open = () => subscribe(handler, { query: 'subscription { ticks }', transport });
    for await (const { data } of await open()) values.push(data);
    expect(values).toEqual([{ ticks: 1 }, { ticks: 2 }]);
    expect((await (await open()).next()).value).toMatchObject({ errors: [{ extensions: LIMITED }] });
  });

  it('counts queries over sockets together with those over HTTP', async () => {
    const { handler, post } = await serve({ clientLimits: true });
    await post('{ byAddress }');
    const socket = await subscribe(handler, { query: '{ login a: login }', transport: 'websocket' });
    expect((await socket.next()).value).not.toHaveProperty('errors');
    const again = await subscribe(handler, { query: '{ login }', transport: 'websocket' });
    expect((await again.next()).value).toEqual({ errors: refused(['login']), data: { login: null } });
  });

  it('limits persisted documents and tools for agents', async () => {
    const folder = makeFolder({ 'documents.json': JSON.stringify({ login: 'query login { login }' }) });
    const { send, url, calls } = await serve({
      clientLimits: true,
      documents: { from: `${folder}/documents.json` },
    });
    await send({ documentId: 'login' });
    await send({ documentId: 'login' });
    const again = await send({ documentId: 'login' });
    expect(again.body).toEqual({ errors: refused(['login']), data: { login: null } });
    const client = new Client({ name: 'agent', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
    atEnd(() => client.close());
    const result = await client.callTool({ name: 'login', arguments: {} });
    expect(JSON.stringify(result)).toContain('requested too often');
    expect(calls).toHaveLength(2);
  });

  it('by caller counts the key of clientLimits, over HTTP and for agents, and nothing for a client without one', async () => {
    const folder = makeFolder({ 'documents.json': JSON.stringify({ login: 'query login { login }' }) });
    const { post, url } = await serve({
      documents: { from: `${folder}/documents.json` },
      clientLimits: { key: ({ headers }) => headers['x-tenant']?.toString() },
    });
    const login = (user: string, tenant: string) =>
      post('{ login byAddress }', {}, { 'x-user': user, 'x-tenant': tenant });
    expect(await login('ada', 'acme')).not.toHaveProperty('errors');
    expect((await login('bob', 'acme')).errors).toEqual(refused(['byAddress']));
    expect((await login('cy', 'acme')).errors).toEqual(refused(['login'], ['byAddress']));
    expect((await login('ada', 'other')).errors).toEqual(refused(['byAddress']));
    expect(await post('{ a: login b: login c: login }')).not.toHaveProperty('errors');
    const agentOf = async (tenant: string) => {
      const client = new Client({ name: 'agent', version: '1' });
      const requestInit = { headers: { 'x-tenant': tenant } };
      await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }));
      atEnd(() => client.close());
      return JSON.stringify(await client.callTool({ name: 'login', arguments: {} }));
    };
    expect(await agentOf('acme')).toContain('requested too often');
    expect(await agentOf('third')).not.toContain('requested too often');
  });

  it('shares the buckets of processes with one Redis', async () => {
    const redis = await startRedis();
    atEnd(() => redis.kill());
    TIMES.wait = 10_000;
    const clientLimits = { redis: redis.url };
    const [one, other] = [await serve({ clientLimits }), await serve({ clientLimits })];
    expect(await one.post('{ login }')).toEqual({ data: { login: 1 } });
    expect(await other.post('{ a: login b: login }')).toEqual({
      errors: refused(['b']),
      data: { a: 1, b: null },
    });
    expect((await one.post('{ login }')).errors).toEqual(refused(['login']));
  });
});

describe('the directive @rateLimit of a schema', () => {
  const schemaWith = (directive: string): GraphQLSchema =>
    makeExecutableSchema({
      typeDefs: `${DIRECTIVE.replace('limit: Int!', 'limit: Int')} type Query { a(b: Int): Int ${directive} }`,
    });

  it.each([
    ['limit', '@rateLimit'],
    ['limit', '@rateLimit(limit: 0)'],
    ['window', '@rateLimit(limit: 1, window: "soon")'],
    ['by', '@rateLimit(limit: 1, by: "email")'],
  ])('is refused at the start if its argument "%s" is wrong: %s', (name, directive) => {
    expect(() => graphqlHTTP(schemaWith(directive), { clientLimits: true })).toThrow(
      expect.objectContaining({
        code: 'ERR_OPTION',
        message: expect.stringContaining(`the argument "${name}" of @rateLimit of "Query.a"`),
      }),
    );
  });

  it.each(['input.emial', 'input.email.name', 'input.of.x', 'emails.0'])(
    'is refused at the start if its arguments have no path %s',
    (by) => {
      const schema = makeExecutableSchema({
        typeDefs: `${DIRECTIVE} input In { email: In, of: [In] } type Query {
          a(input: In, emails: [In]): Int @rateLimit(limit: 1, by: "${by}")
        }`,
      });
      expect(() => graphqlHTTP(schema, { clientLimits: true })).toThrow(/"by" of @rateLimit of "Query.a"/);
    },
  );

  it('counts once if both SDL and extensions have it, as libraries write it', async () => {
    const both = schemaWith('@rateLimit(limit: 2, window: "1h")');
    const field = both.getQueryType()?.getFields()['a'];
    if (field === undefined) throw new Error('no field');
    const args = { limit: 2, window: 3_600_000, by: 'CALLER' };
    field.extensions = { directives: [{ name: 'rateLimit', args }], rateLimit: args };
    const handler = graphqlHTTP(both, { clientLimits: true, onError: false });
    const results = [];
    for (let i = 0; i < 3; i++) results.push((await inject(handler, { query: '{ a }' })).errors?.length ?? 0);
    expect(results).toEqual([0, 0, 1]);
  });

  it('leaves operations alone without the option', async () => {
    const { post } = await serve({ clientLimits: false });
    expect(await post('{ a: login b: login c: login }')).not.toHaveProperty('errors');
  });
});
