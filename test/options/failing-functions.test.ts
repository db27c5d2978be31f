/** @tags graphql engine */
import { createServer, type RequestListener } from 'node:http';
import { attachSubscriptions, graphqlHTTP, staticFiles, Upload } from 'espalier';
import express, { type ErrorRequestHandler } from 'express';
import {
  buildSchema,
  type GraphQLFormattedError,
  GraphQLInt,
  GraphQLObjectType,
  GraphQLSchema,
} from 'graphql';
import request from 'supertest';
import WebSocket from 'ws';
import { listen } from '../kit.ts';

// Option functions that fail: the process survives, every request gets a response, and access stays denied.

const schema = buildSchema('type Query { hello: String, broken: String }');
const rootValue = {
  hello: 'world',
  broken: () => {
    throw new Error('secret');
  },
};

const throws = (): never => {
  throw new Error('a bug');
};
const throwsUndefined = (): never => {
  throw undefined;
};
/** Rejects later. The rejection would end the process if the package did not catch it. */
const rejects = (): never => Promise.reject(new Error('a bug')) as never;
const promises = (): never => Promise.resolve(true) as never;

type Failing = [string, () => never];
const FAILING: Failing[] = [
  ['throws', throws],
  ['throws undefined', throwsUndefined],
];
const REJECTING: Failing = ['rejects', rejects];
const PROMISING: Failing = ['returns a promise', promises];

const remember =
  (failures: unknown[]): ErrorRequestHandler =>
  (error, _req, res, _next) => {
    failures.push(error);
    res.status(599).end();
  };

type Handler = ReturnType<typeof graphqlHTTP>;

// Outside production the responses contain the messages of unexpected errors.
beforeAll(() => {
  process.env['NODE_ENV'] = 'production';
  jest.spyOn(console, 'error').mockImplementation();
});
afterAll(() => {
  process.env['NODE_ENV'] = 'test';
  jest.restoreAllMocks();
});

const introspect = '{ __schema { queryType { name } } }';
const cases: [string, (fail: () => never) => Handler, string | object][] = [
  ['context', (context) => graphqlHTTP(schema, { rootValue, context }), { query: '{ hello }' }],
  ['the schema', (source) => graphqlHTTP(source), { query: '{ hello }' }],
  ['rootValue', (root) => graphqlHTTP(schema, { rootValue: root }), { query: '{ hello }' }],
  ['introspection', (introspection) => graphqlHTTP(schema, { introspection }), { query: introspect }],
  ['formatError', (formatError) => graphqlHTTP(schema, { rootValue, formatError }), { query: '{ broken }' }],
  ['formatError for a document', (formatError) => graphqlHTTP(schema, { formatError }), { query: '{ no }' }],
  ['formatError for a refusal', (formatError) => graphqlHTTP(schema, { formatError }), '{bad'],
];
const mayWait = ['context', 'the schema'];

const sendRequest = (app: RequestListener, body: string | object) =>
  request(app).post('/graphql').set('content-type', 'application/json').send(body);

describe.each(cases)('%s of graphqlHTTP', (name, make, body) => {
  it.each([...FAILING, REJECTING, ...(mayWait.includes(name) ? [] : [PROMISING])])(
    `graphqlHTTP sends a masked error below an Express app and on a bare server when ${name} %s`,
    async (_how, fail) => {
      const failures: unknown[] = [];
      const bare = make(fail);
      const apps: RequestListener[] = [
        express().use('/graphql', make(fail)).use(remember(failures)),
        (req, res) => bare(req, res),
      ];
      for (const app of apps) {
        const { text } = await sendRequest(app, body);
        expect(text).toContain('Internal server error');
        expect(text).not.toMatch(/a bug|secret/);
      }
      expect(failures).toEqual([]);
    },
  );
});

describe.each([undefined, null, 42, 'text'])('a formatError that returns %p', (value) => {
  it(`graphqlHTTP masks the error and reports the mistake when formatError returns ${String(value)}`, async () => {
    const reports: unknown[] = [];
    const formatError = () => value as unknown as GraphQLFormattedError;
    const onError = (error: unknown) => reports.push(error);
    const { text } = await sendRequest(
      express().use('/graphql', graphqlHTTP(schema, { formatError, onError })),
      { query: '{ no }' },
    );
    expect(text).toContain('Internal server error');
    expect(reports).toEqual([expect.objectContaining({ code: 'ERR_OPTION' })]);
  });
});

describe('the option graphiql', () => {
  it.each([
    ...FAILING,
    REJECTING,
    ['returns text', () => 'yes' as never],
    ['returns a wrong option', () => ({ theme: 'pink' }) as never],
  ] satisfies Failing[])(
    'graphqlHTTP masks the error and reports it once when the graphiql function %s',
    async (_how, graphiql) => {
      const [failures, reports]: [unknown[], unknown[]] = [[], []];
      const handler = graphqlHTTP(schema, { graphiql, onError: (error) => void reports.push(error) });
      const app = express().use('/graphql', handler).use(remember(failures));
      const { body } = await request(app).get('/graphql').set('accept', 'text/html').expect(500);
      expect(body.errors[0].message).toBe('Internal server error');
      expect(reports).toEqual([expect.any(Error)]);
      expect(failures).toEqual([]);
    },
  );
});

