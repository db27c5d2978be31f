/** @tags node graphql */
import { writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer as createHttpsServer, request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import compression from 'compression';
import { attachSubscriptions, createServer, graphqlHTTP, staticFiles, Upload } from 'espalier';
import { inject } from 'espalier/testing';
import type express from 'express';
import { GraphQLError, GraphQLInt, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import helmet from 'helmet';
import { tls } from '../exchange.ts';
import { eachExpress } from '../express.ts';
import { listen, makeFolder } from '../kit.ts';
import { comparable, type Seen, type SentRequest, send, withoutNonce } from './real.ts';

const PAGE = '<!doctype html><title>Home</title>';
const folder = makeFolder({ 'index.html': PAGE, 'digits.txt': '0123456789'.repeat(200) });
writeFileSync(join(folder, 'app.js'), 'export const a = 1;\n'.repeat(100));
writeFileSync(join(folder, 'app.js.br'), brotliCompressSync('export const a = 1;\n'.repeat(100)));
writeFileSync(join(folder, 'large.bin'), Buffer.alloc(3_000_000, 'x'));

const hello = { type: GraphQLString, resolve: () => 'world' };
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: {
      hello,
      user: { type: GraphQLString, resolve: (_root, _args, { user }: { user?: string }) => user },
      secret: {
        type: GraphQLString,
        resolve: () => {
          throw new GraphQLError('Not yours', { extensions: { code: 'FORBIDDEN', http: { status: 403 } } });
        },
      },
    },
  }),
  mutation: new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      hello,
      read: {
        type: GraphQLString,
        args: { file: { type: Upload } },
        resolve: (_root, { file }: { file: Upload }) => file.text(),
      },
    },
  }),
  subscription: new GraphQLObjectType({
    name: 'Subscription',
    fields: {
      count: {
        type: GraphQLInt,
        async *subscribe() {
          for (let count = 1; count <= 3; count++) yield { count };
        },
      },
    },
  }),
});

function createApp(framework: typeof express): express.Express {
  const app = framework();
  // Otherwise the bodies of errors contain stack traces, which differ.
  app.set('env', 'production');
  app.use('/files', staticFiles(folder, { html: true, precompressed: true, cacheControl: '1h' }));
  app.use(
    '/graphql',
    graphqlHTTP(schema, { batching: true, context: (req) => ({ user: req.headers.authorization }) }),
  );
  app.get('/cookies', (req, res) => {
    res
      .cookie('id', 'a b', { httpOnly: true })
      .clearCookie('old')
      .json({ received: req.headers.cookie ?? null });
  });
  app.get('/whoami', (req, res) => {
    res.json({ ip: req.ip, protocol: req.protocol, host: req.headers.host, secure: req.secure });
  });
  app.get('/moved', (_req, res) => res.redirect(302, '/files/'));
  app.get('/refused', (_req, _res, next) => next(Object.assign(new Error('no'), { status: 409 })));
  app.get('/empty', (_req, res) => void res.status(204).end());
  app.get('/chunks', (_req, res) => {
    res.write('one,');
    setImmediate(() => res.end('two'));
  });
  app.get('/trailers', (_req, res) => {
    res.writeHead(200, { Trailer: 'X-Sum' });
    res.write('body');
    res.addTrailers({ 'X-Sum': '42' });
    res.end();
  });
  app.post('/echo', (req, res) => void req.pipe(res));
  app.post('/json', framework.json({ limit: 1000 }), (req, res) => void res.json(req.body));
  app.post('/ignored', (_req, res) => void res.status(413).set('Connection', 'close').end('too large'));
  app.get('/compressed', compression({ threshold: 0 }), (_req, res) => void res.send('text '.repeat(500)));
  app.get('/guarded', helmet(), (_req, res) => void res.send('ok'));
  return app;
}

const JSON_HEADERS = { 'content-type': 'application/json' };
const post = (query: string, headers: Record<string, string> = {}): SentRequest => ({
  method: 'POST',
  path: '/graphql',
  headers: { ...JSON_HEADERS, ...headers },
  body: JSON.stringify({ query }),
});
const get = (path: string, headers: Record<string, string> = {}): SentRequest => ({ path, headers });

