/** @tags graphql engine */
import type { Server } from 'node:http';
import express from 'express';
import {
  GraphQLInt,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
  type ValidationRule,
} from 'graphql';
import { type GraphQLOptions, graphqlHTTP, Upload } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { ErrorReporter } from '../../types/graphql.ts';
import type { ContextDetails, SubscriptionOptions } from '../../types/subscriptions.ts';
import { atEnd } from '../kit.ts';
import { connect, LEGACY, listen, MODERN } from '../live/client.ts';

// Each unexpected failure is hidden from the client and reported exactly once, over every transport.

const SECRET = 'sk-live-123';
const fail = (): never => {
  throw new Error(SECRET);
};
const reject = async (): Promise<never> => fail();
const rule: ValidationRule = () => fail();
const failForOperations = (_source: object, { operation }: ContextDetails): object =>
  operation === undefined ? {} : fail();

const args = { file: { type: Upload } };
const field = (resolve: () => unknown) => ({ type: GraphQLString, args, resolve });
const source = (subscribe: () => unknown, resolve = (value: unknown): unknown => value) => ({
  type: GraphQLInt,
  subscribe,
  resolve,
});
async function* one(): AsyncGenerator<number> {
  yield 1;
}
async function* oneThenError(): AsyncGenerator<number> {
  yield 1;
  fail();
}

const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: {
      ok: field(() => 'ok'),
      plain: { type: GraphQLString },
      crash: field(fail),
      rejects: field(reject),
      leaf: field(() => ({ apiKey: SECRET })),
    },
  }),
  subscription: new GraphQLObjectType({
    name: 'Subscription',
    fields: {
      fine: source(one),
      subscribeThrows: source(fail),
      subscribeRejects: source(reject),
      noIterable: source(() => ({ apiKey: SECRET })),
      sourceThrows: source(oneThenError),
      eventThrows: source(one, fail),
      eventRejects: source(one, reject),
      required: { ...source(one, () => null), type: new GraphQLNonNull(GraphQLInt) },
    },
  }),
});

let logged: jest.SpyInstance;
beforeEach(() => {
  process.env['NODE_ENV'] = 'production';
  logged = jest.spyOn(console, 'error').mockImplementation();
  jest.spyOn(console, 'warn').mockImplementation();
});
afterEach(async () => {
  jest.restoreAllMocks();
  process.env['NODE_ENV'] = 'test';
});

/** Sends an operation and returns all that the client receives, as text. */
type Transport = (server: Server, port: number, query: string) => Promise<string>;

const url = (port: number): string => `http://127.0.0.1:${port}/graphql`;

const json: Transport = async (_server, port, query) => {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url(port), { method: 'POST', headers, body: JSON.stringify({ query }) });
  return response.text();
};

const upload: Transport = async (_server, port, query) => {
  const body = new FormData();
  body.set('operations', JSON.stringify({ query, variables: { file: null } }));
  body.set('map', '{"0":["variables.file"]}');
  body.set('0', new Blob(['content']), 'note.txt');
  return (await fetch(url(port), { method: 'POST', body })).text();
};

const socket =
  (protocol: string): Transport =>
  async (_server, port, query) => {
    const client = await connect(url(port).replace('http', 'ws'), protocol);
    const type = protocol === MODERN ? 'subscribe' : 'start';
    client.send({ type: 'connection_init' });
    const accepted = client.until((message) => message['type'] === 'connection_ack').then(() => true);
    if (!(await Promise.race([accepted, client.closed.then(() => false)]).catch(() => false))) {
      accepted.catch(() => undefined);
      return (await client.closed).reason;
    }
    client.send({ id: '1', type, payload: { query } });
    await client.until((message) => ['complete', 'error'].includes(message['type'] as string));
    await client.close();
    return JSON.stringify(client.received);
  };

const TRANSPORTS: Record<string, Transport> = {
  JSON: json,
  uploads: upload,
  [MODERN]: socket(MODERN),
  [LEGACY]: socket(LEGACY),
};
const SOCKETS = [MODERN, LEGACY];

