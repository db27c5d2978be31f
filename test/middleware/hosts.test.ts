/** @tags node graphql engine */
import * as http from 'node:http';
import * as http2 from 'node:http2';
import * as https from 'node:https';
import type { Server } from 'node:net';
import connect from 'connect';
import { createServer, graphqlHTTP, type Middleware, staticFiles } from 'espalier';
import express5 from 'express';
import express4 from 'express4';
import {
  type Exchange,
  type ExchangeResponse,
  requestHttp1,
  requestHttp2,
  requestHttps,
  requestSecureHttp2,
  serving,
  tls,
} from '../exchange.ts';
import { makeFolder } from '../kit.ts';
import { BOUNDARY, encode, file, map, operations } from '../uploads/form.ts';
import { createSchema, ONE } from '../uploads/schema.ts';

const root = makeFolder({ 'page.txt': 'a page of text' });

type Mounts = Record<string, Middleware>;
type Used = { use(path: string, handler: Middleware): unknown };

/** Mounts handlers on an app that supports mounting. */
function mounted<App extends Used>(app: App, mounts: Mounts): App {
  for (const [path, handler] of Object.entries(mounts)) app.use(path, handler);
  return app;
}

/** A plain listener with the minimum of a framework: it strips the prefix and sends 404 if no handler responds. */
function bare(mounts: Mounts): http.RequestListener {
  return (req, res) => {
    const path = Object.keys(mounts).find((prefix) => req.url?.startsWith(prefix));
    const finish = (error?: unknown): void => {
      res.statusCode = error === undefined ? 404 : 500;
      res.end('no handler');
    };
    if (path === undefined) return finish();
    req.url = req.url?.slice(path.length) || '/';
    (mounts[path] as Middleware)(req, res, finish);
  };
}

// Handlers can use the compatibility API like HTTP/1, but its types differ.
const compat = (mounts: Mounts) =>
  bare(mounts) as unknown as (req: http2.Http2ServerRequest, res: http2.Http2ServerResponse) => void;

const hosts: [string, (mounts: Mounts) => Server, Exchange][] = [
  ['Express 4', (mounts) => http.createServer(mounted(express4(), mounts)), requestHttp1],
  ['Express 5', (mounts) => http.createServer(mounted(express5(), mounts)), requestHttp1],
  ['Express 5 behind createServer', (mounts) => createServer(mounted(express5(), mounts)), requestHttp1],
  ['Connect', (mounts) => http.createServer(mounted(connect(), mounts)), requestHttp1],
  ['node:http', (mounts) => http.createServer(bare(mounts)), requestHttp1],
  ['node:https', (mounts) => https.createServer(tls, bare(mounts)), requestHttps],
  ['node:http2', (mounts) => http2.createServer(compat(mounts)), requestHttp2],
  ['node:http2 with TLS', (mounts) => http2.createSecureServer(tls, compat(mounts)), requestSecureHttp2],
  [
    'node:http2 with TLS and an HTTP/1.1 client',
    (mounts) => http2.createSecureServer({ ...tls, allowHTTP1: true }, compat(mounts)),
    requestHttps,
  ],
  [
    'Express 4 over HTTP/2',
    (mounts) => createServer(mounted(express4(), mounts), { http2: true }),
    requestHttp2,
  ],
  [
    'Express 5 over HTTP/2',
    (mounts) => createServer(mounted(express5(), mounts), { http2: true }),
    requestHttp2,
  ],
  [
    'Connect over HTTP/2',
    (mounts) => createServer(mounted(connect(), mounts), { http2: true }),
    requestHttp2,
  ],
];

