import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import * as https from 'node:https';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import connect from 'connect';
import { createServer, graphqlHTTP, type Middleware, staticFiles } from 'espalier';
import express5 from 'express';
import express4 from 'express4';
import {
  type Answer,
  type Asker,
  askHttp1,
  askHttp2,
  askHttps,
  askSecureHttp2,
  serving,
  tls,
} from './exchange.ts';
import { BOUNDARY, encode, file, map, operations } from './uploads/form.ts';
import { createSchema, ONE } from './uploads/schema.ts';

const root = mkdtempSync(join(tmpdir(), 'espalier-hosts-'));
writeFileSync(join(root, 'page.txt'), 'a page of text');
afterAll(() => rmSync(root, { recursive: true, force: true }));

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

const hosts: [string, (mounts: Mounts) => Server, Asker][] = [
  ['Express 4', (mounts) => http.createServer(mounted(express4(), mounts)), askHttp1],
  ['Express 5', (mounts) => http.createServer(mounted(express5(), mounts)), askHttp1],
  ['Express 5 behind createServer', (mounts) => createServer(mounted(express5(), mounts)), askHttp1],
  ['Connect', (mounts) => http.createServer(mounted(connect(), mounts)), askHttp1],
  ['node:http', (mounts) => http.createServer(bare(mounts)), askHttp1],
  ['node:https', (mounts) => https.createServer(tls, bare(mounts)), askHttps],
  ['node:http2', (mounts) => http2.createServer(compat(mounts)), askHttp2],
  ['node:http2 with TLS', (mounts) => http2.createSecureServer(tls, compat(mounts)), askSecureHttp2],
  [
    'node:http2 with TLS and an HTTP/1.1 client',
    (mounts) => http2.createSecureServer({ ...tls, allowHTTP1: true }, compat(mounts)),
    askHttps,
  ],
  ['Express 4 over HTTP/2', (mounts) => createServer(mounted(express4(), mounts), { http2: true }), askHttp2],
  ['Express 5 over HTTP/2', (mounts) => createServer(mounted(express5(), mounts), { http2: true }), askHttp2],
  ['Connect over HTTP/2', (mounts) => createServer(mounted(connect(), mounts), { http2: true }), askHttp2],
];

describe.each(hosts)('under %s', (_, serve, ask) => {
  const mounts = (): Mounts => ({ '/files': staticFiles(root), '/graphql': graphqlHTTP(createSchema([])) });
  const asking = <T>(
    run: (ask: (...given: Parameters<typeof request>) => Promise<Answer>) => Promise<T>,
  ): Promise<T> => serving(serve(mounts()), (port) => run((...given) => ask(port, request(...given))));
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
    await asking(async (ask) => {
      const whole = await ask('GET', '/files/page.txt');
      expect(whole).toMatchObject({ status: 200, body: 'a page of text' });
      expect(whole.headers).toMatchObject({
        'content-type': 'text/plain; charset=utf-8',
        'content-length': '14',
      });
      const etag = String(whole.headers['etag']);
      expect(await ask('GET', '/files/page.txt', { 'if-none-match': etag })).toMatchObject({
        status: 304,
        body: '',
      });
      const part = await ask('GET', '/files/page.txt', { range: 'bytes=2-5', 'if-range': etag });
      expect(part).toMatchObject({ status: 206, body: 'page' });
      expect(await ask('HEAD', '/files/page.txt')).toMatchObject({
        status: 200,
        body: '',
        headers: { etag },
      });
    });
  });

  it('staticFiles calls next() for a path without a file', async () => {
    await asking(async (ask) => {
      for (const path of ['/files/nothing', '/files/', '/files/..%2f..%2fetc/passwd', '/elsewhere']) {
        expect(await ask('GET', path)).toMatchObject({ status: 404 });
      }
    });
  });

  it('graphqlHTTP executes queries over GET and POST', async () => {
    await asking(async (ask) => {
      const answered = { status: 200, body: '{"data":{"hello":"world"}}' };
      expect(await ask('GET', '/graphql?query={hello}')).toMatchObject(answered);
      expect(await ask('POST', '/graphql', json, '{"query":"{hello}"}')).toMatchObject(answered);
    });
  });

  it('graphqlHTTP executes a mutation with an upload', async () => {
    await asking(async (ask) => {
      const form = [
        operations({ query: ONE, variables: { file: null } }),
        map({ f: ['variables.file'] }),
        file('f', 'words'),
      ];
      const type = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
      for (const more of [{}, { origin: 'http://site.test' }]) {
        const { status, body } = await ask(
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
    await asking(async (ask) => {
      expect(await ask('POST', '/graphql', json, '{"query":')).toMatchObject({ status: 400 });
      expect(await ask('POST', '/graphql', { 'content-type': 'text/csv' }, 'a,b')).toMatchObject({
        status: 415,
      });
      expect(await ask('PUT', '/graphql', json, '{}')).toMatchObject({ status: 405 });
      expect(await ask('POST', '/graphql', json, JSON.stringify({ query: ' '.repeat(2e6) }))).toMatchObject({
        status: 413,
      });
      expect(await ask('GET', '/graphql?query={hello}')).toMatchObject({ status: 200 });
    });
  });

  it('graphqlHTTP serves GraphiQL to browsers', async () => {
    await asking(async (ask) => {
      const page = await ask('GET', '/graphql', { accept: 'text/html' });
      expect(page).toMatchObject({ status: 200 });
      expect(page.headers['content-type']).toMatch(/^text\/html/);
    });
  });
});
