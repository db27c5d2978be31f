/** @tags graphql */
import http from 'node:http';
import express, { type RequestHandler } from 'express';
import { buildSchema, GraphQLNonNull, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import multer from 'multer';
import { type GraphQLOptions, graphqlHTTP, Upload, type UploadedFile } from '../../middleware/graphql.ts';
import { inspect } from '../../middleware/inspect.ts';
import { staticFiles } from '../../middleware/static.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { ContextDetails } from '../../types/subscriptions.ts';
import { until } from '../until.ts';
import { closing, form, operate, post, send, untyped, upgrade, withLog } from './clients.ts';

// Mistakes in requests, in resolvers and in the order of middleware, in families, each with one snapshot of what the user
// sees: status and body, close code and reason, and the log.

const text = { type: GraphQLString };
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: {
      hello: { ...text, args: { name: text }, resolve: (_root, { name }) => `Hello ${name ?? 'world'}` },
      crash: {
        ...text,
        resolve: () => {
          throw new Error('connect ECONNREFUSED 127.0.0.1:5432');
        },
      },
      leaf: { ...text, resolve: () => ({ id: 7 }) },
      required: { type: new GraphQLNonNull(GraphQLString) },
    },
  }),
  mutation: new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      wipe: { ...text, resolve: () => 'wiped' },
      store: {
        ...text,
        args: { file: { type: Upload } },
        resolve: (_root, { file }: { file: UploadedFile }) => file.text(),
      },
    },
  }),
  subscription: new GraphQLObjectType({
    name: 'Subscription',
    fields: {
      noIterable: { ...text, subscribe: () => 'events' },
      tick: {
        ...text,
        async *subscribe() {
          yield { tick: '1' };
        },
      },
    },
  }),
});

const api = (options: GraphQLOptions = {}) => express().use('/graphql', graphqlHTTP(schema, options));
const get = (query: string, headers: Record<string, string> = {}, options: GraphQLOptions = {}) =>
  send(api(options), { path: `/graphql?query=${encodeURIComponent(query)}`, headers });
const logged = (options: GraphQLOptions, query: string) => () => withLog(() => post(api(options), { query }));

const OPERATIONS = JSON.stringify({
  query: 'mutation ($file: Upload) { store(file: $file) }',
  variables: { file: null },
});
const MAP = '{"f":["variables.file"]}';
const file = new Blob(['content of the file']);

const promise = async (): Promise<boolean> => true;

const handler = graphqlHTTP(schema);
const INIT = { type: 'connection_init' };
const start = (query: string, id = '1') => ({ id, type: 'subscribe', payload: { query } });
const never = () => new Promise<never>(() => undefined);

/** Mounts a function, as Express does with a middleware, and sends a request. */
const mounted = (middleware: unknown) => () =>
  withLog(() => send(express().use('/graphql', untyped<RequestHandler>(middleware)), {}));

type Mistake = readonly [what: string, run: () => string | Promise<string>];