/** Starts a server with a handler, or with sockets for the schema alone. */
async function serve(handler: ReturnType<typeof graphqlHTTP> | undefined, options?: SubscriptionOptions) {
  const { server, port } = await listen(handler && ((req, res) => handler(req, res)));
  const subscriptions = attachSubscriptions(server, handler ?? schema, options);
  atEnd(async () => {
    await subscriptions.close();
    server.close();
    server.closeAllConnections();
  });
  return { server, port };
}

/** Collects the reports of `onError`. */
function collect(): { reports: unknown[]; onError: ErrorReporter } {
  const reports: unknown[] = [];
  return { reports, onError: (error) => void reports.push(error) };
}

const HIDDEN = 'Internal server error';
const QUERY = 'query Named($file: Upload) { ok(file: $file) }';
const selecting = (selection: string): string =>
  `query Named($file: Upload) { ok(file: $file) ${selection} }`;

const FAILURES: [name: string, query: string, options: GraphQLOptions][] = [
  ['a resolver throws', selecting('crash'), {}],
  ['a resolver rejects', selecting('rejects'), {}],
  ['a leaf value cannot be serialised', selecting('leaf'), {}],
  ['fieldResolver throws', selecting('plain'), { fieldResolver: fail }],
  ['context throws', QUERY, { context: fail }],
  ['context rejects', QUERY, { context: reject }],
  ['context throws for operations', QUERY, { context: failForOperations }],
  ['rootValue throws', QUERY, { rootValue: fail }],
  ['introspection throws', selecting('__schema { description }'), { introspection: fail }],
  ['formatError throws', selecting('unknown'), { formatError: fail }],
  ['engine throws', QUERY, { engine: fail }],
  ['engine rejects', QUERY, { engine: reject }],
  ['a validation rule throws', QUERY, { validationRules: [rule] }],
];
const each = FAILURES.flatMap(([name, query, options]) =>
  Object.keys(TRANSPORTS).map((transport) => [name, transport, query, options] as const),
);

it.each(each)('when %s, onError gets one report over %s', async (_name, transport, query, options) => {
  const { reports, onError } = collect();
  const { server, port } = await serve(graphqlHTTP(schema, { ...options, onError }));
  const received = await (TRANSPORTS[transport] as Transport)(server, port, query);
  expect(received).toContain(HIDDEN);
  expect(received).not.toContain(SECRET);
  expect(reports).toEqual([expect.objectContaining({ message: expect.stringContaining(SECRET) })]);
  expect(logged).not.toHaveBeenCalled();
});

it.each(each)('when %s, one error is logged over %s by default', async (_name, transport, query, options) => {
  const { server, port } = await serve(graphqlHTTP(schema, options));
  expect(await (TRANSPORTS[transport] as Transport)(server, port, query)).toContain(HIDDEN);
  expect(logged.mock.calls).toEqual([
    [expect.stringContaining('espalier: unexpected error'), expect.any(Error)],
  ]);
});

/** A client of ioredis that fails. */
const redis = { status: 'ready', duplicate: fail, get: reject, set: reject };

async function requestFromStore(onError?: (error: unknown) => void): Promise<void> {
  const handler = graphqlHTTP(schema, { documents: { apq: { redis } }, onError });
  const { port } = await serve(handler);
  const extensions = { persistedQuery: { version: 1, sha256Hash: '0'.repeat(64) } };
  const headers = { 'content-type': 'application/json' };
  await fetch(url(port), { method: 'POST', headers, body: JSON.stringify({ extensions }) });
}

it('an error outside of operations is logged with its stack and cause by default', async () => {
  await requestFromStore();
  expect(logged.mock.calls).toEqual([
    [
      'espalier: error outside of operations:',
      expect.objectContaining({
        message: expect.stringContaining('The store of persisted queries failed'),
        cause: expect.objectContaining({ message: expect.stringContaining(SECRET) }),
      }),
    ],
  ]);
});

it('when onError throws for an error outside of operations, both errors are logged', async () => {
  await requestFromStore(fail);
  expect(logged.mock.calls).toEqual([
    ['espalier: error outside of operations:', expect.any(Error)],
    ['espalier: the option "onError" failed:', new Error(SECRET)],
  ]);
});

