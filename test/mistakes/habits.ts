import http from 'node:http';
import express, { type RequestHandler } from 'express';
import { buildSchema, parse } from 'graphql';
import { WebSocketServer } from 'ws';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { inspect } from '../../middleware/inspect.ts';
import { createPubSub } from '../../middleware/pubsub.ts';
import { createServer } from '../../middleware/server.ts';
import { staticFiles } from '../../middleware/static.ts';
import { inject, subscribe } from '../../middleware/testing.ts';
import { REPLACED_OPTIONS as SOCKET_OPTIONS } from '../../src/live/options.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { apiOf, pubsub, server, socketsOn } from './creation.ts';
import { type Mistake, post, send, thrown, untyped, withLog } from './mistake.ts';

// Mistakes of users who know another package: arguments, orders and options of its functions.

const schema = buildSchema('type Query { hello: String } type Subscription { tick: Int }');
const handler = graphqlHTTP(schema);

const api = (options: unknown) => thrown(() => graphqlHTTP(schema, untyped<GraphQLOptions>(options)));
const files = (dir: unknown, options?: unknown) =>
  thrown(() => staticFiles(untyped<string>(dir), untyped<StaticFilesOptions>(options)));
const sockets = (given: unknown, target: unknown = handler, options?: unknown) =>
  socketsOn(given, target, options);

/** The message of the promise that a function returns. */
const rejected = (run: () => Promise<unknown>) => () =>
  run().then(
    () => 'nothing was rejected',
    (error: Error) => error.message,
  );

/** Mounts a function, as Express does with a middleware, and sends a request. */
const mounted = (middleware: unknown) => () =>
  withLog(() => send(express().use('/graphql', untyped<RequestHandler>(middleware)), {}));

const SERVERS = 'an http.Server, such as app.listen() returns: attachSubscriptions(server, handler)';