const FORM = [
  '--x',
  'Content-Disposition: form-data; name="operations"',
  '',
  '{"query":"mutation ($f: Upload) { read(file: $f) }","variables":{"f":null}}',
  '--x',
  'Content-Disposition: form-data; name="map"',
  '',
  '{"0":["variables.f"]}',
  '--x',
  'Content-Disposition: form-data; name="0"; filename="a.txt"',
  'Content-Type: text/plain',
  '',
  'some text',
  '--x--',
  '',
].join('\r\n');

const REQUESTS: Record<string, SentRequest> = {
  'a query': post('{ hello }'),
  'a query with a header for its context': post('{ user }', { authorization: 'ada' }),
  'a query over GET': get('/graphql?query={hello}'),
  'a HEAD request of a query': { ...get('/graphql?query={hello}'), method: 'HEAD' },
  'a mutation': post('mutation { hello }'),
  'a mutation over GET from another site': get('/graphql?query=mutation{hello}', {
    'sec-fetch-site': 'cross-site',
  }),
  'a batch': { ...post(''), body: '[{"query":"{ hello }"},{"query":"{ nothing }"}]' },
  'an error that sets the status': post('{ secret }', { accept: 'application/graphql-response+json' }),
  'an invalid document': post('{ nothing }', { accept: 'application/graphql-response+json' }),
  'a syntax error': post('{'),
  'invalid JSON': { ...post(''), body: '{' },
  'an empty body': { ...post(''), body: '' },
  'a body of another type': post('{ hello }', { 'content-type': 'text/css' }),
  'an upload': {
    method: 'POST',
    path: '/graphql',
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
    body: FORM,
  },
  'an upload from another site': {
    method: 'POST',
    path: '/graphql',
    headers: { 'content-type': 'multipart/form-data; boundary=x', origin: 'https://evil.example' },
    body: FORM,
  },
  'a subscription as an event stream': post('subscription { count }', { accept: 'text/event-stream' }),
  'the page of GraphiQL': get('/graphql', { accept: 'text/html' }),
  'a method that graphqlHTTP does not allow': { ...get('/graphql'), method: 'DELETE' },
  'a file': get('/files/digits.txt'),
  'a HEAD request of a file': { ...get('/files/digits.txt'), method: 'HEAD' },
  'a range of a file': get('/files/digits.txt', { range: 'bytes=5-9' }),
  'several ranges of a file': get('/files/digits.txt', { range: 'bytes=0-1,5-9,-2' }),
  'a range outside a file': get('/files/digits.txt', { range: 'bytes=9000-' }),
  'a compressed copy of a file': get('/files/app.js', { 'accept-encoding': 'br' }),
  'a large file': get('/files/large.bin'),
  'the index of a folder': get('/files/'),
  'a folder without its slash': get('/files'),
  'a missing file': get('/files/missing.txt'),
  'a path outside the folder': get('/files/../package.json'),
  'malformed percent-encoding': get('/files/%'),
  cookies: get('/cookies', { cookie: 'a=1; b=2' }),
  'the address of the client': get('/whoami'),
  'a redirect': get('/moved'),
  'an error with a status': get('/refused'),
  'a response without a body': get('/empty'),
  'a chunked response': get('/chunks'),
  trailers: get('/trailers'),
  'a body that is echoed': { method: 'POST', path: '/echo', headers: {}, body: 'x'.repeat(300_000) },
  'a JSON body': { method: 'POST', path: '/json', headers: JSON_HEADERS, body: '{"a":[1]}' },
  'a JSON body above the limit': {
    method: 'POST',
    path: '/json',
    headers: JSON_HEADERS,
    body: JSON.stringify('x'.repeat(2000)),
  },
  'a response that closes the connection': get('/whoami', { connection: 'close' }),
  'a response that closes the connection before the body is read': {
    method: 'POST',
    path: '/ignored',
    headers: {},
    body: 'x',
  },
  'a compressed response': get('/compressed', { 'accept-encoding': 'gzip' }),
  'the headers of helmet': get('/guarded'),
  'a missing route': get('/nowhere'),
  'a host': get('/whoami', { host: 'api.example:8080' }),
  'an unknown method': { ...get('/whoami'), method: 'PURGE' },
};

