import { mkdtempSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import { buildSchema } from 'graphql';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { createPubSub, filter, map, merge } from '../../middleware/pubsub.ts';
import { createServer } from '../../middleware/server.ts';
import { staticFiles } from '../../middleware/static.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { REPLACED_OPTIONS } from '../../src/graphql/replaced-options.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { until } from '../until.ts';
import { apiOf, pubsub, server as serverOf, socketsOn } from './creation.ts';
import { type Mistake, thrown, untyped, withLog } from './mistake.ts';

// Mistakes that throw when a middleware or a server is created.

const folder = mkdtempSync(join(tmpdir(), 'espalier-mistakes-'));
writeFileSync(join(folder, 'index.html'), 'home');

const schema = buildSchema('type Query { hello: String }');
const handler = graphqlHTTP(schema);

const files = (options: unknown) => thrown(() => staticFiles(folder, untyped<StaticFilesOptions>(options)));
const api = (options: unknown) => thrown(() => graphqlHTTP(schema, untyped<GraphQLOptions>(options)));
const sockets = (options: unknown) => socketsOn(http.createServer(), handler, options);
const socketsOf = (target: unknown) => socketsOn(http.createServer(), target);
const server = (options: unknown) => serverOf(express(), options);

/** A schema of a second copy of graphql. In production, graphql-js does not notice it. */
function anotherCopy(environment: string): unknown {
  const before = process.env['NODE_ENV'];
  process.env['NODE_ENV'] = environment;
  try {
    let other: unknown;
    jest.isolateModules(() => {
      const graphql = require('graphql') as typeof import('graphql');
      other = graphql.buildSchema('type Query { hello: String }');
    });
    return other;
  } finally {
    process.env['NODE_ENV'] = before;
  }
}

/** Runs in an environment. */
type Numbers = AsyncIterable<number>;

const inEnvironment = (environment: string, run: () => string) => () => {
  const before = process.env['NODE_ENV'];
  process.env['NODE_ENV'] = environment;
  try {
    return run();
  } finally {
    process.env['NODE_ENV'] = before;
  }
};

export const STATIC: Mistake[] = [
  [
    'a misspelt folder',
    thrown(() => staticFiles('pubic')),
    /pubic does not exist/,
    /Create the directory.*working directory/,
  ],
  [
    'a file as the root',
    thrown(() => staticFiles(join(folder, 'index.html'))),
    'is not a directory',
    'Create the directory',
  ],
  [
    'no folder',
    thrown(() => staticFiles(untyped<string>(undefined))),
    'argument "dir" is undefined',
    'accepted: a path or a file: URL',
  ],
  [
    'an empty folder name from an unset variable',
    thrown(() => staticFiles('')),
    'argument "dir" is ""',
    'accepted: a path',
  ],
  [
    'maxage, as express.static allows',
    files({ maxage: '1d' }),
    'unknown option "maxage"',
    'did you mean "maxAge"?',
  ],
  ['htlm', files({ htlm: true }), 'unknown option "htlm"', 'did you mean "html"?'],
  ['a string for a boolean', files({ html: 'yes' }), 'option "html" is "yes"', 'accepted: a boolean'],
  [
    'an unknown unit',
    files({ maxAge: '1 fortnight' }),
    'option "maxAge" is "1 fortnight"',
    /milliseconds, or a string such as '1d'/,
  ],
  [
    'a word for an age',
    files({ maxAge: 'soon' }),
    'option "maxAge" is "soon"',
    'milliseconds, or a string such as',
  ],
  [
    'dotfiles: "show"',
    files({ dotfiles: 'show' }),
    'option "dotfiles" is "show"',
    "accepted: 'ignore', 'deny' or 'allow'",
  ],
  [
    'symlinks: true',
    files({ symlinks: true }),
    'option "symlinks" is true',
    "accepted: 'inside' or 'follow'",
  ],
  [
    'precompressed: "br"',
    files({ precompressed: 'br' }),
    'option "precompressed" is "br"',
    "a list of 'br', 'zstd', 'gzip'",
  ],
  [
    'etag: "weak"',
    files({ etag: 'weak' }),
    'option "etag" is "weak"',
    "accepted: 'content', 'stat', true or false",
  ],
  [
    'a fallback that does not exist',
    files({ fallback: 'app.html' }),
    'option "fallback" is "app.html", which is not a file',
    'create it before the call',
  ],
  [
    'a fallback with an absolute path, as for res.sendFile',
    files({ fallback: join(folder, 'index.html') }),
    /option "fallback" is ".*index.html", which is not a file/,
    'pass its path below this directory',
  ],
  [
    'a notFound page that does not exist',
    files({ notFound: '404.html' }),
    'option "notFound" is "404.html", which is not a file',
    'create it before the call',
  ],
  [
    'a fallback outside of the root',
    files({ fallback: '../app.html' }),
    'option "fallback" is "../app.html"',
    'the path of a file below the root directory',
  ],
  [
    'an unknown member of cache',
    files({ cache: { maxFiles: 5 } }),
    'unknown option "cache.maxFiles"',
    'accepted: maxBytes, maxFileBytes',
  ],
  [
    'a size with a unit',
    files({ cache: { maxBytes: '64mb' } }),
    'option "cache.maxBytes" is "64mb"',
    'accepted: bytes, a whole number from 0',
  ],
  [
    'setHeaders as an object',
    files({ setHeaders: { 'x-a': 'b' } }),
    'option "setHeaders" is {"x-a":"b"}',
    'accepted: a function',
  ],
  [
    'immutable as a glob',
    files({ immutable: 'assets/**' }),
    'option "immutable" is "assets/**"',
    'a boolean, a RegExp or a function',
  ],
  ['the options as a string', files('html'), 'argument "options" is "html"', 'accepted: an object'],
  ['fallthrough: 0', files({ fallthrough: 0 }), 'option "fallthrough" is 0', 'accepted: a boolean'],
];

export const SCHEMA: Mistake[] = [
  [
    'the options in place of the schema',
    apiOf({ schema }),
    'argument "schema" is',
    'Pass the schema first: graphqlHTTP(schema, options)',
  ],
  [
    'SDL',
    apiOf('type Query { a: Int }'),
    'argument "schema" is "type Query',
    'Create one from SDL with buildSchema or makeExecutableSchema',
  ],
  [
    'a promise',
    apiOf(Promise.resolve(schema)),
    'argument "schema" is a promise',
    'Await the promise, or pass a function that returns it',
  ],
  [
    'typeDefs',
    apiOf({ typeDefs: 'type Query { a: Int }' }),
    'argument "schema" is',
    'Create one with makeExecutableSchema',
  ],
  ['no schema', apiOf(undefined), 'argument "schema" is undefined', 'accepted: a GraphQLSchema'],
  [
    'a schema without Query',
    apiOf(buildSchema('type Mutation { a: Int }')),
    'Query root type must be provided',
    'Query',
  ],
  [
    'a schema of a second copy of graphql',
    () => apiOf(anotherCopy('development'))(),
    'belongs to another copy of graphql',
    'npm ls graphql',
  ],
  [
    'a schema of a second copy of graphql in production',
    inEnvironment('production', () => apiOf(anotherCopy('production'))()),
    'belongs to another copy of graphql',
    'npm ls graphql',
  ],
  [
    'a schema of a second copy of graphql for sockets in production',
    inEnvironment('production', () => socketsOf(anotherCopy('production'))()),
    'belongs to another copy of graphql',
    'npm ls graphql',
  ],
  [
    'scalar Upload in SDL',
    apiOf(buildSchema('scalar Upload type Query { a(file: Upload): Int }')),
    'the scalar "Upload" of the schema accepts any JSON value',
    /pass the scalar Upload of espalier as its resolver/,
  ],
];

export const GRAPHQL: Mistake[] = [
  [
    'a context that an async function returned',
    api({ context: Promise.resolve({}) }),
    'option "context" is a promise',
    'or a function of the request, which may be async',
  ],
  [
    'a rootValue that an async function returned',
    api({ rootValue: Promise.resolve({}) }),
    'option "rootValue" is a promise',
    'a value that is not a promise',
  ],
  ['graphIQL', api({ graphIQL: false }), 'unknown option "graphIQL"', 'did you mean "graphiql"?'],
  [
    'limits.maxDepth',
    api({ limits: { maxDepth: 5 } }),
    'unknown option "limits.maxDepth"',
    'did you mean "limits.depth"?',
  ],
  ['depth outside of limits', api({ depthLimit: 5 }), 'unknown option "depthLimit"', 'accepted: '],
  ['a limit of 0', api({ limits: { depth: 0 } }), 'option "limits.depth" is 0', 'Infinity for no limit'],
  ['limits: 5', api({ limits: 5 }), 'option "limits" is 5', 'accepted: an object of limits'],
  [
    'a size with a unit',
    api({ uploads: { maxFileSize: '5mb' } }),
    'option "uploads.maxFileSize" is "5mb"',
    'accepted: bytes, a whole number from 0',
  ],
  [
    'uploads.maxfiles',
    api({ uploads: { maxfiles: 2 } }),
    'unknown option "uploads.maxfiles"',
    'did you mean "uploads.maxFiles"?',
  ],
  [
    'a tempDir that does not exist',
    api({ uploads: { tempDir: '/none' } }),
    'option "uploads.tempDir" is "/none"',
    'accepted: a writable directory',
  ],
  [
    'uploads: true',
    api({ uploads: true }),
    'option "uploads" is true',
    'accepted: an object of upload limits',
  ],
  [
    'methods: ["PUT"]',
    api({ methods: ['PUT'] }),
    'option "methods" is ["PUT"]',
    'Method.GET, Method.POST, Method.HEAD and Method.QUERY',
  ],
  [
    'an origin with a slash',
    api({ trustedOrigins: ['https://a.example/'] }),
    'option "trustedOrigins" is ["https://a.example/"]',
    'without a path or a trailing slash',
  ],
  [
    'a host for an origin',
    api({ trustedOrigins: ['a.example'] }),
    'option "trustedOrigins" is ["a.example"]',
    "such as 'https://app.example.com'",
  ],
  [
    'an origin that is not in a list',
    api({ trustedOrigins: 'https://a.example' }),
    'option "trustedOrigins" is',
    'a list of origins',
  ],
  ['allowedHosts: []', api({ allowedHosts: [] }), 'option "allowedHosts" is []', "such as 'api.example.com'"],
  [
    'engine: "jit"',
    api({ engine: 'jit' }),
    'option "engine" is "jit"',
    "'compiled', 'graphql-js', or a function",
  ],
  [
    'a single rule',
    api({ validationRules: () => ({}) }),
    'option "validationRules" is a function',
    'a list of validation rules',
  ],
  ['onError: "log"', api({ onError: 'log' }), 'option "onError" is "log"', 'a function, or false'],
  ['formatError: true', api({ formatError: true }), 'option "formatError" is true', 'accepted: a function'],
  [
    'introspection: "off"',
    api({ introspection: 'off' }),
    'option "introspection" is "off"',
    'a boolean, or a function of the request',
  ],
  [
    'batching: {}',
    api({ batching: { limit: 5 } }),
    'option "batching" is {"limit":5}',
    'accepted: a boolean',
  ],
  [
    'documentCacheBytes: "32mb"',
    api({ documentCacheBytes: '32mb' }),
    'option "documentCacheBytes" is "32mb"',
    'a whole number of bytes',
  ],
  [
    'an unknown subprotocol',
    api({ subscriptionProtocols: ['graphql-sse'] }),
    'option "subscriptionProtocols" is ["graphql-sse"]',
    "'graphql-transport-ws' and 'graphql-ws'",
  ],
  [
    'an unknown option of GraphiQL',
    api({ graphiql: { titel: 'API' } }),
    'unknown option "graphiql.titel"',
    'did you mean "graphiql.title"?',
  ],
  [
    'a theme that does not exist',
    api({ graphiql: { theme: 'blue' } }),
    'option "graphiql.theme" is "blue"',
    "'system', 'light' or 'dark'",
  ],
  [
    'openapi() without a path',
    thrown(() => handler.openapi(untyped<string>(undefined))),
    'undefined',
    /accepted: the path of the mount, such as '\/graphql'/,
  ],
  ...Object.entries(REPLACED_OPTIONS).map(
    ([name, replacement]): Mistake => [
      `${name} of another server`,
      api({ [name]: true }),
      `unknown option "${name}"`,
      replacement,
    ],
  ),
];

export const SUBSCRIPTIONS: Mistake[] = [
  [
    'a context that an async function returned',
    sockets({ context: Promise.resolve({}) }),
    'option "context" is a promise',
    'or a function of the WebSocket, which may be async',
  ],
  [
    'the app in place of the server',
    thrown(() => attachSubscriptions(untyped<http.Server>(express()), handler)),
    'argument "server" is a function',
    'app.listen()',
  ],
  [
    'no target',
    socketsOf(undefined),
    'argument "target" is undefined',
    'accepted: the handler that graphqlHTTP returned',
  ],
  [
    'the app as the target',
    socketsOf(express()),
    'argument "target" is a function',
    'accepted: the handler that graphqlHTTP returned',
  ],
  [
    'the websocketHandler as the target',
    socketsOf(handler.websocketHandler),
    'argument "target" is a function',
    'the handler that graphqlHTTP returned',
  ],
  [
    'SDL as the target',
    socketsOf('type Query { a: Int }'),
    'argument "target" is "type Query',
    'buildSchema',
  ],
  ['the schema in an object', socketsOf({ schema }), 'argument "target" is {', 'Pass the schema first'],
  [
    'attached twice',
    thrown(() => {
      const twice = http.createServer();
      attachSubscriptions(twice, handler);
      attachSubscriptions(twice, handler);
    }),
    'the path "/graphql" of this server already has subscriptions attached',
    'path',
  ],
  [
    'a schema whose handler is mounted on the path',
    () =>
      withLog(async () => {
        const listening = http.createServer(express().use('/graphql', handler));
        const subscriptions = attachSubscriptions(listening, schema);
        await until(() => jest.mocked(console.warn).mock.calls.length > 0);
        await subscriptions.close();
        return '';
      }),
    'attachSubscriptions was given a schema, but a handler of graphqlHTTP is mounted on /graphql',
    'pass the handler, attachSubscriptions(server, handler)',
  ],
  ['maxpayload', sockets({ maxpayload: 5 }), 'unknown option "maxpayload"', 'did you mean "maxPayload"?'],
  [
    'an origin with a slash',
    sockets({ allowedOrigins: ['https://a.example/'] }),
    'option "allowedOrigins" is ["https://a.example/"]',
    'without a path or a trailing slash',
  ],
  [
    'an origin that is not in a list',
    sockets({ allowedOrigins: 'https://a.example' }),
    'option "allowedOrigins" is "https://a.example"',
    'a list of origins',
  ],
  [
    'a path without a slash',
    sockets({ path: 'graphql' }),
    'option "path" is "graphql"',
    "a path such as '/graphql'",
  ],
  [
    'a pattern as the path',
    sockets({ path: '/:tenant/graphql' }),
    'option "path" is "/:tenant/graphql"',
    "a path such as '/graphql'",
  ],
  [
    'a middleware that is not in a list',
    sockets({ middleware: () => undefined }),
    'option "middleware" is a function',
    'a list of middleware functions',
  ],
  [
    'contextPer: "request"',
    sockets({ contextPer: 'request' }),
    'option "contextPer" is "request"',
    "'operation', 'event' or 'connection'",
  ],
  [
    'keepAlive: "12s"',
    sockets({ keepAlive: '12s' }),
    'option "keepAlive" is "12s"',
    'milliseconds, a whole number from 0',
  ],
  [
    'onError with a handler',
    sockets({ onError: () => undefined }),
    'option "onError" has no effect with a handler',
    'pass it to graphqlHTTP(schema, { onError })',
  ],
  [
    'operations: "query"',
    sockets({ operations: 'query' }),
    'option "operations" is "query"',
    "a list of 'query', 'mutation' and 'subscription'",
  ],
  [
    'a close code that cannot be sent',
    thrown(() => attachSubscriptions(http.createServer(), handler).disconnect(() => true, 1005)),
    'argument "code" is 1005',
    'such as 1000 or 4403',
  ],
  [
    'disconnect without a predicate',
    thrown(() =>
      attachSubscriptions(http.createServer(), handler).disconnect(untyped<() => boolean>(undefined)),
    ),
    'argument "predicate" is undefined',
    'accepted: a function',
  ],
];

export const SERVER: Mistake[] = [
  ['a port', server({ port: 3000 }), 'unknown option "port"', 'createServer(app).listen(port)'],
  [
    'keepalivetimeout',
    server({ keepalivetimeout: 5 }),
    'unknown option "keepalivetimeout"',
    'did you mean "keepAliveTimeout"?',
  ],
  ['http2: "yes"', server({ http2: 'yes' }), 'option "http2" is "yes"', 'accepted: a boolean'],
  [
    'no app',
    thrown(() => createServer(untyped<express.Express>(undefined))),
    'argument "app" is undefined',
    'a function (req, res)',
  ],
  [
    'a port in place of the options',
    thrown(() => createServer(express(), untyped<object>(3000))),
    'argument "options" is 3000',
    'accepted: an object',
  ],
  [
    'a class that is not one of Node',
    server({ IncomingMessage: class {} }),
    'option "IncomingMessage" is a function',
    "a class that extends Node's IncomingMessage",
  ],
];

export const PUBSUB: Mistake[] = [
  [
    'a host in place of a URL',
    pubsub({ redis: 'localhost:6379' }),
    'option "redis" is "localhost:6379"',
    'a redis:// or rediss:// URL',
  ],
  [
    'an http URL',
    pubsub({ redis: 'http://localhost' }),
    'option "redis" is "http://localhost"',
    'a redis:// or rediss:// URL',
  ],
  [
    'a URL with a name as database',
    pubsub({ redis: 'redis://localhost/app' }),
    'option "redis" is "redis://localhost/app"',
    '(user:password@host:port/database, percent-encoded)',
  ],
  [
    'a URL whose password is not percent-encoded',
    pubsub({ redis: 'redis://app:se/cret@localhost' }),
    'option "redis" is "redis://app:***@localhost"',
    'percent-encoded',
  ],
  [
    'a URL with an impossible port',
    pubsub({ redis: 'redis://localhost:65536' }),
    'option "redis" is "redis://localhost:65536"',
    'a redis:// or rediss:// URL',
  ],
  [
    'a client of the package redis',
    pubsub({ redis: { duplicate: () => undefined, isOpen: false } }),
    'option "redis" is {"isOpen":false}',
    'or an ioredis client',
  ],
  [
    'redisUrl',
    pubsub({ redisUrl: 'redis://localhost' }),
    'unknown option "redisUrl"',
    'did you mean "redis"?',
  ],
  ['a buffer of 0', pubsub({ bufferSize: 0 }), 'option "bufferSize" is 0', 'a whole number from 1'],
  [
    'the options of another client',
    pubsub({ redis: { host: 'localhost' } }),
    'option "redis" is {"host":"localhost"}',
    'or an ioredis client',
  ],
  [
    'filter of a function, as withFilter takes it',
    thrown(() =>
      filter(
        untyped<Numbers>(() => createPubSub().subscribe('tick')),
        () => true,
      ),
    ),
    'filter: argument "stream" is a function',
    'Call the function, and pass what it returns',
  ],
  [
    'map without a function',
    thrown(() => map(createPubSub().subscribe('tick'), untyped<() => number>(undefined))),
    'map: argument "transform" is undefined',
    'accepted: a function',
  ],
  [
    'map of a promise',
    thrown(() => map(untyped<Numbers>(Promise.resolve()), () => 1)),
    'map: argument "stream" is a promise',
    'accepted: a stream, such as events.subscribe(topic)',
  ],
  [
    'a list of streams for merge, as Repeater.merge takes it',
    thrown(() => merge(untyped<Numbers>([createPubSub().subscribe('tick')]))),
    'merge: argument "streams" is [',
    'Pass the streams one by one: merge(...streams)',
  ],
];