const FAMILIES: Record<string, readonly Mistake[]> = {
  requests: [
    ['a body that is not JSON', () => post(api(), '{query: hello}')],
    ['an empty body', () => post(api(), '')],
    ['a string for a body', () => post(api(), '"{hello}"')],
    ['no query', () => post(api(), { operation: '{ hello }' })],
    ['a query that is not a string', () => post(api(), { query: { hello: true } })],
    ['variables as text', () => post(api(), { query: '{ hello }', variables: 'name=Ada' })],
    ['a syntax error', () => post(api(), { query: '{ hello' })],
    ['two operations without a name', () => post(api(), { query: 'query A { hello } query B { hello }' })],
    ['a name without its operation', () => post(api(), { query: '{ hello }', operationName: 'A' })],
    ['a list without batching', () => post(api(), [{ query: '{ hello }' }])],
    ['an empty batch', () => post(api({ batching: true }), [])],
    [
      'too many operations in a batch',
      () => post(api({ batching: true }), Array(11).fill({ query: '{ hello }' })),
    ],
    ['text/plain', () => send(api(), { method: 'POST', body: '{"query":"{ hello }"}' })],
    [
      'a urlencoded form',
      () =>
        send(api(), {
          method: 'POST',
          body: 'query={hello}',
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        }),
    ],
    [
      'another charset',
      () =>
        send(api(), {
          method: 'POST',
          body: '{}',
          headers: { 'content-type': 'application/json; charset=latin1' },
        }),
    ],
    [
      'a body with an unknown coding',
      () =>
        send(api(), {
          method: 'POST',
          body: 'x',
          headers: { 'content-type': 'application/json', 'content-encoding': 'zip' },
        }),
    ],
    ['PUT', () => send(api(), { method: 'PUT', body: '{}' })],
    ['a CORS preflight without cors', () => send(api(), { method: 'OPTIONS' })],
    ['Accept: text/csv', () => get('{ hello }', { accept: 'text/csv' })],
    ['a subscription over HTTP', () => post(api(), { query: 'subscription { tick }' })],
    [
      'persisted queries',
      () => post(api(), { extensions: { persistedQuery: { version: 1, sha256Hash: 'a' } } }),
    ],
    [
      'a mutation in a link that a chat previews',
      () => get('mutation { wipe }', { 'user-agent': 'Slackbot-LinkExpanding 1.0' }),
    ],
    ['a mutation over GET of another site', () => get('mutation { wipe }', { origin: 'https://a.example' })],
    [
      'a mutation over GET with getMutations: false',
      () => get('mutation { wipe }', {}, { getMutations: false }),
    ],
    ['another host', () => get('{ hello }', {}, { allowedHosts: ['api.example'] })],
    [
      'a query with too many aliases',
      () => post(api({ limits: { aliases: 1 } }), { query: '{ a: hello b: hello }' }),
    ],
    [
      'introspection that is off',
      () => post(api({ introspection: false }), { query: '{ __schema { queryType { name } } }' }),
    ],
    ['a body that is too large', () => post(api({ limits: { bodyBytes: 10 } }), { query: '{ hello }' })],
    [
      'variables in a URL that are not JSON',
      () => send(api(), { path: '/graphql?query={hello}&variables=name' }),
    ],
    ['a parameter that is repeated', () => send(api(), { path: '/graphql?query={hello}&query={hello}' })],
    [
      'a body that earlier middleware consumed',
      () => {
        const app = express().use(
          (req, _res, next) => void req.resume().once('end', () => next()),
          graphqlHTTP(schema),
        );
        return post(app, { query: '{ hello }' });
      },
    ],
  ],
  uploads: [
    ['no operations', () => form(api(), { map: MAP, f: file })],
    ['no map', () => form(api(), { operations: OPERATIONS })],
    ['the file before the map', () => form(api(), { operations: OPERATIONS, f: file, map: MAP })],
    ['operations as a file', () => form(api(), { operations: new Blob([OPERATIONS]), map: MAP })],
    ['operations that are not JSON', () => form(api(), { operations: 'mutation { store }', map: MAP })],
    ['a map that is not JSON', () => form(api(), { operations: OPERATIONS, map: 'variables.file' })],
    [
      'a map of strings',
      () => form(api(), { operations: OPERATIONS, map: '{"f":"variables.file"}', f: file }),
    ],
    [
      'a path that does not exist',
      () => form(api(), { operations: OPERATIONS, map: '{"f":["variables.photo"]}', f: file }),
    ],
    [
      'a path without variables',
      () => form(api(), { operations: OPERATIONS, map: '{"f":["file"]}', f: file }),
    ],
    [
      'a member that is not null',
      () => form(api(), { operations: OPERATIONS.replace('null', '""'), map: MAP, f: file }),
    ],
    ['a file that is not sent', () => form(api(), { operations: OPERATIONS, map: MAP })],
    [
      'a file that is too large',
      () => form(api({ uploads: { maxFileBytes: 5 } }), { operations: OPERATIONS, map: MAP, f: file }),
    ],
    [
      'too many files',
      () => form(api({ uploads: { maxFiles: 1 } }), { operations: OPERATIONS, map: MAP, f: file, g: file }),
    ],
    [
      'a file that accept refuses',
      () => form(api({ uploads: { accept: () => false } }), { operations: OPERATIONS, map: MAP, f: file }),
    ],
    [
      'uploads that are off',
      () => form(api({ multipartUploadsEnabled: false }), { operations: OPERATIONS, map: MAP, f: file }),
    ],
    ['a literal in place of a file', () => post(api(), { query: 'mutation { store(file: "x") }' })],
    [
      'no boundary',
      () => send(api(), { method: 'POST', body: 'x', headers: { 'content-type': 'multipart/form-data' } }),
    ],
    [
      'a form of another site',
      () => send(api(), { method: 'POST', body: new FormData(), headers: { origin: 'https://a.example' } }),
    ],
    [
      'multer before graphqlHTTP',
      () =>
        withLog(() =>
          form(express().use(multer().any(), graphqlHTTP(schema)), {
            operations: OPERATIONS,
            map: MAP,
            f: file,
          }),
        ),
    ],
  ],
  'resolvers and option functions': [
    ['a resolver that throws', logged({}, 'query Report { crash }')],
    ['a resolver that returns an object for a String', logged({}, '{ leaf }')],
    ['no resolver for a non-null field', logged({}, '{ required }')],
    [
      'resolvers of SDL without rootValue',
      () =>
        withLog(() =>
          post(express().use(graphqlHTTP(buildSchema('type Query { user: String! }'))), {
            query: '{ user }',
          }),
        ),
    ],
    [
      'a context function that throws',
      logged(
        {
          context: () => {
            throw new Error('no session');
          },
        },
        '{ hello }',
      ),
    ],
    ['formatError without a return', logged({ formatError: untyped(() => undefined) }, '{ helo }')],
    ['an async formatError', logged({ formatError: untyped(promise) }, '{ helo }')],
    ['an async rootValue', logged({ rootValue: promise }, '{ hello }')],
    [
      'a schema function that returns SDL',
      () =>
        withLog(() =>
          post(express().use(graphqlHTTP(untyped<() => GraphQLSchema>(() => 'type Query { a: Int }'))), {
            query: '{ a }',
          }),
        ),
    ],
    [
      'onError that throws',
      logged(
        {
          onError: () => {
            throw new Error('no disk');
          },
        },
        '{ crash }',
      ),
    ],
    ['graphqlHTTP that was not called', mounted(graphqlHTTP)],
    ['staticFiles that was not called', mounted(staticFiles)],
    ['inspect that was not called', mounted(inspect)],
    [
      'a factory of rules that was not called',
      logged({ validationRules: untyped([() => () => ({})]) }, '{ hello }'),
    ],
    [
      'attachSubscriptions with a schema whose handler is mounted on the path',
      () =>
        withLog(async () => {
          const server = http.createServer(api());
          const subscriptions = attachSubscriptions(server, schema);
          await until(() => jest.mocked(console.warn).mock.calls.length > 0);
          await subscriptions.close();
          return '';
        }),
    ],
    ['a folder without html', () => send(express().use(staticFiles(__dirname)), { path: '/' })],
  ],
  WebSockets: [
    ['another path', () => upgrade(handler, {}, ['/subscriptions', {}])],
    [
      'a page of another origin',
      () => upgrade(handler, {}, ['/graphql', { host: 'b.example:81', origin: 'https://a.example' }]),
    ],
    [
      'another host',
      () =>
        upgrade(graphqlHTTP(schema, { allowedHosts: ['api.example'] }), {}, [
          '/graphql',
          { host: 'b.example' },
        ]),
    ],
    [
      'a middleware that fails',
      () =>
        withLog(() =>
          upgrade(handler, { middleware: [(_req, _res, next) => next(new Error('no store'))] }, [
            '/graphql',
            {},
          ]),
        ),
    ],
    [
      'a middleware that never calls next',
      () =>
        upgrade(handler, { middleware: [() => undefined], limits: { initTimeout: 20 } }, ['/graphql', {}]),
    ],
    [
      'allowedOrigins that returns a promise',
      () =>
        withLog(() =>
          upgrade(handler, { allowedOrigins: untyped(promise) }, [
            '/graphql',
            { origin: 'https://a.example' },
          ]),
        ),
    ],
    ['no subprotocol', () => closing(handler, {}, [], [])],
    ['no connection_init', () => closing(handler, { limits: { initTimeout: 20 } }, [])],
    ['an operation before the acknowledgement', () => closing(handler, {}, [start('{ hello }')])],
    ['a message that is not JSON', () => closing(handler, {}, ['hello'])],
    [
      'a message without an id',
      () => closing(handler, {}, [INIT, { type: 'subscribe', payload: { query: '{ hello }' } }]),
    ],
    [
      'a type of the legacy protocol',
      () => closing(handler, {}, [INIT, { id: '1', type: 'start', payload: { query: '{ hello }' } }]),
    ],
    [
      'an id that is in use',
      () =>
        closing(
          graphqlHTTP(schema, {
            context: (_source, { operation }: ContextDetails) => (operation ? never() : {}),
          }),
          {},
          [INIT, start('{ hello }'), start('{ hello }')],
        ),
    ],
    ['a second connection_init', () => closing(handler, {}, [INIT, INIT])],
    ['onConnect that returns false', () => closing(handler, { onConnect: () => false }, [INIT])],
    [
      'a context function for HTTP that fails',
      () =>
        withLog(() =>
          closing(
            graphqlHTTP(schema, { context: (req: express.Request) => ({ user: req.accepts('html') }) }),
            {},
            [INIT],
          ),
        ),
    ],
    [
      'a share function that returns an object',
      () =>
        withLog(() => operate(handler, { share: untyped(() => ({})) }, { query: 'subscription { tick }' })),
    ],
    [
      'an expiresAt that is not a date',
      () => withLog(() => closing(handler, { onConnect: () => ({ expiresAt: new Date('soon') }) }, [INIT])),
    ],
  ],
};

