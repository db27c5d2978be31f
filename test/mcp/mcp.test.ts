/** @tags graphql engine */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request, type Server } from 'node:http';
import http2, { type SecureServerOptions } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { makeExecutableSchema } from '@graphql-tools/schema';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import express from 'express';
import { GraphQLError } from 'graphql';
import { Agent, fetch as undiciFetch } from 'undici';
import { authTypeDefs } from '../../middleware/auth.ts';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { inspect } from '../../middleware/inspect.ts';
import { mcp } from '../../middleware/mcp.ts';
import { createServer } from '../../middleware/server.ts';
import { inject } from '../../middleware/testing.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import type { McpOptions } from '../../types/mcp.ts';
import { listen, makeFolder } from '../kit.ts';
import { until } from '../until.ts';

const TLS = join(__dirname, '../fixtures/tls');

const typeDefs = `
  """A customer of the shop."""
  type Customer { id: ID!, name: String!, token: String, orders(first: Int = 3): [Order!]! }
  type Order { id: ID!, total: Float! }
  input Filter { name: String, inner: Filter }
  input Unrelated { a: Int }
  type Query {
    customer(id: ID!): Customer
    customers(filter: Filter): [Customer!]!
    unrelated(by: Unrelated): Int
    me: String
    broken: Int
    secret: String @requiresScopes(scopes: [["secrets:read"]])
    tenant(id: ID!): String
  }
  type Mutation { rename(id: ID!, to: String!): Customer }
`;
const ada = { id: '1', name: 'Ada', token: 't0k', orders: [{ id: 'o1', total: 9.5 }] };
const seen: unknown[] = [];
const schema = makeExecutableSchema({
  typeDefs: [authTypeDefs, typeDefs],
  resolvers: {
    Query: {
      customer: (_root, { id }) => (id === '1' ? ada : null),
      customers: () => [ada],
      me: (_root, _args, { user }) => user ?? null,
      broken: () => {
        throw new Error('secret detail');
      },
      secret: () => 'the secret',
      tenant: (_root, { id }) => `tenant ${id}`,
    },
    Mutation: {
      rename: (_root, { to }) => {
        if (to === '') throw new GraphQLError('The name is empty');
        return { ...ada, name: to };
      },
    },
  },
});

const documents = {
  find: `"""Finds a customer by its id."""
    query findCustomer($id: ID!) { customer(id: $id) { name _token: token } }`,
  list: 'query listCustomers($filter: Filter) { customers(filter: $filter) { name } }',
  rename: 'mutation renameCustomer($id: ID!, $to: String!) { rename(id: $id, to: $to) { name } }',
  me: 'query whoAmI { me }',
  broken: 'query fail { broken }',
  secret: 'query readSecret { secret }',
  tenant: 'query myTenant($tenant: ID!) { tenant(id: $tenant) }',
  anonymous: '{ me }',
};

let server: Server;
let url: URL;
const clients: Client[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  seen.length = 0;
});

const NAMED = { name: 'shop', version: '1.4.0' };

interface Setup {
  readonly graphql?: Partial<GraphQLOptions>;
  readonly options?: Partial<McpOptions>;
}

async function serve({ graphql, options }: Setup = {}) {
  const handler = graphqlHTTP(schema, {
    context: (req: IncomingMessage, { transport }: { transport: string }) => {
      seen.push(transport);
      return { user: req.headers['x-user'] };
    },
    documents: { from: documents },
    auth: {
      scopes: (req) => (req.headers as Record<string, string>)['x-scopes']?.split(' ') ?? null,
    },
    onError: false,
    ...graphql,
  });
  const endpoint = mcp(handler, { ...NAMED, ...options });
  const app = express();
  app.use('/graphql', handler);
  app.use('/mcp', endpoint);
  server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  return { handler, endpoint };
}