/** Sends the request with `inject`, as a user writes it. */
async function injected(target: Parameters<typeof inject>[0], request: SentRequest): Promise<Seen> {
  const response = await inject(target, request);
  return {
    status: response.status,
    statusText: response.statusText,
    headers: comparable(response.rawHeaders),
    trailers: { ...response.trailers },
    body: withoutNonce(response.body.toString('latin1')),
  };
}

const error = console.error;
beforeAll(() => {
  // Express logs the errors of the table.
  console.error = () => undefined;
});
afterAll(() => {
  console.error = error;
});

eachExpress((framework, major) => {
  const app = createApp(framework);
  const server = createServer(createApp(framework));
  let ports: { app: number; server: number };
  beforeAll(async () => {
    ports = {
      app: (await listen(createApp(framework))).port,
      server: (await listen(createServer(createApp(framework)))).port,
    };
  });

  it.each(Object.entries(REQUESTS))(
    `inject returns the status, headers and body of a real connection to an app of Express ${major}: %s`,
    async (_name, request) => {
      const real = await send(ports.app, request);
      expect(await injected(app, request)).toEqual(real);
    },
  );

  it.each(Object.entries(REQUESTS))(
    `inject returns the status, headers and body of a real connection to createServer with Express ${major}: %s`,
    async (_name, request) => {
      const real = await send(ports.server, request);
      expect(await injected(server, request)).toEqual(real);
      expect(server.listening).toBe(false);
    },
  );
});

describe('a handler without Express', () => {
  const handlers: Record<string, [RequestListener, string[]]> = {
    graphqlHTTP: [
      graphqlHTTP(schema, { batching: true }),
      Object.keys(REQUESTS).filter((name) => REQUESTS[name]?.path?.startsWith('/graphql')),
    ],
    'a request listener': [
      (req, res) => res.writeHead(201, 'Made', { 'X-Method': req.method }).end('made'),
      ['a query', 'a file', 'cookies'],
    ],
  };
  const rows = Object.entries(handlers).flatMap(([name, [handler, requests]]) =>
    requests.map((request) => [name, request, handler] as const),
  );

  it.each(rows)(
    'inject returns the response of %s to %s over a real connection',
    async (_name, name, handler) => {
      const request = REQUESTS[name] as SentRequest;
      const { port } = await listen(handler);
      expect(await injected(handler, request)).toEqual(await send(port, request));
    },
  );

  it.each(Object.entries(REQUESTS).filter(([, { path }]) => path?.startsWith('/files')))(
    'inject returns the response of staticFiles without an app to %s',
    async (_name, { path = '', ...request }) => {
      const files = staticFiles(folder, { html: true, precompressed: true, cacheControl: '1h' });
      const { port } = await listen((req, res) =>
        files(req, res, (cause) => {
          const { status } = Object.assign({ status: 404 }, cause);
          res.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
          res.end(status === 404 ? 'Not Found' : 'Bad Request');
        }),
      );
      const below = { ...request, path: path.slice('/files'.length) || '/' };
      expect(await injected(files, below)).toEqual(await send(port, below));
    },
  );
});

it('inject returns the response of an HTTPS server, which sees an encrypted connection', async () => {
  const listener = createServer(createApp((await import('express')).default), tls);
  const server = createHttpsServer(tls, listener.listeners('request')[0] as () => void);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  const real = await new Promise<string>((resolve, reject) => {
    const headers = { host: 'localhost' };
    const options = { port, path: '/whoami', headers, agent: false, rejectUnauthorized: false } as const;
    httpsRequest(options, (response) => {
      response.setEncoding('utf8').once('data', resolve);
    })
      .once('error', reject)
      .end();
  });
  server.close();
  const response = await inject(listener, { path: '/whoami' });
  expect(response.json()).toEqual(JSON.parse(real));
  expect(response.json()).toMatchObject({ secure: true, protocol: 'https' });
});

it('inject works with a server that listens, and leaves it listening', async () => {
  const handler = graphqlHTTP(schema);
  const server = createServer((req, res) => handler(req, res));
  attachSubscriptions(server, handler);
  const { port } = await listen(server);
  expect((await inject(server, { query: '{ hello }' })).data).toEqual({ hello: 'world' });
  expect((await send(port, post('{ hello }'))).status).toBe(200);
});