it.each(Object.keys(TRANSPORTS))(
  'when the schema function throws, onError gets one report over %s',
  async (name) => {
    const { reports, onError } = collect();
    const { server, port } = await serve(graphqlHTTP(fail, { onError }));
    expect(await (TRANSPORTS[name] as Transport)(server, port, QUERY)).toContain(HIDDEN);
    expect(reports).toEqual([new Error(SECRET)]);
  },
);

it.each(FAILURES.filter(([name]) => /context|rootValue|formatError|engine|rule|introspection/.test(name)))(
  'when %s under Express, the error handlers and onError get the error once',
  async (_name, query, options) => {
    const { reports, onError } = collect();
    const handled: unknown[] = [];
    const app = express().use('/graphql', graphqlHTTP(schema, { ...options, onError }));
    app.use((error: unknown, _req: unknown, res: express.Response, _next: unknown) => {
      handled.push(error);
      res.status(500).end();
    });
    const { server, port } = await listen(app);
    atEnd(() => void server.close());
    await json(server, port, query.replace('($file: Upload)', '').replace('(file: $file)', ''));
    expect(reports).toEqual([new Error(SECRET)]);
    // An engine that fails is a failed operation, whose response contains the error.
    expect(handled).toEqual(handled.length === 0 ? [] : reports);
  },
);

const STREAMS: [name: string, query: string, options: SubscriptionOptions][] = [
  ['subscribe throws', 'subscription { subscribeThrows }', {}],
  ['subscribe rejects', 'subscription { subscribeRejects }', {}],
  ['subscribe returns no iterable', 'subscription { noIterable }', {}],
  ['a source throws after an event', 'subscription { sourceThrows }', {}],
  ['the resolver of an event throws', 'subscription { eventThrows }', {}],
  ['the resolver of an event rejects', 'subscription { eventRejects }', {}],
  ['an event is null for a non-null type', 'subscription { required }', {}],
  ['share throws', 'subscription { fine }', { share: fail }],
  ['onConnect throws', '{ ok }', { onConnect: fail }],
  ['onConnect rejects', '{ ok }', { onConnect: reject }],
  ['context throws', '{ ok }', { context: fail }],
  ['context throws for operations', 'subscription { fine }', { context: failForOperations }],
];
const onSockets = STREAMS.flatMap(([name, query, options]) =>
  SOCKETS.flatMap((protocol) => [
    ['a handler', name, protocol, query, options] as const,
    ['a schema', name, protocol, query, options] as const,
    ...(options.share === undefined
      ? [['a handler and share', name, protocol, query, { ...options, share: () => 'all' }] as const]
      : []),
  ]),
);

it.each(onSockets)(
  'with %s, when %s, there is one report over %s',
  async (target, name, protocol, query, options) => {
    const { reports, onError } = collect();
    const { server, port } = await (target === 'a schema'
      ? serve(undefined, options)
      : serve(graphqlHTTP(schema, { onError }), options));
    const received = await (TRANSPORTS[protocol] as Transport)(server, port, query);
    expect(received).toContain(name.includes('non-null') ? 'Cannot return null' : HIDDEN);
    expect(received).not.toContain(SECRET);
    expect(reports).toEqual(target === 'a schema' ? [] : [expect.any(Error)]);
    expect(logged).toHaveBeenCalledTimes(target === 'a schema' ? 1 : 0);
  },
);

it.each(SOCKETS)('when context throws for an event, onError gets one report over %s', async (protocol) => {
  let calls = 0;
  // The connection, the operation, the event.
  const context = (): object => (++calls === 3 ? fail() : {});
  const { reports, onError } = collect();
  const { server, port } = await serve(graphqlHTTP(schema, { onError, context }), { contextPer: 'event' });
  expect(await (TRANSPORTS[protocol] as Transport)(server, port, 'subscription { fine }')).toContain(HIDDEN);
  expect(reports).toEqual([new Error(SECRET)]);
});

it('attachSubscriptions with a schema logs an unexpected error once', async () => {
  const { server, port } = await serve(undefined);
  expect(await socket(MODERN)(server, port, '{ crash }')).toContain(HIDDEN);
  expect(logged).toHaveBeenCalledTimes(1);
});