type ClientOptions = NonNullable<ConstructorParameters<typeof Client>[1]>;
/** The current version of the protocol, which the client has to be told. */
const CURRENT: ClientOptions = { versionNegotiation: { mode: 'auto' } };

async function connect(
  headers: Record<string, string> = {},
  options: ClientOptions = CURRENT,
): Promise<Client> {
  const client = new Client({ name: 'test-agent', version: '3.2.1' }, options);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  clients.push(client);
  return client;
}

const call = (client: Client, name: string, args: Record<string, unknown> = {}) =>
  client.callTool({ name, arguments: args });

describe('mcp with the official client', () => {
  it('mcp offers a tool for each named operation, with its description and the definitions of its variables', async () => {
    await serve();
    const { tools } = await (await connect()).listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      'findCustomer',
      'listCustomers',
      'renameCustomer',
      'whoAmI',
      'fail',
      'readSecret',
      'myTenant',
    ]);
    const byName = new Map(tools.map((tool) => [tool.name, tool]));
    expect(byName.get('findCustomer')).toMatchObject({
      title: 'Find customer',
      description: 'Finds a customer by its id.',
      inputSchema: { type: 'object', required: ['id'], additionalProperties: false },
      annotations: { readOnlyHint: true, destructiveHint: false },
    });
    expect(Object.keys(byName.get('listCustomers')?.inputSchema.$defs ?? {})).toEqual(['Input.Filter']);
    expect(byName.get('findCustomer')?.inputSchema).not.toHaveProperty('$defs');
    expect(byName.get('renameCustomer')?.annotations).toMatchObject({
      readOnlyHint: false,
      destructiveHint: true,
    });
  });

  it('a call runs the operation with the context of the request, and hides keys that begin with an underscore', async () => {
    await serve();
    const client = await connect({ 'x-user': 'grace' });
    expect(await call(client, 'whoAmI')).toMatchObject({ structuredContent: { data: { me: 'grace' } } });
    const found = await call(client, 'findCustomer', { id: '1' });
    expect(found.structuredContent).toEqual({ data: { customer: { name: 'Ada' } } });
    expect(JSON.stringify(found.content)).not.toContain('t0k');
    expect(found._meta).toMatchObject({
      'espalier/response': { data: { customer: { name: 'Ada', _token: 't0k' } } },
    });
    expect(new Set(seen)).toEqual(new Set(['mcp']));
  });

  it('a function of the application that never settles ends with the timeout of the operation', async () => {
    const pending = (): Promise<never> => new Promise(() => undefined);
    const late = {
      isError: true,
      structuredContent: { errors: [{ extensions: { code: 'OPERATION_TIMEOUT' } }] },
    };
    await serve({ graphql: { timeout: 50, context: pending } });
    expect(await call(await connect(), 'whoAmI')).toMatchObject(late);
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
    const auth = { scopes: () => [], schemaFor: pending };
    await serve({ graphql: { timeout: 50, auth } });
    expect(await call(await connect(), 'whoAmI')).toMatchObject(late);
  });

  it('an operation whose agent disconnects before its context is there does not run, and nothing is reported', async () => {
    const reports: unknown[] = [];
    const steps: string[] = [];
    let proceed = (): void => undefined;
    const context = async (req: IncomingMessage): Promise<object> => {
      if (req.headers['x-user'] !== 'late') return {};
      steps.push('context');
      req.socket.once('close', () => steps.push('disconnected'));
      await new Promise<void>((resolve) => {
        proceed = resolve;
      });
      return {};
    };
    await serve({
      graphql: {
        context,
        onOperation: ({ operation }) => void steps.push(operation.name?.value ?? ''),
        onError: (error) => void reports.push(error),
      },
    });
    const abort = new AbortController();
    const body = {
      method: 'tools/call',
      params: { name: 'renameCustomer', arguments: { id: '1', to: 'Eve' } },
    };
    const refused = fetch(url, {
      method: 'POST',
      signal: abort.signal,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'x-user': 'late',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }),
    }).catch((error: Error) => error.name);
    await until(() => steps.includes('context'));
    abort.abort();
    expect(await refused).toBe('AbortError');
    await until(() => steps.includes('disconnected'));
    proceed();
    await call(await connect(), 'whoAmI');
    expect(steps).toEqual(['context', 'disconnected', 'whoAmI']);
    expect(reports).toEqual([]);
  });

  it('errors of GraphQL become isError, and unexpected ones are masked and reported once', async () => {
    const reports: unknown[][] = [];
    process.env['NODE_ENV'] = 'production';
    await serve({ graphql: { onError: (...report) => void reports.push(report) } });
    process.env['NODE_ENV'] = 'test';
    const client = await connect();
    expect(await call(client, 'renameCustomer', { id: '1', to: '' })).toMatchObject({
      isError: true,
      structuredContent: { errors: [{ message: 'The name is empty' }] },
    });
    expect(await call(client, 'findCustomer', {})).toMatchObject({ isError: true });
    const broken = await call(client, 'fail');
    expect(broken).toMatchObject({
      isError: true,
      structuredContent: { errors: [{ message: 'Internal server error' }] },
    });
    expect(JSON.stringify(broken)).not.toContain('secret detail');
    expect(reports.map(([error]) => (error as Error).message)).toEqual(['secret detail']);
    expect(reports[0]?.[1]).toMatchObject({ transport: 'mcp', operationName: 'fail' });
  });

  it('the hooks, budgets and counts of the handler apply to calls, with the name of the agent', async () => {
    const transports: string[] = [];
    const { handler } = await serve({
      graphql: {
        onOperation: ({ transport, operationName }) => {
          transports.push(`${transport} ${operationName}`);
          return operationName === 'whoAmI' ? { errors: [new GraphQLError('Not now')] } : undefined;
        },
        budget: { limit: 2, window: '1h', key: () => 'all', unit: 'operations' },
        usage: {},
      },
    });
    const client = await connect();
    expect(await call(client, 'whoAmI')).toMatchObject({
      isError: true,
      structuredContent: { errors: [{ message: 'Not now' }] },
    });
    expect((await call(client, 'findCustomer', { id: '1' })).isError).toBeUndefined();
    expect(await call(client, 'findCustomer', { id: '1' })).toMatchObject({ isError: true });
    expect(transports).toEqual(['mcp whoAmI', 'mcp findCustomer']);
    const [clientsOfDay] = Object.values((await handler.usage.report()).days);
    expect(clientsOfDay).toMatchObject({ 'test-agent@3.2.1': { operations: 1 } });
  });

  it('agents of the version before list and call tools', async () => {
    await serve();
    const client = await connect({ 'x-user': 'grace' }, {});
    expect(client.getNegotiatedProtocolVersion?.()).toMatch(/^2025-/);
    expect((await client.listTools()).tools.length).toBe(7);
    expect(await call(client, 'whoAmI')).toMatchObject({ structuredContent: { data: { me: 'grace' } } });
  });

  it('a call works behind express.json()', async () => {
    const handler = graphqlHTTP(schema, {
      documents: { from: documents },
      context: {},
      auth: { scopes: () => null },
    });
    const app = express().use(express.json()).use('/mcp', mcp(handler, NAMED));
    server = createServer(app).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
    expect((await call(await connect(), 'whoAmI')).structuredContent).toEqual({ data: { me: null } });
  });

  it.each([
    ['findCustomer', { id: '1', nmae: 'Ada' }, 'nmae'],
    ['findCustomer', {}, 'id'],
    ['findCustomer', { id: { not: 'text' } }, 'id'],
    ['listCustomers', { filter: { inner: { naem: 'Ada' } } }, 'naem'],
    ['listCustomers', { fliter: { name: 'Ada' } }, 'fliter'],
  ])(
    'the call of %s with %j, which its inputSchema refuses, says so to the model and runs nothing',
    async (name, args, word) => {
      const reports: unknown[] = [];
      await serve({ graphql: { onError: (error) => void reports.push(error) } });
      const result = await call(await connect(), name, args);
      expect(result).toMatchObject({
        isError: true,
        structuredContent: { errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] },
      });
      expect(JSON.stringify(result.content)).toContain(word);
      expect([seen, reports]).toEqual([[], []]);
    },
  );

  it('null for an optional argument, and an integer for an ID, fit the inputSchema', async () => {
    await serve();
    const client = await connect();
    expect((await call(client, 'listCustomers', { filter: null })).isError).toBeUndefined();
    expect((await call(client, 'findCustomer', { id: 1 })).isError).toBeUndefined();
  });

  it('each call of a batch has its own response, also beside one that needs a scope', async () => {
    await serve({ options: { resourceMetadata: { authorizationServers: ['https://login.example.com'] } } });
    const message = (id: number, name: string, args: object) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name, arguments: args },
    });
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: ` ${JSON.stringify([
        message(1, 'renameCustomer', { id: '1', to: 'Grace' }),
        message(2, 'readSecret', {}),
      ])}`,
    });
    const text = await response.text();
    expect([response.status, text]).toEqual([200, expect.stringContaining('Grace')]);
    expect(text).toContain('"id":2');
    expect(text).toMatch(/UNAUTHENTICATED|FORBIDDEN/);
  });

  it('an unknown tool is an error of the protocol', async () => {
    await serve();
    await expect(call(await connect(), 'dropEverything')).rejects.toThrow(
      'There is no tool "dropEverything"',
    );
  });
});