it.each(Object.entries(FAMILIES))(
  'each response to a mistake in %s names the problem and the fix',
  async (_family, mistakes) => {
    const seen: string[] = [];
    for (const [what, run] of mistakes) seen.push(`${what}: ${await run()}`);
    expect(
      `\n${seen.join('\n').replace(/ \(see https:\S*\/docs\/(\S*)\.md\)/g, ' (docs/$1.md)')}\n`,
    ).toMatchSnapshot();
  },
);

it('staticFiles warns about the folder of the program, and not about a folder in it', async () => {
  const warned = (folder: string) =>
    withLog(async () => {
      staticFiles(folder);
      return '';
    });
  expect(await warned(__dirname)).toBe('');
  const warning = await warned('.');
  expect(warning).toContain(`staticFiles serves ${process.cwd()}, which contains this program`);
  expect(warning).toContain("Pass the directory of the public files, such as 'public'");
});

it('a subscribe function that returns no iterable ends the operation with INTERNAL_SERVER_ERROR', async () => {
  const seen = await withLog(() => operate(handler, {}, { query: 'subscription { noIterable }' }));
  expect(seen).toContain('"code":"INTERNAL_SERVER_ERROR"');
  // graphql 16 reports no path, and graphql 17 has it in front of its message.
  expect(seen).toMatch(/Subscription\.noIterable has no source of events\.|at "noIterable"/);
});
