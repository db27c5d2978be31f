/** @tags graphql */
import { mkdirSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import express from 'express';
import { buildSchema, parse } from 'graphql';
import { WebSocketServer } from 'ws';
import { redisStore } from '../../middleware/cache.ts';
import { graphqlHTTP, Method } from '../../middleware/graphql.ts';
import { inspect } from '../../middleware/inspect.ts';
import { mcp } from '../../middleware/mcp.ts';
import { EspalierInstrumentation } from '../../middleware/otel.ts';
import { migration, postgres } from '../../middleware/postgres.ts';
import { presence } from '../../middleware/presence.ts';
import { createPubSub, file, filter, latest, map, merge, redis } from '../../middleware/pubsub.ts';
import { createServer } from '../../middleware/server.ts';
import { memoryFiles } from '../../middleware/sources.ts';
import { signUrl, staticFiles } from '../../middleware/static.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { inject, subscribe } from '../../middleware/testing.ts';
import { receiveFiles } from '../../middleware/uploads.ts';
import { REPLACED_OPTIONS, replacementOf } from '../../src/options/replaced.ts';
import { makeFolder } from '../kit.ts';
import { calls, type Target, thrownBy } from './thrown.ts';

// Wrong arguments and options of the public functions, in families, each with one snapshot of its messages. A message names
// the value, what is accepted, and what to do. Other tests assert the code of an error, not its text.

const folder = makeFolder();
mkdirSync(join(folder, 'pages'));
for (const [name, text] of Object.entries({
  'index.html': 'home',
  'list.json': '[]',
  'a.graphql': '{ hello }',
})) {
  writeFileSync(join(folder, name), text);
}
beforeAll(() => void jest.spyOn(console, 'warn').mockReturnValue(undefined));

const SDL = 'type Query { hello: String } type Subscription { tick: Int }';
const schema = buildSchema(SDL);
const handler = graphqlHTTP(schema);
const empty = (): undefined => undefined;

/** A schema of a second copy of graphql. In production, graphql-js does not notice it. */
function anotherCopy(environment: string): unknown {
  let other: unknown;
  within(environment, () =>
    jest.isolateModules(() => {
      other = (require('graphql') as typeof import('graphql')).buildSchema(SDL);
    }),
  );
  return other;
}

function within<T>(environment: string, run: () => T): T {
  const before = process.env['NODE_ENV'];
  process.env['NODE_ENV'] = environment;
  try {
    return run();
  } finally {
    process.env['NODE_ENV'] = before;
  }
}

const optionsOf =
  (target: Target, ...before: unknown[]) =>
  (...options: unknown[]) =>
    calls(target, ...options.map((value) => [...before, value]));
const each = (target: Target, ...values: unknown[]) => optionsOf(target)(...values);
const membersOf =
  (name: string) =>
  (...values: unknown[]) =>
    api(...values.map((value) => ({ [name]: value })));

const files = optionsOf(staticFiles, folder);
const api = optionsOf(graphqlHTTP, schema);
const sockets = optionsOf(attachSubscriptions, http.createServer(), handler);
const targets = optionsOf(attachSubscriptions, http.createServer());
const server = optionsOf(createServer, express());
const events = createPubSub();
const room = presence(events);
const done = async () => undefined;
const transportOf = () => ({
  open: empty,
  publish: done,
  subscribe: done,
  unsubscribe: empty,
  close: done,
});
const pool = {
  query: async () => ({ rows: [] }),
  connect: () => Promise.reject(new Error()),
  on() {},
  off() {},
};
const disconnect = (...list: unknown[]) =>
  calls((...values: unknown[]) => {
    const subscriptions = attachSubscriptions(http.createServer(), handler);
    Reflect.apply(subscriptions.disconnect, subscriptions, values);
  }, list);
const drain = (...options: unknown[]) =>
  each((value: object) => createServer(express()).drain(value), ...options);
const store = { get: () => ({ entry: undefined, version: undefined }), set: () => false, invalidate: empty };
const used = { ...store };
graphqlHTTP(schema, { responseCache: { store: used } });
const appWithServer = express();
createServer(appWithServer);
const caller = () => null;
const KEY = 'k'.repeat(32);
const graphiql = membersOf('graphiql');
const documents = membersOf('documents');
const cursors = membersOf('cursors');
const uploads = membersOf('uploads');
const withDirectives = (...fields: string[]) =>
  calls(
    graphqlHTTP,
    ...fields.map((field) => {
      const text = `
        directive @cacheControl(maxAge: Int, sharedMaxAge: Int, vary: [String!]) on FIELD_DEFINITION
        directive @cacheTag(format: String!) on FIELD_DEFINITION
        directive @cost(weight: String!) on FIELD_DEFINITION
        directive @listSize(slicingArguments: [String!], sizedFields: [String!]) on FIELD_DEFINITION
        type Page { edges: [Int], total: Int }
        type Query { ${field} }`;
      return [buildSchema(text), { responseCache: true, httpCache: true, cost: true }];
    }),
  );

const FAMILIES = {
  'the arguments of staticFiles': [
    ...each(staticFiles, 'pubic', join(folder, 'index.html'), 'public/**', '~/public'),
    ...each(staticFiles, undefined, '', 42, ['a', 'b'], { root: 'public' }, { stat: empty }),
    ...each(staticFiles, Buffer.from('/tmp'), new URL('http://localhost/public')),
    ...files('html', null, [], empty),
    ...calls(staticFiles, ['/static', 'public']),
    ...each(memoryFiles, { 'a.txt': 5 }),
    ...each(
      (path: string) => memoryFiles().set(path, 'x'),
      '',
      '/',
      'a//b',
      '../a',
      'a/./b',
      'a\\b',
      'a/',
      5,
    ),
    ...each((mtime: Date) => memoryFiles().set('a.txt', 'x', { mtime }), 5, '2026-01-01'),
  ],
  'the options of staticFiles': [
    ...files({ htlm: true }, { html: 'yes' }, { html: ['html'] }, { cleanUrls: 'yes' }),
    ...files(
      { cacheControl: '1 fortnight' },
      { cacheControl: '300' },
      { cacheControl: [60] },
      { maxAge: '1d' },
    ),
    ...files({ cacheControl: true }, { cacheControl: Symbol('age') }, { cacheControl: ['vite', 'soon'] }),
    ...files({ dotfiles: 'show' }, { symlinks: true }, { fallthrough: 0 }, { redirect: null }),
    ...files({ cleanUrls: 'noslash' }, { urls: 'slash' }),
    ...files({ rules: 'all' }, { rules: { redirect: '' } }, { rules: { redirects: ['/a /b'] } }),
    ...files(
      { rules: { redirects: '\n/a' } },
      { rules: { redirects: '/a /b 410' } },
      { rules: { redirects: 'a /b' } },
    ),
    ...files({ rules: { redirects: '/a //b' } }, { rules: { redirects: '/a https://b.example:x/' } }),
    ...files({ rules: { redirects: '/a https://b.example/ 200' } }, { rules: { redirects: '/a /:b' } }),
    ...files({ rules: { redirects: '/a x /b' } }, { rules: { redirects: '/x-:a /b' } }),
    ...files({ rules: { redirects: '/a /b 301 Country=de' } }, { rules: { headers: '  X-A: b' } }),
    ...files({ rules: { headers: '/*\n  no header' } }, { rules: { headers: '/*\n  ETag: "a"' } }),
    ...files({ roots: 'pages' }, { variants: ['gif'] }, { variants: { languages: ['en'] } }),
    ...files(
      { variants: { language: 'en' } },
      { variants: { language: ['../en'] } },
      { variants: { cookie: 'a=b' } },
    ),
    ...files({ pages: { csp: { reportTo: 'reports' } } }, { pages: { csp: { reportTo: '//host/x' } } }),
    ...calls(staticFiles, [empty], [empty, { roots: {} }], [empty, { roots: join(folder, 'none') }]),
    ...files({ etag: 'weak' }, { etag: 0 }, { acceptRanges: 1 }, { lastModified: true }),
    ...files({ precompressed: 'br' }, { precompressed: ['brotli'] }, { immutable: true }),
    ...files({ index: 'a/b' }, { index: '' }, { index: true }, { index: 42 }, { index: null }),
    ...files({ extensions: ['a/b'] }, { extensions: 42 }, { extensions: true }, { extensions: 0 }),
    ...files({ fallback: 'app.html' }, { fallback: '/srv/index.html' }, { fallback: 'pages' }),
    ...files({ fallback: '' }, { fallback: '..' }, { fallback: '../a.html' }, { fallback: 'a/../../a.html' }),
    ...files({ notFound: '404.html' }, { notFound: '../404.html' }, { notFound: './pages' }),
    ...files(
      { cache: 5 },
      { cache: { maxByte: 1 } },
      { cache: { maxFiles: 5 } },
      { cache: { maxEntries: 5 } },
    ),
    ...files({ cache: { maxBytes: '64 MiB' } }, { cache: { maxBytes: -1 } }),
    ...files(
      { cacheControl: '' },
      { cacheControl: 'a\nb' },
      { cacheControl: 5 },
      { cacheControl: null },
      { cacheControl: 'Vite' },
    ),
    ...files({ setHeaders: { 'x-a': 'b' } }, { setHeaders: null }),
    ...files({ compress: 'gzip' }, { compress: { level: 4 } }),
    // Options of express.static, sirv and other servers of files
    ...files(
      { maxage: '1d' },
      { start: 1 },
      { end: 1 },
      { hidden: true },
      { single: true },
      { brotli: true },
    ),
    ...files({ gzip: true }, { dev: true }, { headers: {} }, { prefix: '/a' }, { root: 'a' }, { ttl: 60 }),
  ],
  'the schema of graphqlHTTP': [
    ...each(graphqlHTTP, { schema }, SDL, [SDL], Promise.resolve(schema), { typeDefs: SDL }, undefined, {}),
    ...each(graphqlHTTP, parse(SDL), { default: schema }, buildSchema('type Mutation { a: Int }')),
    ...each(graphqlHTTP, anotherCopy('development')),
    () => within('production', () => Reflect.apply(graphqlHTTP, undefined, [anotherCopy('production')])),
    ...each(graphqlHTTP, buildSchema('scalar Upload type Query { a(file: Upload): Int }')),
    ...withDirectives('a: Int @cacheControl(maxAge: -1)', 'a: Int @cacheControl(sharedMaxAge: -5)'),
    ...withDirectives('a: Int @cacheControl(vary: ["a b"])', 'a: Int @cacheControl(vary: ["*"])'),
    ...withDirectives('a(id: ID): Int @cacheTag(format: "a-{id}")', 'a: Int @cacheTag(format: "")'),
    ...withDirectives('a(id: ID): Int @cacheTag(format: "{$args.id}-{$key.id}")'),
    ...withDirectives('a: Int @cost(weight: "much")'),
    ...withDirectives('a(max: Int): [Int] @listSize(slicingArguments: ["first"])'),
    ...withDirectives('a: [Int] @listSize(slicingArguments: ["page.size"])'),
    ...withDirectives('a(first: Int): Page @listSize(slicingArguments: ["first"], sizedFields: ["nodes"])'),
  ],
  'the options of graphqlHTTP': [
    ...api(empty, { Query: {} }, { graphIQL: false }, { contxt: {} }, { depthLimit: 5 }),
    ...api({ context: Promise.resolve({}) }, { rootValue: Promise.resolve({}) }),
    ...api({ incremental: { format: 'v0.2' } }, { incremental: 'v0.3' }),
    ...api({ limits: 5 }, { limits: { maxDepth: 5 } }, { limits: { depth: 0 } }),
    ...api({ methods: [] }, { methods: ['PUT'] }, { getMutations: 'yes' }, { statusCodes: 'strict' }),
    ...api({ allowedOrigins: ['https://a.example/'] }, { allowedOrigins: ['a.example'] }),
    ...api({ allowedOrigins: 'https://a.example' }, { trustedOrigins: [] }, { allowedHosts: [] }),
    ...api({ allowedHosts: ['https://api.example.com'] }, { allowedHosts: ['*.example.com'] }),
    ...api({ engine: 'jit' }, { engine: true }, { batching: 0 }, { documents: { cacheBytes: '32' } }),
    ...api({ validationRules: empty }, { validationRules: {} }, { validationRules: ['A'] }),
    ...api({ onError: 'log' }, { onError: {} }, { formatError: true }, { introspection: 'off' }),
    ...api({ subscriptionProtocols: ['graphql-sse'] }),
    // Options of other servers
    ...api(
      { timeout: -1 },
      { timeout: true },
      { bodyLimit: 1e6 },
      { limit: '1mb' },
      { maxBodySize: '1mb' },
      { sse: true },
    ),
    ...api({ validate: empty }, { parse: empty }, { responseCaching: true }),
  ],
  'the options of receiveFiles, files of users and signed links': [
    ...each(receiveFiles, { files: 1 }, { files: { photo: '1' } }, { file: 1 }, { maxFields: 9 }),
    ...each(receiveFiles, { storage: 'disk' }),
    ...each(
      receiveFiles,
      { accept: [] },
      { accept: ['text/csv'] },
      { accept: ['*/*'] },
      { accept: 'image/*' },
    ),
    ...each(
      receiveFiles,
      { dest: 'uploads/' },
      { limits: {} },
      { fileFilter: () => {} },
      { streaming: true },
    ),
    ...each(receiveFiles, { tempDir: '/none' }, { maxFileSize: 1 }, null, 5),
    ...each(
      (options: object) => staticFiles(folder, { untrusted: true, ...options }),
      { html: true },
      { listing: true },
      { fallback: 'index.html' },
      { untrusted: 'yes' },
    ),
    ...each(
      (signed: never) => staticFiles(folder, { signed }),
      true,
      {},
      { keys: 'short' },
      { keys: [] },
      { key: 'x'.repeat(32) },
    ),
    ...each(
      (path: string, more: object) => signUrl(path, { keys: 'x'.repeat(32), expiresIn: '1m', ...more }),
      'a.txt',
      '/../a.txt',
      '/a//b',
      '/a\\b',
      5,
    ),
    ...each(
      (more: object) => signUrl('/a.txt', { keys: 'x'.repeat(32), expiresIn: '1m', ...more }),
      { expiresIn: 0 },
      { expiresIn: 'soon' },
      { expiresIn: undefined },
      { keys: undefined },
      { ip: 5 },
    ),
  ],
  'the options uploads, graphiql, documents and cursors': [
    ...uploads(true, false, { maxFileBytes: '5 megabytes' }, { maxFileBytes: -1 }, { maxFileBytes: 1.5 }),
    ...uploads({ maxFileBytes: Number.POSITIVE_INFINITY }, { maxfiles: 2 }, { streaming: 'yes' }),
    ...uploads({ tempDir: '/none' }, { tempDir: join(folder, 'index.html') }, { accept: 'image/*' }),
    ...uploads({ limits: { fileSize: 5 } }, { dest: 'uploads/' }),
    ...uploads({ maxFileSize: 5 }, { maxRequestSize: 5 }, { maxFieldSize: 5 }),
    ...uploads({ memoryPerFile: 5 }, { memoryTotal: 5 }),
    ...graphiql(1, 'dev', null, [], { defaultQuery: 1 }, { titel: 'x' }, { theme: 'pink' }),
    ...graphiql({ headersEditor: 'yes' }, { websocketClient: 'v1' }),
    ...graphiql({ endpoint: 'http://' }, { endpoint: 'http://a;script-src/' }),
    ...graphiql({ subscriptionEndpoint: 'javascript:alert(1)' }),
    ...graphiql({ subscriptions: false }, { subscriptionEndpoint: true }),
    ...api({ graphiql: { method: 'QUERY' }, methods: [Method.GET, Method.POST] }),
    ...documents('a.json', [], { apk: true }, { only: true }, { only: 'yes', from: {} }),
    ...documents({ from: {}, only: true, apq: true }, { apq: { redis: {} } }),
    ...documents({ apq: { store: 'redis://localhost' } }),
    ...documents({ from: 7 }, { from: '/none/persisted.json' }, { from: join(folder, 'list.json') }),
    ...documents({ from: join(folder, 'a.graphql') }),
    ...documents({ from: join(folder, 'pages') }, { from: { abc: 7 } }, { from: { abc: ' ' } }),
    ...documents({ from: new Map([[7, '{ hello }']]) }),
    ...documents({ from: { format: 'apollo-persisted-query-manifest', version: 2, operations: [] } }),
    ...documents({
      from: {
        format: 'apollo-persisted-query-manifest',
        version: 1,
        operations: ['A', 'B'].map((name) => ({
          id: 'abc',
          name,
          type: 'query',
          body: `query ${name} { hello }`,
        })),
      },
    }),
    ...cursors('secret', {}, { key: 'short' }, { key: [] }, { key: [KEY, 'short'] }, { key: KEY, ttl: 1 }),
    ...cursors({ key: KEY, maxAge: 0 }, { key: KEY, user: 'ada' }),
  ],
  'the options for caches and costs': [
    ...api({ cacheControl: 'on' }, { httpCache: { defaultMaxAge: -1 } }, { httpCache: { maxAge: 5 } }),
    ...api({ httpCache: { defaultMaxAge: Number.NaN } }, { httpCache: { defaultMaxAge: '5' } }),
    ...api({ httpCache: { defaultMaxAge: '5 fortnights' } }),
    ...api({ httpCache: { tags: 'x-tags' } }),
    ...api(
      { cache: 5 },
      { responseCache: { ttl: 5 } },
      { responseCache: { maxBytes: 0 } },
      { responseCache: { store: {} } },
    ),
    ...api(
      { responseCache: { pubsub: 1 } },
      { responseCache: { key: 'user' } },
      { responseCache: { store, maxBytes: 5 } },
    ),
    ...api({ responseCache: { store: used } }),
    ...each(redisStore, null, {}, { redis: 'localhost' }, { redis: 'redis://localhost', ttl: 1 }),
    ...each(handler.invalidate, 'a'),
    ...each(graphqlHTTP(schema, { responseCache: true }).invalidate, 7, [7], null, ['a', undefined]),
    ...api({ cost: 'on' }, { cost: 1000 }, { cost: { max: 5 } }, { cost: { maxCost: 0 } }),
    ...api({ cost: { maxCost: '500' } }),
    ...api({ idempotency: true }, { idempotency: {} }, { caller, idempotency: { redis: {} } }),
    ...api({ caller, idempotency: { store: 'redis://localhost' } }),
    ...api({ caller, idempotency: { required: ['helo'] } }, { idempotency: { user: 'ada' } }),
    ...api({ usage: true }, { usage: { file: '' } }, { usage: { redis: {} } }, { usage: { files: 'a' } }),
    ...api({ usage: { file: 'a', redis: 'redis://localhost' } }, { usage: { client: 'web' } }),
    ...api({ budget: {} }, { budget: { limit: 1.5 } }, { budget: { limit: 1, redis: {} } }),
    ...api({ clientLimits: 20 }, { clientLimits: { connections: 0 } }, { clientLimits: { perUser: 1 } }),
    ...api({ clientLimits: { key: 'ada' } }, { clientLimits: { keyGenerator: empty } }),
  ],
  'the arguments and options of attachSubscriptions': [
    ...each(
      attachSubscriptions,
      express(),
      3000,
      { schema },
      handler,
      new WebSocketServer({ noServer: true }),
    ),
    ...targets(undefined, express(), handler.websocketHandler, staticFiles(folder), SDL, { schema }, {}),
    () => within('production', () => Reflect.apply(targets, undefined, [anotherCopy('production')])[0]?.()),
    () => {
      const twice = http.createServer();
      attachSubscriptions(twice, handler);
      attachSubscriptions(twice, handler);
    },
    ...sockets(
      '/graphql',
      { maxpayload: 5 },
      { ping: '12' },
      { ping: -1 },
      { ping: 0 },
      { limits: { operations: 0 } },
      { limits: 5 },
      { limits: { depth: 5 } },
    ),
    ...sockets({ context: Promise.resolve({}) }, { contextPer: 'request' }, { operations: 'query' }),
    ...sockets({ path: 'graphql' }, { path: '/:tenant' }, { path: '/ü' }, { path: 'ws://a/graphql' }),
    ...sockets({ path: /graphql/ }, { onConnect: {} }, { middleware: 'session' }, { middleware: empty }),
    ...sockets({ onError: empty }, { subscriptionProtocols: ['x'] }),
    ...sockets({ allowedOrigins: 'https://a.example' }, { allowedOrigins: [/example/] }),
    ...sockets({ allowedOrigins: [''] }, { allowedOrigins: ['a.example'] }),
    ...sockets({ allowedOrigins: ['https://a.example/'] }, { allowedOrigins: ['https://a.example/app'] }),
    ...sockets({ allowedOrigins: ['https://A.example'] }, { allowedOrigins: ['https://a.example:443'] }),
    ...disconnect(empty, 1005),
    ...disconnect(undefined),
  ],
  'the arguments and options of createServer and inspect': [
    ...each(createServer, undefined, { key: 1 }, { routing: 1 }, Promise.resolve(), express),
    ...calls(createServer, [{ keepAlive: true }, express()]),
    ...server(
      3000,
      { port: 3000 },
      { https: true },
      { keepalivetimeout: 5 },
      { key: 'key.pem', cert: 'cert.pem' },
    ),
    ...server({ http2: 'yes' }, { webSockets: true }, { allowHTTP1: 'no' }),
    ...server({ IncomingMessage: Map }, { http2: true, Http2ServerResponse: {} }),
    ...calls(createServer, [appWithServer, { IncomingMessage: class extends http.IncomingMessage {} }]),
    ...server({ check: {} }, { checks: [] }, { checks: { redis: true } }),
    ...drain({ delay: -1 }, { delay: 2 ** 31 }, { timeout: -1 }, { timeout: 2 ** 31 }),
    ...each(inspect, '/inspect', { gaurd: empty }, { guard: true }),
  ],
  'the arguments and options of createPubSub': [
    ...each(
      createPubSub,
      'redis://localhost',
      { redisUrl: 'redis://localhost' },
      { host: 'localhost', port: 6379 },
    ),
    ...each(createPubSub, { connection: {} }, { publisher: {} }, { bufferSize: 1 }, { bufferBytes: 1 }),
    ...each(createPubSub, { maxBufferedBytes: 0 }, { transport: {} }),
    ...each(createPubSub, { pool }, { postgres: pool }, { file: 'events.db' }),
    ...calls(postgres, [{}], [pool, { schema: 'Upper' }], [pool, { listen: {} }], [pool, { max: 1 }]),
    ...calls(postgres, [{ ...pool, escapeLiteral: empty }], [{ ...pool, options: { max: 1 } }]),
    ...calls(migration, ['a b']),
    ...each(createPubSub, { redis: 'redis://localhost' }, { prefix: 'a:' }, { heartbeat: 1000 }),
    ...each(createPubSub, { onGap: true }, { history: true }, { history: 100 }),
    ...each(createPubSub, { history: { file: 'events.db' } }, { history: { age: 1000 } }),
    ...each(createPubSub, { transport: true }, { transport: 'localhost' }, { transport: 'localhost:6379' }),
    ...each(createPubSub, { transport: redis }, { transport: 'http://localhost' }),
    ...each(createPubSub, { transport: transportOf(), history: {} }),
    ...calls(redis, [], [{ host: 'localhost' }], ['redis://localhost/app'], ['redis://localhost:65536']),
    ...calls(redis, ['redis://app:se/cret@localhost'], ['redis://localhost?db=3']),
    ...calls(redis, [{ duplicate: empty, isOpen: false }]),
    ...calls(redis, [{ url: 'redis://a:b/c@localhost', credentials: empty }]),
    ...optionsOf(redis, 'redis://localhost')({ prefix: 1 }, { sharded: true }, { history: {} }),
    ...calls(file, [], [new URL('file:///events.db')]),
    ...optionsOf(postgres, pool)({ history: {} }, { prefix: 'a:' }),
    ...calls(events.subscribe, ['said', empty], ['said', { afer: 'cursor' }], [['said', 'left']]),
    ...calls(
      events.publish,
      [{ said: 'hello' }],
      ['said', 'hello', { cleint: pool }],
      ['said', 'hello', pool],
    ),
    ...calls(filter, [() => events.subscribe('tick'), () => true]),
    ...calls(map, [events.subscribe('tick')], [Promise.resolve(), () => 1]),
    ...calls(merge, [[events.subscribe('tick')]]),
    ...calls(latest, [events.subscribe('tick'), 'soon'], [events.subscribe('tick'), 100, 'id']),
  ],
  'the arguments and options of presence': [
    ...calls(presence, [], [{ redis: 'redis://localhost' }], [createPubSub({ transport: transportOf() })]),
    ...optionsOf(presence, events)({ tll: '30s' }, { ttl: 0 }, '30s'),
    ...calls(room.join, [{ id: 'ada' }], ['photo', 'ada'], ['photo', { id: '' }], ['photo', { id: 1 }]),
    ...calls(room.during, ['photo', { id: 'a\0' }, events.subscribe('tick')], ['photo', { id: 'ada' }]),
    ...calls(room.members, []),
    ...calls(room.changes, [], ['photo', { afer: 'cursor' }]),
  ],
  'the arguments of the functions for tests, and of EspalierInstrumentation': [
    ...each(inject, undefined, schema, 'http://localhost'),
    ...optionsOf(inject, handler)('{ a }', { qurey: '{ a }' }, { url: '/graphql' }, { path: 'graphql' }),
    ...optionsOf(inject, handler)(
      { headers: new Headers() },
      { headers: new Map() },
      { headers: { a: null } },
    ),
    ...optionsOf(inject, handler)({ body: empty }, { body: 1n }, { cookies: { a: 1 } }, { signal: {} }),
    ...optionsOf(inject, handler)({ query: '{ a }', varaibles: {} }, { query: '{ a }', method: 'PUT' }),
    ...optionsOf(inject, handler)({ query: '{ a }', variables: [] }, { query: 1 }),
    ...optionsOf(subscribe, handler)({ querry: '{ a }' }, {}, { query: '{ a }', transport: 'sse' }),
    ...optionsOf(subscribe, handler)({ query: '{ a }', method: 'GET' }),
    ...calls(subscribe, [createServer(express()), { query: 'subscription { tick }' }]),
    ...each(
      (options: object) => new EspalierInstrumentation(options),
      { name: true },
      { names: 'all' },
      { spans: ['event'] },
      { contents: 1 },
    ),
  ],
};

it.each(Object.entries(FAMILIES))(
  'each message about %s names the value, what is accepted and what to do',
  async (_family, list) => {
    const messages: string[] = [];
    for (const call of list) messages.push(await thrownBy(call));
    const text = messages.join('\n').replaceAll(folder, '<folder>').replaceAll(process.cwd(), '<cwd>');
    expect(`\n${text}\n`).toMatchSnapshot();
  },
);

/** The functions that get the options of each table, alone or with others that they need. */
const TAKING: Readonly<Record<string, (options: object) => (() => unknown)[]>> = {
  graphqlHTTP: api,
  attachSubscriptions: sockets,
  staticFiles: files,
  receiveFiles: (options) => each(receiveFiles, { files: { photo: 1 }, ...options }),
  createPubSub: (options) => each(createPubSub, options),
  createServer: server,
  inject: optionsOf(inject, handler),
  subscribe: (options) => optionsOf(subscribe, handler)({ query: '{ a }', ...options }),
  redis: optionsOf(redis, 'redis://127.0.0.1:1'),
  postgres: optionsOf(postgres, pool),
  mcp: (options) => optionsOf(mcp, withDocuments)({ name: 'shop', version: '1', ...options }),
};
const withDocuments = graphqlHTTP(schema, { documents: { from: { a: 'query A { hello }' } } });
const NEEDED: Readonly<Record<string, object>> = { budget: { limit: 1 } };

describe.each(Object.entries(REPLACED_OPTIONS))('%s', (group, replaced) => {
  const [name = '', within] = group.split('.');
  const messagesOf = (option: string) => {
    const value = { [option]: true };
    const options = within === undefined ? value : { [within]: { ...NEEDED[within], ...value } };
    return Promise.all((TAKING[name]?.(options) ?? []).map(thrownBy));
  };

  it('each option of another package is answered with what replaces it', async () => {
    for (const option of Object.keys(replaced).join(' ').split(' ')) {
      const replacement = replacementOf(group, option);
      const path = within === undefined ? option : `${within}.${option}`;
      expect(await messagesOf(option)).toEqual([
        expect.stringContaining(`${name}: unknown option "${path}"; ${replacement}`),
      ]);
    }
  });

  it('each option that a replacement names exists', async () => {
    const own = (await messagesOf('unknownForSure'))[0] ?? '';
    const known = /accepted: (.*?) \(docs/.exec(own)?.[1]?.split(', ') ?? [];
    const start =
      within === undefined
        ? /^use (?!limits:|cost:|budget:|uploads:|documents:|\w+ of (?:graphqlHTTP|createPubSub)|that of)(\w+)(?=[,: ]|$)/
        : new RegExp(`^use ${within}\\.(\\w+)`);
    const named = Object.values(replaced).flatMap((text) => start.exec(text)?.[1] ?? []);
    const others = [
      'attachSubscriptions',
      'EspalierInstrumentation',
      'the',
      'rootValue',
      'engine',
      'formatError',
    ];
    expect(named.filter((option) => !known.includes(option) && !others.includes(option))).toEqual([]);
  });
});

it('wrong options leave a server as it was, and directives are checked only for an option that reads them', async () => {
  const given = createServer(express());
  for (const call of optionsOf(attachSubscriptions, given, handler)({ path: 'graphql' }))
    await thrownBy(call);
  expect(() => given.drain({ delay: -1 })).toThrow(TypeError);
  expect([given.listenerCount('upgrade'), given.stats().state]).toEqual([0, 'starting']);
  const directive = 'directive @cacheControl(maxAge: Int) on FIELD_DEFINITION';
  graphqlHTTP(buildSchema(`${directive} type Query { a: Int @cacheControl(maxAge: -1) }`));
  staticFiles(folder, { fallback: './index.html', notFound: './index.html' });
});