describe('the tools of mcp', () => {
  it('agents that wait for changes are told when the documents were read again', async () => {
    const directory = makeFolder({ 'one.graphql': 'query one { me }' });
    const { endpoint } = await serve({ graphql: { documents: { from: directory } } });
    const lists: string[][] = [];
    const onChanged = (_error: unknown, tools: readonly { name: string }[] | null): void =>
      void lists.push((tools ?? []).map(({ name }) => name));
    const client = await connect({}, { ...CURRENT, listChanged: { tools: { onChanged } } });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['one']);
    writeFileSync(join(directory, 'two.graphql'), 'query two { me }');
    await until(() => lists.length > 0);
    expect(lists[0]).toEqual(['one', 'two']);
    expect(endpoint.tools().map(({ name }) => name)).toEqual(['one', 'two']);
  });

  it('the tools follow a replaced schema', async () => {
    const { handler } = await serve();
    const client = await connect();
    expect((await client.listTools()).tools.length).toBe(7);
    await handler.replace(
      makeExecutableSchema({
        typeDefs: 'type Query { me: String }',
        resolvers: { Query: { me: () => 'of the new schema' } },
      }),
    );
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['whoAmI']);
    expect((await call(client, 'whoAmI')).structuredContent).toEqual({ data: { me: 'of the new schema' } });
  });

  it('mcp warns of more than 40 tools, with the tokens that they cost', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 41 }, (_, index) => [`id${index}`, `query tool${index} { me }`]),
    );
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    await serve({ graphql: { documents: { from: many } } });
    expect(warned.mock.calls[0]?.[0]).toMatch(/41 tools take about \d+ tokens/);
    warned.mockRestore();
  });

  it('inspect lists the tools', async () => {
    await serve();
    const app = express().use('/inspect', inspect());
    const { body } = await inject(app, { path: '/inspect/figures.json' });
    const { tools } = JSON.parse(String(body));
    expect(tools).toContainEqual({ name: 'findCustomer', description: 'Finds a customer by its id.' });
  });

  it('mcp needs the name and the version of the application, and has the origins and hosts of its handler', () => {
    const handler = graphqlHTTP(schema, { documents: { from: documents }, auth: { scopes: () => null } });
    const mistake = (options: object) => expect(() => mcp(handler, options as McpOptions));
    mistake({ version: '1.4.0' }).toThrow(
      'option "name" is undefined; accepted: the name of the application',
    );
    mistake({ name: 'shop', version: '' }).toThrow('option "version" is ""');
    mistake({ ...NAMED, allowedOrigins: [] }).toThrow('the endpoint has that of graphqlHTTP');
  });

  it('mcp refuses handlers without a list of documents', () => {
    expect(() => mcp(graphqlHTTP(schema, { auth: { scopes: () => null } }), NAMED)).toThrow(
      '"documents.from"',
    );
  });
});