describe.each(hosts)('under %s', (_, serve, sendRequest) => {
  const mounts = (): Mounts => ({ '/files': staticFiles(root), '/graphql': graphqlHTTP(createSchema([])) });
  const exchanging = <T>(
    run: (sendRequest: (...given: Parameters<typeof request>) => Promise<ExchangeResponse>) => Promise<T>,
  ): Promise<T> =>
    serving(serve(mounts()), (port) => run((...given) => sendRequest(port, request(...given))));
  const request = (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: string | Buffer,
  ) => ({
    method,
    path,
    headers,
    ...(body === undefined ? {} : { body }),
  });
  const json = { 'content-type': 'application/json' };

  it('staticFiles sends a file, a range of it and a 304', async () => {
    await exchanging(async (sendRequest) => {
      const whole = await sendRequest('GET', '/files/page.txt');
      expect(whole).toMatchObject({ status: 200, body: 'a page of text' });
      expect(whole.headers).toMatchObject({
        'content-type': 'text/plain; charset=utf-8',
        'content-length': '14',
      });
      const etag = String(whole.headers['etag']);
      expect(await sendRequest('GET', '/files/page.txt', { 'if-none-match': etag })).toMatchObject({
        status: 304,
        body: '',
      });
      const part = await sendRequest('GET', '/files/page.txt', { range: 'bytes=2-5', 'if-range': etag });
      expect(part).toMatchObject({ status: 206, body: 'page' });
      expect(await sendRequest('HEAD', '/files/page.txt')).toMatchObject({
        status: 200,
        body: '',
        headers: { etag },
      });
    });
  });

  it('staticFiles calls next() for a path without a file', async () => {
    await exchanging(async (sendRequest) => {
      for (const path of ['/files/nothing', '/files/', '/files/..%2f..%2fetc/passwd', '/elsewhere']) {
        expect(await sendRequest('GET', path)).toMatchObject({ status: 404 });
      }
    });
  });

  it('graphqlHTTP executes queries over GET and POST', async () => {
    await exchanging(async (sendRequest) => {
      const responded = { status: 200, body: '{"data":{"hello":"world"}}' };
      expect(await sendRequest('GET', '/graphql?query={hello}')).toMatchObject(responded);
      expect(await sendRequest('POST', '/graphql', json, '{"query":"{hello}"}')).toMatchObject(responded);
    });
  });

  it('graphqlHTTP executes a mutation with an upload', async () => {
    await exchanging(async (sendRequest) => {
      const form = [
        operations({ query: ONE, variables: { file: null } }),
        map({ f: ['variables.file'] }),
        file('f', 'words'),
      ];
      const type = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
      for (const more of [{}, { origin: 'http://site.test' }]) {
        const { status, body } = await sendRequest(
          'POST',
          '/graphql',
          { ...type, 'graphql-require-preflight': '1', ...more },
          encode(form),
        );
        expect([status, JSON.parse(body).data]).toEqual([
          200,
          { one: expect.objectContaining({ text: 'words', filename: 'f.txt' }) },
        ]);
      }
    });
  });

  it('graphqlHTTP refuses bad requests with the right status', async () => {
    await exchanging(async (sendRequest) => {
      expect(await sendRequest('POST', '/graphql', json, '{"query":')).toMatchObject({ status: 400 });
      expect(await sendRequest('POST', '/graphql', { 'content-type': 'text/csv' }, 'a,b')).toMatchObject({
        status: 415,
      });
      expect(await sendRequest('PUT', '/graphql', json, '{}')).toMatchObject({ status: 405 });
      expect(
        await sendRequest('POST', '/graphql', json, JSON.stringify({ query: ' '.repeat(2e6) })),
      ).toMatchObject({
        status: 413,
      });
      expect(await sendRequest('GET', '/graphql?query={hello}')).toMatchObject({ status: 200 });
    });
  });

  it('graphqlHTTP serves GraphiQL to browsers', async () => {
    await exchanging(async (sendRequest) => {
      const page = await sendRequest('GET', '/graphql', { accept: 'text/html' });
      expect(page).toMatchObject({ status: 200 });
      expect(page.headers['content-type']).toMatch(/^text\/html/);
    });
  });
});