describe('the option accept of uploads', () => {
  it.each([...FAILING, REJECTING, PROMISING])(
    'graphqlHTTP refuses the file when the accept function of uploads %s',
    async (_how, accept) => {
      const failures: unknown[] = [];
      const upload = new GraphQLSchema({
        query: new GraphQLObjectType({ name: 'Query', fields: { a: { type: GraphQLInt } } }),
        mutation: new GraphQLObjectType({
          name: 'Mutation',
          fields: { put: { type: GraphQLInt, args: { f: { type: Upload } } } },
        }),
      });
      const put = jest.fn();
      const handler = graphqlHTTP(upload, { rootValue: { put }, uploads: { accept } });
      await request(express().use('/graphql', handler).use(remember(failures)))
        .post('/graphql')
        .field('operations', '{"query":"mutation($f:Upload){put(f:$f)}","variables":{"f":null}}')
        .field('map', '{"0":["variables.f"]}')
        .attach('0', Buffer.from('x'), 'x.txt')
        .expect(500);
      expect(put).not.toHaveBeenCalled();
      expect(failures).toEqual([]);
    },
  );
});

describe.each([
  ['cacheControl', (fail: () => never) => staticFiles('test', { cacheControl: fail })],
  ['setHeaders', (fail: () => never) => staticFiles('test', { setHeaders: fail })],
])('%s of staticFiles', (name, make) => {
  it.each([...FAILING, ...(name === 'setHeaders' ? [] : [PROMISING])])(
    `staticFiles passes the error to the error handlers when ${name} %s`,
    async (_how, fail) => {
      const failures: unknown[] = [];
      await request(express().use(make(fail)).use(remember(failures)))
        .get('/until.ts')
        .expect(599);
      expect(failures).toEqual([expect.any(Error)]);
    },
  );
});

it('a bare server whose formatError throws continues to serve the connection', async () => {
  const handler = graphqlHTTP(schema, { rootValue, formatError: throws });
  const server = createServer((req, res) => handler(req, res));
  const { port } = await listen(server);
  const url = `http://127.0.0.1:${port}/`;
  const post = (body: string) =>
    fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const refused = await post('{bad');
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { errors: [{ message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR' } }] },
  ]);
  const served = await post('{"query":"{ hello }"}');
  expect(await served.json()).toEqual({ data: { hello: 'world' } });
});

describe.each([
  ['graphql-transport-ws', 'subscribe', undefined],
  ['graphql-transport-ws', 'subscribe', () => 'all'],
  ['graphql-ws', 'start', undefined],
])('a formatError that throws, over %s', (protocol, type, share) => {
  const later = async (): Promise<never> => {
    await null;
    throw new Error('secret');
  };
  const live = buildSchema(
    'type Query { hello: String, later: String } type Subscription { never: Int, ends: Int, fails: Int }',
  );
  const root = {
    hello: 'world',
    later,
    never: later,
    ends: async function* () {
      yield { ends: 1 };
      throw new Error('secret');
    },
    fails: async function* () {
      yield { fails: later };
    },
  };

  it.each([
    '{ unknown }',
    '{ later }',
    'subscription { never }',
    'subscription { ends }',
    'subscription { fails }',
  ])(
    'attachSubscriptions sends a masked error for %s and keeps the connection when formatError throws',
    async (query) => {
      const server = createServer();
      const { socketUrl } = await listen(server, '/graphql');
      const handler = graphqlHTTP(live, { rootValue: root, formatError: throws });
      const subscriptions = attachSubscriptions(server, handler, share && { share });
      const socket = new WebSocket(socketUrl, protocol);
      const sendMessage = (message: object) => socket.send(JSON.stringify(message));
      const received: { id?: string; type: string; payload?: unknown }[] = [];
      socket.on('open', () => sendMessage({ type: 'connection_init' }));
      const done = new Promise<void>((resolve, reject) => {
        socket.on('close', () => reject(new Error('the socket was closed')));
        socket.on('message', (text) => {
          const message = JSON.parse(String(text));
          received.push(message);
          if (message.type === 'connection_ack') sendMessage({ id: '1', type, payload: { query } });
          const hasEnded = message.type === 'error' || message.type === 'complete';
          if (message.id === '1' && hasEnded) sendMessage({ id: '2', type, payload: { query: '{ hello }' } });
          if (message.id === '2' && message.type === 'complete') resolve();
        });
      });
      await done;
      const masked = { message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR' } };
      const errors = received.flatMap((message) => {
        const { payload } = message as { readonly payload?: { readonly errors?: readonly unknown[] } };
        return message.type === 'error' ? [payload].flat() : (payload?.errors ?? []);
      });
      expect(errors).toEqual([expect.objectContaining(masked)]);
      socket.removeAllListeners('close').terminate();
      await subscriptions.close();
    },
  );
});