export const HABITS: Mistake[] = [
  // Functions that are mounted without a call
  [
    'graphqlHTTP that was not called',
    mounted(graphqlHTTP),
    'graphqlHTTP: an argument is a request or a response, because the function itself was mounted',
    'mount what it returns: app.use(graphqlHTTP(...))',
  ],
  [
    'staticFiles that was not called',
    mounted(staticFiles),
    'staticFiles: an argument is a request or a response, because the function itself was mounted',
    'mount what it returns: app.use(staticFiles(...))',
  ],
  [
    'inspect that was not called',
    mounted(inspect),
    'inspect: an argument is a request or a response, because the function itself was mounted',
    'mount what it returns: app.use(inspect(...))',
  ],
  // Arguments
  [
    'the path of the mount as the first argument of staticFiles',
    files('/static', 'public'),
    'argument "options" is "public"',
    "app.use('/path', staticFiles(dir))",
  ],
  [
    'an http: URL as the directory',
    files(new URL('http://localhost/public')),
    'argument "dir" is "http://localhost/public"',
    'accepted: a path or a file: URL',
  ],
  [
    'the options of @fastify/static',
    files({ root: 'public' }),
    'argument "dir" is {"root":"public"}',
    'accepted: a path',
  ],
  [
    'a parsed document as the schema',
    apiOf(parse('type Query { a: Int }')),
    'argument "schema" is {"kind":"Document"',
    'buildASTSchema or makeExecutableSchema',
  ],
  [
    'a module as the schema',
    apiOf({ default: schema }),
    'argument "schema" is {"default":',
    'Pass the default export of the module',
  ],
  [
    'a list of SDL as the schema',
    apiOf(['type Query { a: Int }']),
    'argument "schema" is ["type Query',
    'makeExecutableSchema',
  ],
  [
    'the arguments of SubscriptionServer.create',
    sockets({ schema }, { server: {}, path: '/graphql' }),
    'argument "server" is {"schema"',
    SERVERS,
  ],
  ['the arguments in the wrong order', sockets(handler, http.createServer()), 'argument "server"', SERVERS],
  [
    'a WebSocketServer, as useServer of graphql-ws takes',
    sockets(new WebSocketServer({ noServer: true })),
    'argument "server"',
    SERVERS,
  ],
  [
    'the path as the options of attachSubscriptions',
    sockets(http.createServer(), handler, '/graphql'),
    'argument "options" is "/graphql"',
    "an object such as { path: '/graphql' }",
  ],
  [
    'the options before the app, as in https.createServer',
    server({ keepAlive: true }, express()),
    'argument "app" is {"keepAlive":true}',
    'createServer(app, options)',
  ],
  [
    'the URL of Redis as the options',
    pubsub('redis://localhost'),
    'argument "options" is "redis://localhost"',
    "an object such as { redis: 'redis://localhost:6379' }",
  ],
  [
    'a callback for events',
    thrown(() =>
      createPubSub().subscribe(
        'said',
        untyped<object>(() => undefined),
      ),
    ),
    'subscribe: argument "options" is a function',
    'Read the events with for await',
  ],
  [
    'a list of topics',
    thrown(() => createPubSub().subscribe(untyped<string>(['said', 'left']))),
    'subscribe: argument "topic" is ["said","left"]',
    'the name of a topic, a string',
  ],
  [
    'an event without a topic',
    thrown(() => createPubSub().publish(untyped<string>({ said: 'hello' }), undefined)),
    'publish: argument "topic" is {"said":"hello"}',
    'the name of a topic, a string',
  ],
  [
    'a query as the request of inject',
    rejected(() => inject(handler, untyped<{ query: string }>('{ hello }'))),
    'argument "request" is "{ hello }"',
    'accepted: an object',
  ],
  [
    'a server without subscriptions',
    rejected(() => subscribe(createServer(express()), { query: 'subscription { tick }' })),
    'the server has no WebSockets',
    'call attachSubscriptions(server, handler) before',
  ],
  // Options
  [
    'resolvers as the options',
    api({ Query: { hello: () => 'world' } }),
    'unknown option "Query"',
    'makeExecutableSchema',
  ],
  [
    'uploads: false of Apollo Server 2',
    api({ uploads: false }),
    'option "uploads" is false',
    'multipartUploadsEnabled: false refuses uploads',
  ],
  [
    'limits of multer',
    api({ uploads: { limits: { fileSize: 5 } } }),
    'unknown option "uploads.limits"',
    'accepted: maxFileSize',
  ],
  [
    'a budget without a limit',
    api({ budget: {} }),
    'option "budget.limit" is undefined',
    'accepted: tokens, a whole number from 1',
  ],
  [
    'a number as the cost',
    api({ cost: 1000 }),
    'option "cost" is 1000',
    'an object such as { maxCost: 500 }',
  ],
  [
    'a file as the documents',
    api({ documents: 'persisted.json' }),
    'option "documents" is "persisted.json"',
    "an object such as { from: 'persisted-documents.json' }",
  ],
  [
    'a manifest that does not exist',
    api({ documents: { from: '/none/persisted.json' } }),
    'option "documents.from" is "/none/persisted.json", which cannot be read',
    'no such file or directory',
  ],
  [
    'an origin as an allowed host',
    api({ allowedHosts: ['https://api.example.com'] }),
    'option "allowedHosts" is ["https://api.example.com"]',
    'without a scheme, a path or wildcards',
  ],
  [
    'a pattern as an allowed host',
    api({ allowedHosts: ['*.example.com'] }),
    'option "allowedHosts" is ["*.example.com"]',
    'without a scheme, a path or wildcards',
  ],
  [
    'patterns of the package cors as origins',
    sockets(http.createServer(), handler, { allowedOrigins: [/example/] }),
    'option "allowedOrigins" is ["/example/"]',
    'or a function of the origin and the request',
  ],
  [
    'ttl, which is not similar to html',
    files('test', { ttl: 60 }),
    'unknown option "ttl"',
    'accepted: html, index',
  ],
  [
    'the path of a certificate',
    server(express(), { key: 'key.pem', cert: 'cert.pem' }),
    'option "key" is a string without "-----BEGIN"',
    "readFileSync('key.pem')",
  ],
  [
    'https: true',
    server(express(), { https: true }),
    'unknown option "https"',
    'createServer(app, { key, cert })',
  ],
  [
    'host and port of Redis',
    pubsub({ host: 'localhost', port: 6379 }),
    'unknown option "host"',
    "a URL such as 'redis://localhost:6379'",
  ],
  [
    'url of light-my-request',
    rejected(() => inject(handler, untyped<{ path: string }>({ url: '/graphql' }))),
    'unknown option "url"',
    'use "path"',
  ],
  [
    'a factory of rules that was not called',
    () =>
      withLog(() =>
        post(
          express().use(
            '/graphql',
            graphqlHTTP(
              schema,
              untyped<GraphQLOptions>({
                validationRules: [() => () => ({})],
              }),
            ),
          ),
          { query: '{ hello }' },
        ),
      ),
    'option "validationRules" returned a function',
    'Pass the rule that a factory returns',
  ],
  ...Object.entries(SOCKET_OPTIONS).map(
    ([name, replacement]): Mistake => [
      `${name} of another WebSocket server`,
      sockets(http.createServer(), handler, { [name]: true }),
      `unknown option "${name}"`,
      replacement,
    ],
  ),
];
