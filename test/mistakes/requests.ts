import express from 'express';
import { buildSchema, GraphQLNonNull, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import multer from 'multer';
import { type GraphQLOptions, graphqlHTTP, Upload, type UploadedFile } from '../../middleware/graphql.ts';
import { staticFiles } from '../../middleware/static.ts';
import type { ContextDetails } from '../../types/subscriptions.ts';
import { closing, form, type Mistake, operate, post, send, untyped, upgrade, withLog } from './mistake.ts';

// Mistakes in requests, in resolvers and in the order of middleware.

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

export const REQUESTS: Mistake[] = [
  [
    'a body that is not JSON',
    () => post(api(), '{query: hello}'),
    /^400 .*is not valid JSON/,
    'send an object with a \\"query\\"',
  ],
  [
    'an empty body',
    () => post(api(), ''),
    /^400 .*The request body is empty/,
    'send an object with a \\"query\\"',
  ],
  [
    'a string for a body',
    () => post(api(), '"{hello}"'),
    /^400 .*must be a JSON object/,
    'with a \\"query\\"',
  ],
  [
    'no query',
    () => post(api(), { operation: '{ hello }' }),
    /^400 .*BAD_REQUEST/,
    'The parameter \\"query\\" is missing',
  ],
  [
    'a query that is not a string',
    () => post(api(), { query: { hello: true } }),
    /^400 .*BAD_REQUEST/,
    'The parameter \\"query\\" must be a string',
  ],
  [
    'variables as text',
    () => post(api(), { query: '{ hello }', variables: 'name=Ada' }),
    /^400 .*BAD_REQUEST/,
    /The parameter \\"variables\\" must be/,
  ],
  [
    'a misspelt field',
    () => post(api(), { query: '{ helo }' }),
    'Cannot query field \\"helo\\"',
    'Did you mean \\"hello\\"?',
  ],
  [
    'a syntax error',
    () => post(api(), { query: '{ hello' }),
    'GRAPHQL_PARSE_FAILED',
    'Syntax Error: Expected Name, found <EOF>',
  ],
  [
    'a variable of a wrong type',
    () => post(api(), { query: 'query ($n: String) { hello(name: $n) }', variables: { n: 1 } }),
    'BAD_USER_INPUT',
    /Variable \\"\$n\\" (?:got|has) invalid value.*String cannot represent a non string value/,
  ],
  [
    'a missing variable',
    () => post(api(), { query: 'query ($n: String!) { hello(name: $n) }' }),
    'BAD_USER_INPUT',
    /Variable \\"\$n\\" .*\\"String!\\" (?:was not|to be) provided/,
  ],
  [
    'two operations without a name',
    () => post(api(), { query: 'query A { hello } query B { hello }' }),
    'OPERATION_RESOLUTION_FAILURE',
    'the request must name one with \\"operationName\\"',
  ],
  [
    'a name without its operation',
    () => post(api(), { query: '{ hello }', operationName: 'A' }),
    'OPERATION_RESOLUTION_FAILURE',
    'contains no operation named \\"A\\"',
  ],
  [
    'a list without batching',
    () => post(api(), [{ query: '{ hello }' }]),
    /^400 .*Batching is disabled/,
    'option \\"batching\\"',
  ],
  [
    'an empty batch',
    () => post(api({ batching: true }), []),
    /^400 .*The batch is empty/,
    'must contain at least one operation',
  ],
  [
    'too many operations in a batch',
    () => post(api({ batching: true }), Array(11).fill({ query: '{ hello }' })),
    /^413 .*contains 11 operations/,
    'at most 10 are allowed',
  ],
  [
    'text/plain',
    () => send(api(), { method: 'POST', body: '{"query":"{ hello }"}' }),
    /^415 .*Content-Type of the request is not supported/,
    'send application/json',
  ],
  [
    'a urlencoded form',
    () =>
      send(api(), {
        method: 'POST',
        body: 'query={hello}',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      }),
    /^415 .*not supported/,
    'send application/json',
  ],
  [
    'another charset',
    () =>
      send(api(), {
        method: 'POST',
        body: '{}',
        headers: { 'content-type': 'application/json; charset=latin1' },
      }),
    /^415 .*charset/,
    'must be UTF-8',
  ],
  [
    'a compressed body',
    () =>
      send(api(), {
        method: 'POST',
        body: 'x',
        headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      }),
    /^415 .*UNSUPPORTED_ENCODING/,
    /uncompressed|inflate|not supported/,
  ],
  [
    'PUT',
    () => send(api(), { method: 'PUT', body: '{}' }),
    /^405 .*The method PUT is not allowed/,
    'allowed: GET, POST, HEAD, QUERY',
  ],
  [
    'a CORS preflight without cors',
    () => send(api(), { method: 'OPTIONS' }),
    /^405 .*The method OPTIONS is not allowed/,
    'for CORS mount the package cors before graphqlHTTP',
  ],
  [
    'Accept: text/csv',
    () => get('{ hello }', { accept: 'text/csv' }),
    /^406 .*No supported response type is acceptable/,
    'application/json',
  ],
  [
    'a subscription over HTTP',
    () => post(api(), { query: 'subscription { tick }' }),
    'SUBSCRIPTION_OVER_HTTP',
    'attachSubscriptions',
  ],
  [
    'a mutation without a Mutation type',
    () =>
      post(express().use('/graphql', graphqlHTTP(buildSchema('type Query { a: Int }'))), {
        query: 'mutation { a }',
      }),
    /"code":"GRAPHQL_VALIDATION_FAILED"/,
    /Schema is not configured to execute mutation|mutation operation is not supported by the schema/,
  ],
  [
    'persisted queries',
    () => post(api(), { extensions: { persistedQuery: { version: 1, sha256Hash: 'a' } } }),
    /^200 .*PersistedQueryNotSupported/,
    'PERSISTED_QUERY_NOT_SUPPORTED',
  ],
  [
    'a mutation in a link that a chat previews',
    () => get('mutation { wipe }', { 'user-agent': 'Slackbot-LinkExpanding 1.0' }),
    /^403 .*its User-Agent is that of a link previewer/,
    'send it as POST',
  ],
  [
    'a mutation over GET of another site',
    () => get('mutation { wipe }', { origin: 'https://a.example' }),
    /^403 .*its Origin https:\/\/a\.example was compared with the host 127\.0\.0\.1/,
    'option \\"getMutations\\"',
  ],
  [
    'a mutation over GET with getMutations: false',
    () => get('mutation { wipe }', {}, { getMutations: false }),
    /^405 .*Mutations over GET are disabled/,
    'send the mutation as POST',
  ],
  [
    'another host',
    () => get('{ hello }', {}, { allowedHosts: ['api.example'] }),
    /^421 .*The host of the request is not allowed/,
    'option \\"allowedHosts\\"',
  ],
  [
    'a query that is too deep',
    () => post(api({ limits: { depth: 1 } }), { query: '{ __schema { types { name } } }' }),
    /^(200|400)/,
    /limit|introspection|errors|data/,
  ],
  [
    'a query with too many aliases',
    () => post(api({ limits: { aliases: 1 } }), { query: '{ a: hello b: hello }' }),
    /^400 .*LIMIT_ALIASES/,
    'The operation has more than 1 aliases',
  ],
  [
    'introspection that is off',
    () => post(api({ introspection: false }), { query: '{ __schema { queryType { name } } }' }),
    'INTROSPECTION_OFF',
    /[Ii]ntrospection is (disabled|off|not)/,
  ],
  [
    'a body that is too large',
    () => post(api({ limits: { bodyBytes: 10 } }), { query: '{ hello }' }),
    /^413 .*BODY_TOO_LARGE/,
    'is larger than 10 bytes',
  ],
  [
    'GraphiQL on an exact route',
    () => send(express().all('/graphql', graphqlHTTP(schema)), { headers: { accept: 'text/html' } }),
    /^500 .*GraphiQL cannot run on an exact route/s,
    "Mount the handler with <code>app.use('/graphql', graphqlHTTP(schema))",
  ],
  [
    'variables in a URL that are not JSON',
    () => send(api(), { path: '/graphql?query={hello}&variables=name' }),
    /^400 .*\\"variables\\"/,
    'JSON',
  ],
  [
    'a parameter that is repeated',
    () => send(api(), { path: '/graphql?query={hello}&query={hello}' }),
    /^400 .*\\"query\\"/,
    /once|repeated|twice/,
  ],
  [
    'a body that earlier middleware consumed',
    () => {
      const app = express().use(
        (req, _res, next) => void req.resume().once('end', () => next()),
        graphqlHTTP(schema),
      );
      return post(app, { query: '{ hello }' });
    },
    /^400 .*Earlier middleware has consumed the request body/,
    'mount graphqlHTTP before that middleware',
  ],
];

const OPERATIONS = JSON.stringify({
  query: 'mutation ($file: Upload) { store(file: $file) }',
  variables: { file: null },
});
const MAP = '{"f":["variables.file"]}';
const file = new Blob(['content of the file']);

export const UPLOADS: Mistake[] = [
  [
    'no operations',
    () => form(api(), { map: MAP, f: file }),
    /^400 .*BAD_MULTIPART/,
    /must come after the fields|\\"operations\\" is missing/,
  ],
  [
    'no map',
    () => form(api(), { operations: OPERATIONS }),
    /^400 .*BAD_MULTIPART/,
    'Multipart field \\"map\\" is missing',
  ],
  [
    'the file before the map',
    () => form(api(), { operations: OPERATIONS, f: file, map: MAP }),
    /^400 .*BAD_MULTIPART/,
    'Files must come after the fields \\"operations\\" and \\"map\\"',
  ],
  [
    'operations as a file',
    () => form(api(), { operations: new Blob([OPERATIONS]), map: MAP }),
    /^400 .*BAD_MULTIPART/,
    'must be a text part, without a filename',
  ],
  [
    'operations that are not JSON',
    () => form(api(), { operations: 'mutation { store }', map: MAP }),
    /^400 .*BAD_OPERATIONS/,
    'must be JSON',
  ],
  [
    'a map that is not JSON',
    () => form(api(), { operations: OPERATIONS, map: 'variables.file' }),
    /^400 .*BAD_MAP/,
    'must be JSON',
  ],
  [
    'a map of strings',
    () => form(api(), { operations: OPERATIONS, map: '{"f":"variables.file"}', f: file }),
    /^400 .*BAD_MAP/,
    'must have a list of paths for each file',
  ],
  [
    'a path that does not exist',
    () => form(api(), { operations: OPERATIONS, map: '{"f":["variables.photo"]}', f: file }),
    /^400 .*BAD_MAP_PATH/,
    /variables\.photo/,
  ],
  [
    'a path without variables',
    () => form(api(), { operations: OPERATIONS, map: '{"f":["file"]}', f: file }),
    /^400 .*BAD_MAP_PATH/,
    /\\"file\\"/,
  ],
  [
    'a member that is not null',
    () => form(api(), { operations: OPERATIONS.replace('null', '""'), map: MAP, f: file }),
    /^400 .*BAD_MAP_PATH/,
    /null/,
  ],
  [
    'a file that is not sent',
    () => form(api(), { operations: OPERATIONS, map: MAP }),
    /^400 .*FILE_MISSING/,
    /\\"f\\"/,
  ],
  [
    'a file that is too large',
    () => form(api({ uploads: { maxFileSize: 5 } }), { operations: OPERATIONS, map: MAP, f: file }),
    /^413 .*FILE_TOO_LARGE/,
    'The file \\"big.txt\\" (part \\"f\\") is larger than 5 bytes',
  ],
  [
    'too many files',
    () => form(api({ uploads: { maxFiles: 1 } }), { operations: OPERATIONS, map: MAP, f: file, g: file }),
    /^413 .*TOO_MANY_FILES/,
    'at most 1 file',
  ],
  [
    'a file that accept refuses',
    () => form(api({ uploads: { accept: () => false } }), { operations: OPERATIONS, map: MAP, f: file }),
    /^415 .*FILE_NOT_ACCEPTED/,
    'The file \\"big.txt\\" (part \\"f\\") has a type that is not accepted',
  ],
  [
    'uploads that are off',
    () => form(api({ multipartUploadsEnabled: false }), { operations: OPERATIONS, map: MAP, f: file }),
    /^415 .*not supported/,
    'send application/json',
  ],
  [
    'a JSON object in place of a file',
    () =>
      post(api(), {
        query: 'mutation ($file: Upload) { store(file: $file) }',
        variables: { file: { filename: 'evil' } },
      }),
    /BAD_USER_INPUT/,
    'Upload must be a file part of a multipart request, mapped to a variable',
  ],
  [
    'a literal in place of a file',
    () => post(api(), { query: 'mutation { store(file: "x") }' }),
    /GRAPHQL_VALIDATION_FAILED/,
    'Upload must be given as a variable',
  ],
  [
    'no boundary',
    () => send(api(), { method: 'POST', body: 'x', headers: { 'content-type': 'multipart/form-data' } }),
    /^400 .*BAD_MULTIPART/,
    'The Content-Type has no boundary',
  ],
  [
    'a form of another site',
    () => send(api(), { method: 'POST', body: new FormData(), headers: { origin: 'https://a.example' } }),
    /^403 .*may come from a form of another site.*its Origin https:\/\/a\.example was compared with the host 127\.0\.0\.1/,
    /option \\"trustedOrigins\\"/,
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
    /^500 .*Another parser has consumed the multipart body/s,
    'mount graphqlHTTP before multer',
  ],
];

const promise = async (): Promise<boolean> => true;

export const RESOLVERS: Mistake[] = [
  [
    'a resolver that throws',
    logged({}, 'query Report { crash }'),
    '"debug":"connect ECONNREFUSED',
    'unexpected error in the operation "Report" at "crash" (http)',
  ],
  [
    'a resolver that returns an object for a String',
    logged({}, '{ leaf }'),
    'String cannot represent value: { id: 7 }',
    'at "leaf"',
  ],
  [
    'no resolver for a non-null field',
    logged({}, '{ required }'),
    'Cannot return null for non-nullable field Query.required',
    'at "required"',
  ],
  [
    'resolvers of SDL without rootValue',
    () =>
      withLog(() =>
        post(express().use(graphqlHTTP(buildSchema('type Query { user: String! }'))), { query: '{ user }' }),
      ),
    'Cannot return null for non-nullable field Query.user',
    'unexpected error in an operation at "user"',
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
    /^500/,
    'no session',
  ],
  [
    'formatError without a return',
    logged({ formatError: untyped(() => undefined) }, '{ helo }'),
    'option "formatError" returned undefined',
    'accepted: an object',
  ],
  [
    'an async formatError',
    logged({ formatError: untyped(promise) }, '{ helo }'),
    'option "formatError" returned a promise',
    'accepted: a value that is not a promise',
  ],
  [
    'an async rootValue',
    logged({ rootValue: promise }, '{ hello }'),
    'option "rootValue" returned a promise',
    'accepted: a value that is not a promise',
  ],
  [
    'an async pretty',
    logged({ pretty: untyped(promise) }, '{ hello }'),
    'option "pretty" returned a promise',
    'accepted: a value that is not a promise',
  ],
  [
    'a schema function that returns SDL',
    () =>
      withLog(() =>
        post(express().use(graphqlHTTP(untyped<() => GraphQLSchema>(() => 'type Query { a: Int }'))), {
          query: '{ a }',
        }),
      ),
    'argument "schema" is "type Query',
    'buildSchema',
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
    'connect ECONNREFUSED',
    'the option "onError" failed',
  ],
  [
    'a folder without html',
    () => send(express().use(staticFiles(__dirname)), { path: '/' }),
    /^404/,
    'Cannot GET /',
  ],
];

const handler = graphqlHTTP(schema);
const INIT = { type: 'connection_init' };
const start = (query: string, id = '1') => ({ id, type: 'subscribe', payload: { query } });
const never = () => new Promise<never>(() => undefined);

export const SOCKETS: Mistake[] = [
  [
    'another path',
    () => upgrade(handler, {}, ['/subscriptions', {}]),
    /^404 Not Found: no subscriptions are attached to this path/,
    'attached: /graphql',
  ],
  [
    'a page of another origin',
    () => upgrade(handler, {}, ['/graphql', { host: 'b.example:81', origin: 'https://a.example' }]),
    /^403 Forbidden: the origin "https:\/\/a\.example" is not that of the host "b\.example:81"/,
    'not in "allowedOrigins"',
  ],
  [
    'another host',
    () =>
      upgrade(graphqlHTTP(schema, { allowedHosts: ['api.example'] }), {}, [
        '/graphql',
        { host: 'b.example' },
      ]),
    /^421 .*the host "b\.example"/,
    'not in "allowedHosts"',
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
    /^500 .*a middleware failed/,
    'no store',
  ],
  [
    'a middleware that never calls next',
    () =>
      upgrade(handler, { middleware: [() => undefined], connectionInitWaitTimeout: 20 }, ['/graphql', {}]),
    /^503/,
    'a middleware failed or took too long',
  ],
  [
    'allowedOrigins that returns a promise',
    () =>
      withLog(() =>
        upgrade(handler, { allowedOrigins: untyped(promise) }, ['/graphql', { origin: 'https://a.example' }]),
      ),
    /^500 .*"allowedOrigins" failed/,
    'accepted: a value that is not a promise',
  ],
  ['no subprotocol', () => closing(handler, {}, [], []), '4406', /[Ss]ubprotocol not acceptable/],
  [
    'no connection_init',
    () => closing(handler, { connectionInitWaitTimeout: 20 }, []),
    '4408',
    'Connection initialisation timeout',
  ],
  [
    'an operation before the acknowledgement',
    () => closing(handler, {}, [start('{ hello }')]),
    '4401',
    'Unauthorized',
  ],
  ['a message that is not JSON', () => closing(handler, {}, ['hello']), '4400', /Invalid message/],
  [
    'a message without an id',
    () => closing(handler, {}, [INIT, { type: 'subscribe', payload: { query: '{ hello }' } }]),
    '4400',
    /Invalid message/,
  ],
  [
    'a type of the legacy protocol',
    () => closing(handler, {}, [INIT, { id: '1', type: 'start', payload: { query: '{ hello }' } }]),
    '4400',
    /Invalid message/,
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
    /4401|4409/,
    /Subscriber for 1 already exists|Unauthorized/,
  ],
  [
    'a second connection_init',
    () => closing(handler, {}, [INIT, INIT]),
    '4429',
    'Too many initialisation requests',
  ],
  [
    'onConnect that returns false',
    () => closing(handler, { onConnect: () => false }, [INIT]),
    '4403',
    'Forbidden',
  ],
  [
    'a context function for HTTP that fails',
    () =>
      withLog(() =>
        closing(
          graphqlHTTP(schema, { context: (req: express.Request) => ({ user: req.get('x-user') }) }),
          {},
          [INIT],
        ),
      ),
    '4500 Internal server error',
    /unexpected error in an operation \(websocket\).*req\.get is not a function/s,
  ],
  [
    'a misspelt subscription',
    () => operate(handler, {}, { query: 'subscription { tik }' }),
    'Cannot query field \\"tik\\"',
    'Did you mean \\"tick\\"?',
  ],
  [
    'a subscription without a Subscription type',
    () => operate(graphqlHTTP(buildSchema('type Query { a: Int }')), {}, { query: 'subscription { a }' }),
    'GRAPHQL_VALIDATION_FAILED',
    /Schema is not configured to execute subscription|subscription operation is not supported by the schema/,
  ],
  [
    'subscribe that returns no iterable',
    () => withLog(() => operate(handler, {}, { query: 'subscription { noIterable }' })),
    'Internal server error',
    'Subscription field must return Async Iterable. Received: \\"events\\"',
  ],
  [
    'an operation of another kind',
    () => operate(handler, { operations: ['subscription'] }, { query: '{ hello }' }),
    'OPERATION_REFUSED',
    'A query is not accepted over this socket',
  ],
  [
    'a share function that returns an object',
    () => withLog(() => operate(handler, { share: untyped(() => ({})) }, { query: 'subscription { tick }' })),
    'option \\"share\\" returned {}',
    /accepted: a string/,
  ],
  [
    'an expiresAt that is not a date',
    () => withLog(() => closing(handler, { onConnect: () => ({ expiresAt: new Date('soon') }) }, [INIT])),
    '4500',
    /expiresAt/,
  ],
];