/** Posts a message as agents of the version before do. */
const post = (headers: Record<string, string>, body: string): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      ...headers,
    },
    body,
  });

describe('the security of mcp', () => {
  const list = (headers: Record<string, string> = {}, message: object = {}): Promise<Response> =>
    post(headers, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', ...message }));

  it.each([
    ['http://evil.example', undefined, 403],
    ['https://agent.example', undefined, 200],
    ['null', undefined, 403],
    [undefined, 'evil.example', 403],
    ['http://evil.example', 'evil.example', 403],
  ])('the origin %s with the host %s gets %d', async (origin, host, status) => {
    await serve({ graphql: { allowedOrigins: ['https://agent.example'] } });
    const { port } = server.address() as AddressInfo;
    const response = await send(port, {
      ...(origin === undefined ? {} : { origin }),
      ...(host === undefined ? {} : { host: `${host}:${port}` }),
    });
    expect(response).toBe(status);
  });

  it('a host of allowedHosts is accepted, and loopback is not then', async () => {
    await serve({ graphql: { allowedHosts: ['api.example.com'] } });
    const { port } = server.address() as AddressInfo;
    expect(await send(port, { host: 'api.example.com' })).toBe(200);
    expect(await send(port, {})).toBe(403);
  });

  it('a tool that needs a scope gets 401 and 403 with the metadata of the resource', async () => {
    await serve({ options: { resourceMetadata: { authorizationServers: ['https://login.example.com'] } } });
    const body = { method: 'tools/call', params: { name: 'readSecret', arguments: {} } };
    const anonymous = await list({}, body);
    expect(anonymous.status).toBe(401);
    const metadata = `${url}/.well-known/oauth-protected-resource`;
    expect(anonymous.headers.get('www-authenticate')).toBe(
      `Bearer scope="secrets:read", resource_metadata="${metadata}"`,
    );
    const narrow = await list({ 'x-scopes': 'other' }, body);
    expect(narrow.status).toBe(403);
    expect(narrow.headers.get('www-authenticate')).toContain('error="insufficient_scope"');
    expect(await (await fetch(metadata)).json()).toEqual({
      resource: String(url),
      authorization_servers: ['https://login.example.com'],
      scopes_supported: ['secrets:read'],
      bearer_methods_supported: ['header'],
    });
    expect(await (await list({ 'x-scopes': 'secrets:read' }, body)).text()).toContain('the secret');
  });

  it('requests after close() get 503 without a report', async () => {
    const reports: unknown[] = [];
    const { endpoint } = await serve({ graphql: { onError: (error) => void reports.push(error) } });
    expect((await list()).status).toBe(200);
    await endpoint.close();
    expect([(await list()).status, (await list()).status, reports]).toEqual([503, 503, []]);
  });

  it('a body of more than a mebibyte gets 413, one that is no JSON 400, and the endpoint stays usable', async () => {
    await serve();
    expect((await list({}, { padding: 'x'.repeat(1_100_000) })).status).toBe(413);
    const broken = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: '{',
    });
    expect(broken.status).toBe(400);
    expect((await fetch(url)).status).toBe(405);
    expect((await list()).status).toBe(200);
  });

  it('other methods get 405, and a host of which no URL can be made is no error of the server', async () => {
    const reports: unknown[] = [];
    await serve({
      graphql: { onError: (error) => void reports.push(error), allowedHosts: ['a%b', 'a<b'] },
    });
    const { port } = server.address() as AddressInfo;
    for (const method of ['TRACE', 'OPTIONS', 'GET', 'DELETE', 'PUT']) {
      expect([method, await send(port, { host: 'a%b' }, method)]).toEqual([method, 405]);
    }
    expect([await send(port, { host: 'a%b' }), await send(port, { host: 'a<b' })]).toEqual([200, 200]);
    expect(reports).toEqual([]);
  });

  it.each<[string, express.RequestHandler]>([
    [
      'an empty object for a body that it did not read',
      (req, _res, next) => {
        req.body = {};
        next();
      },
    ],
    ['a text', express.text({ type: '*/*' })],
    ['bytes', express.raw({ type: '*/*' })],
  ])('a call works behind a parser that leaves %s', async (_name, parser) => {
    const { endpoint } = await serve();
    const app = express().use(parser).use('/mcp', endpoint);
    server.removeAllListeners('request').on('request', app);
    expect((await call(await connect({ 'x-user': 'grace' }), 'whoAmI')).structuredContent).toEqual({
      data: { me: 'grace' },
    });
  });

  it('the official client works over HTTP/2', async () => {
    const { endpoint } = await serve();
    const [key, cert] = ['key.pem', 'cert.pem'].map((name) => readFileSync(join(TLS, name)));
    const versions = new Set<string>();
    const secure = http2.createSecureServer({ key, cert } as SecureServerOptions, (req, res) => {
      versions.add(req.httpVersion);
      endpoint(req as never, res as never, () => res.end());
    });
    const { port } = await listen(secure);
    const dispatcher = new Agent({ allowH2: true, connect: { rejectUnauthorized: false } });
    const overHttp2 = (target: string | URL, init?: RequestInit): Promise<Response> =>
      undiciFetch(target, { ...init, dispatcher } as never) as never;
    for (const options of [CURRENT, {}]) {
      const client = new Client({ name: 'test-agent', version: '3.2.1' }, options);
      const address = new URL(`https://localhost:${port}/`);
      await client.connect(
        new StreamableHTTPClientTransport(address, {
          fetch: overHttp2,
          requestInit: { headers: { 'x-user': 'grace' } },
        }),
      );
      expect((await client.listTools()).tools.length).toBe(7);
      expect((await call(client, 'whoAmI')).structuredContent).toEqual({ data: { me: 'grace' } });
      await client.close();
    }
    expect([...versions]).toEqual(['2.0']);
    await dispatcher.destroy();
  });

  it('a call over HTTP/2 works', async () => {
    const handler = graphqlHTTP(schema, {
      documents: { from: documents },
      context: {},
      auth: { scopes: () => null },
    });
    const endpoint = mcp(handler, NAMED);
    const h2 = http2.createServer((req, res) => void endpoint(req as never, res as never, () => res.end()));
    const { port } = await listen(h2);
    const session = http2.connect(`http://127.0.0.1:${port}`);
    const stream = session.request({
      ':method': 'POST',
      ':path': '/',
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
    });
    stream.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoAmI' } }));
    let text = '';
    for await (const chunk of stream.setEncoding('utf8')) text += chunk;
    expect(text).toContain('"structuredContent":{"data":{"me":null}}');
    session.close();
    h2.close();
    server = createServer(express());
    await listen(server);
  });
});

/** Lists the tools with headers that fetch does not let us set, and returns the status. */
async function send(
  port: number,
  headers: Record<string, string>,
  method = 'POST',
): Promise<number | undefined> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
  const req = request({
    port,
    host: '127.0.0.1',
    path: '/mcp',
    method,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      ...headers,
    },
  });
  req.end(method === 'TRACE' ? undefined : body);
  const [response] = (await once(req, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}
