import http from 'node:http';
import express from 'express';
import { buildSchema } from 'graphql';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { inspect } from '../../middleware/inspect.ts';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { pubsub, server, socketsOn } from './creation.ts';
import { type Mistake, thrown, untyped } from './mistake.ts';

// Values of the wrong kind for options and arguments that exist, and options that belong to another function.

const schema = buildSchema('type Query { hello: String } type Subscription { tick: Int }');
const handler = graphqlHTTP(schema);

const api = (options: unknown) => thrown(() => graphqlHTTP(schema, untyped<GraphQLOptions>(options)));
const files = (options: unknown, dir: unknown = 'examples') =>
  thrown(() => staticFiles(untyped<string>(dir), untyped<StaticFilesOptions>(options)));
const sockets = (options: unknown, target: unknown = handler, given: unknown = http.createServer()) =>
  socketsOn(given, target, options);

const STATIC_OPTIONS = 'accepted: an object such as { html: true }';
const BODY = 'use limits: { bodyBytes }, and uploads: { maxFileSize } for files';
const REDIS = "use redis: a URL such as 'redis://localhost:6379', or an ioredis client";

export const VALUES: Mistake[] = [
  // staticFiles
  [
    'several directories',
    files({}, ['a', 'b']),
    'argument "dir" is ["a","b"]',
    'accepted: a path or a file: URL',
  ],
  [
    'a Buffer as the directory',
    files({}, Buffer.from('/tmp')),
    'argument "dir" is {"type":"Buffer"',
    'accepted: a path',
  ],
  ['a glob as the directory', files({}, 'public/**'), /public\/\*\* does not exist/, 'Create the directory'],
  ['a home directory', files({}, '~/public'), /~\/public does not exist/, 'Create the directory'],
  ['an age that is NaN', files({ maxAge: Number.NaN }), 'option "maxAge" is NaN', "a string such as '1d'"],
  [
    'a date as an age',
    files({ maxAge: new Date(0) }),
    'option "maxAge" is "1970-01-01',
    "a string such as '1d'",
  ],
  [
    'html as a list of extensions',
    files({ html: ['html'] }),
    'option "html" is ["html"]',
    'accepted: a boolean',
  ],
  ['single of sirv', files({ single: true }), 'unknown option "single"', "use fallback: 'index.html'"],
  ['brotli of sirv', files({ brotli: true }), 'unknown option "brotli"', "use precompressed: ['br']"],
  ['gzip of sirv', files({ gzip: true }), 'unknown option "gzip"', "use precompressed: ['gzip']"],
  ['dev of sirv', files({ dev: true }), 'unknown option "dev"', 'files are always current'],
  ['headers', files({ headers: { 'x-a': 'b' } }), 'unknown option "headers"', 'did you mean "setHeaders"?'],
  ['prefix', files({ prefix: '/public' }), 'unknown option "prefix"', "app.use('/prefix', staticFiles(dir))"],
  ['root', files({ root: 'public' }), 'unknown option "root"', 'pass the directory as the first argument'],
  [
    'a coding as compress',
    files({ compress: 'gzip' }),
    'option "compress" is "gzip"',
    'a boolean, or an object',
  ],
  ['a list of options', files([]), 'argument "options" is []', STATIC_OPTIONS],
  ['null as the options', files(null), 'argument "options" is null', STATIC_OPTIONS],
  ['a callback as the options', files(() => undefined), 'argument "options" is a function', STATIC_OPTIONS],
  // graphqlHTTP
  [
    'introspection as a word',
    api({ introspection: 'yes' }),
    'option "introspection" is "yes"',
    'accepted: a boolean',
  ],
  [
    'an unknown engine',
    api({ engine: 'jit' }),
    'option "engine" is "jit"',
    "accepted: 'compiled', 'graphql-js'",
  ],
  ['engine: true', api({ engine: true }), 'option "engine" is true', "accepted: 'compiled', 'graphql-js'"],
  ['the size of a batch', api({ batching: 10 }), 'option "batching" is 10', 'accepted: a boolean'],
  ['a time limit', api({ timeout: 5000 }), 'unknown option "timeout"', 'AbortSignal.timeout'],
  ['bodyLimit of Fastify', api({ bodyLimit: 1e6 }), 'unknown option "bodyLimit"', BODY],
  ['limit of body-parser', api({ limit: '1mb' }), 'unknown option "limit"', BODY],
  ['maxBodySize', api({ maxBodySize: '1mb' }), 'unknown option "maxBodySize"', BODY],
  [
    'origins for HTTP',
    api({ allowedOrigins: [] }),
    'unknown option "allowedOrigins"',
    'trustedOrigins is for requests over HTTP',
  ],
  ['sse', api({ sse: true }), 'unknown option "sse"', 'Accept: text/event-stream'],
  ['formatError as text', api({ formatError: 'x' }), 'option "formatError" is "x"', 'accepted: a function'],
  ['a logger as onError', api({ onError: {} }), 'option "onError" is {}', 'accepted: a function, or false'],
  [
    'one rule without a list',
    api({ validationRules: {} }),
    'option "validationRules" is {}',
    'a list of validation rules',
  ],
  [
    'names of rules',
    api({ validationRules: ['A'] }),
    'option "validationRules" is ["A"]',
    'a list of validation rules',
  ],
  [
    'an age as text',
    api({ cacheControl: { defaultMaxAge: '5' } }),
    'option "cacheControl.defaultMaxAge" is "5"',
    'a number of seconds',
  ],
  ['responseCache', api({ responseCache: true }), 'unknown option "responseCache"', 'did you mean "cache"?'],
  [
    'a cost as text',
    api({ cost: { maxCost: '500' } }),
    'option "cost.maxCost" is "500"',
    'accepted: a whole number from 1',
  ],
  [
    'a list of documents',
    api({ documents: [] }),
    'option "documents" is []',
    "{ from: 'persisted-documents.json' }",
  ],
  [
    'the folder of multer',
    api({ uploads: { dest: 'uploads/' } }),
    'unknown option "uploads.dest"',
    'tempDir',
  ],
  [
    'types of files',
    api({ uploads: { accept: 'image/*' } }),
    'option "uploads.accept" is "image/*"',
    'a function of the file',
  ],
  [
    'a mode of GraphiQL',
    api({ graphiql: 'dev' }),
    'option "graphiql" is "dev"',
    'accepted: a boolean, an object',
  ],
  ['a function as the options', api(() => ({})), 'argument "options" is a function', 'accepted: an object'],
  // attachSubscriptions
  [
    'staticFiles as the target',
    sockets({}, staticFiles('examples')),
    'argument "target" is a function',
    'the handler that graphqlHTTP returned',
  ],
  [
    'the app as the server',
    sockets({}, handler, express()),
    'argument "server" is a function',
    'such as app.listen() returns',
  ],
  [
    'a port as the server',
    sockets({}, handler, 3000),
    'argument "server" is 3000',
    'such as app.listen() returns',
  ],
  [
    'a path without a slash',
    sockets({ path: 'graphql' }),
    'option "path" is "graphql"',
    "a path such as '/graphql'",
  ],
  [
    'a URL as the path',
    sockets({ path: 'ws://a/graphql' }),
    'option "path" is "ws://a/graphql"',
    "a path such as '/graphql'",
  ],
  [
    'a RegExp as the path',
    sockets({ path: /graphql/ }),
    'option "path" is "/graphql/"',
    "a path such as '/graphql'",
  ],
  ['onConnect as an object', sockets({ onConnect: {} }), 'option "onConnect" is {}', 'accepted: a function'],
  [
    'a name as middleware',
    sockets({ middleware: 'session' }),
    'option "middleware" is "session"',
    'a list of middleware functions',
  ],
  // createServer, createPubSub and inspect
  [
    'a promise as the app',
    server(Promise.resolve()),
    'argument "app" is a promise',
    'accepted: a function (req, res)',
  ],
  [
    'a Fastify instance as the app',
    server({ routing: 1 }),
    'argument "app" is {"routing":1}',
    'accepted: a function (req, res)',
  ],
  ['redis: true', pubsub({ redis: true }), 'option "redis" is true', 'a redis:// or rediss:// URL'],
  [
    'a host without a scheme',
    pubsub({ redis: 'localhost' }),
    'option "redis" is "localhost"',
    'a redis:// or rediss:// URL',
  ],
  [
    'connection of graphql-redis-subscriptions',
    pubsub({ connection: {} }),
    'unknown option "connection"',
    REDIS,
  ],
  [
    'publisher of graphql-redis-subscriptions',
    pubsub({ publisher: {} }),
    'unknown option "publisher"',
    REDIS,
  ],
  ['history: true', pubsub({ history: true }), 'option "history" is true', '{ length: 1000, age: 300_000 }'],
  [
    'a length as the history',
    pubsub({ history: 100 }),
    'option "history" is 100',
    '{ length: 1000, age: 300_000 }',
  ],
  [
    'the path as the options of inspect',
    thrown(() => inspect(untyped<object>('/inspect'))),
    'argument "options" is "/inspect"',
    'accepted: an object',
  ],
];
