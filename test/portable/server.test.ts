/** @tags node-lines graphql */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import type { Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { attachSubscriptions, createServer, graphqlHTTP, staticFiles, Upload } from 'espalier';
import { createPubSub } from 'espalier/pubsub';
import express from 'express';
import { GraphQLInt, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';

// Every part over real connections, on the file system and the sockets of any operating system.

const folder = realpathSync.native(mkdtempSync(join(tmpdir(), 'espalier-portable-')));
const site = join(folder, 'site');
const SCRIPT = 'export const a = 1;\n'.repeat(100);
mkdirSync(join(site, 'guide'), { recursive: true });
mkdirSync(join(folder, 'uploads'));
writeFileSync(join(folder, 'secret.txt'), 'secret');
writeFileSync(join(site, 'index.html'), '<!doctype html><title>Home</title>');
writeFileSync(join(site, 'guide', 'index.html'), '<!doctype html><title>Guide</title>');
writeFileSync(join(site, 'digits.txt'), '0123456789');
writeFileSync(join(site, 'app.js'), SCRIPT);
writeFileSync(join(site, 'app.js.br'), brotliCompressSync(SCRIPT));
writeFileSync(join(site, 'large.bin'), randomBytes(2_000_000));

const events = createPubSub<{ tick: { tick: number } }>();
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: { hello: { type: GraphQLString, resolve: () => 'world' } },
  }),
  mutation: new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      save: {
        type: GraphQLInt,
        args: { file: { type: Upload } },
        resolve: (_root, { file }: { file: Upload }) =>
          file.saveTo(join(folder, 'uploads', `${Date.now()}.bin`)),
      },
      tick: {
        type: GraphQLInt,
        args: { tick: { type: GraphQLInt } },
        async resolve(_root, { tick }: { tick: number }) {
          await events.publish('tick', { tick });
          return tick;
        },
      },
    },
  }),
  subscription: new GraphQLObjectType({
    name: 'Subscription',
    fields: { tick: { type: GraphQLInt, subscribe: () => events.subscribe('tick') } },
  }),
});

const handler = graphqlHTTP(schema, { uploads: { tempDir: folder } });
const app = express()
  .use('/graphql', handler)
  .use('/memory', staticFiles(site, { compress: true }))
  .use(staticFiles(site, { html: true, precompressed: true }));
const server: Server = createServer(app);
const subscriptions = attachSubscriptions(server, handler);
let port: number;
let url: string;

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
  url = `http://127.0.0.1:${port}`;
});

afterAll(async () => {
  await subscriptions.close();
  await events.close();
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});

/** Sends a request target as it is: `fetch` would normalise it. */
async function requestRaw(target: string): Promise<{ status: number; text: string }> {
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString('latin1');
  return { status: Number(text.split(' ', 2)[1]), text };
}

const post = async (body: string | FormData): Promise<unknown> => {
  const headers: Record<string, string> =
    typeof body === 'string' ? { 'content-type': 'application/json' } : {};
  return (await fetch(`${url}/graphql`, { method: 'POST', body, headers })).json();
};

describe('staticFiles on this system', () => {
  it('staticFiles serves files, folders, ranges, conditions and compressed copies', async () => {
    const get = (path: string, headers = {}) => fetch(url + path, { headers });
    expect(await (await get('/')).text()).toContain('Home');
    expect(await (await get('/guide/')).text()).toContain('Guide');
    expect((await get('/guide')).url).toBe(`${url}/guide/`);
    const whole = await get('/digits.txt');
    expect([whole.status, await whole.text()]).toEqual([200, '0123456789']);
    const etag = String(whole.headers.get('etag'));
    expect((await get('/digits.txt', { 'if-none-match': etag })).status).toBe(304);
    const part = await get('/digits.txt', { range: 'bytes=2-4' });
    expect([part.status, await part.text()]).toEqual([206, '234']);
    const script = await get('/app.js', { 'accept-encoding': 'br' });
    expect([script.headers.get('content-encoding'), await script.text()]).toEqual(['br', SCRIPT]);
    expect((await (await get('/large.bin')).arrayBuffer()).byteLength).toBe(2_000_000);
    expect((await get('/missing.txt')).status).toBe(404);
  });

  it('staticFiles serves the new content of a file that was changed or replaced', async () => {
    const path = join(site, 'changing.txt');
    const text = async (): Promise<string> => (await fetch(`${url}/changing.txt`)).text();
    writeFileSync(path, 'first');
    expect(await text()).toBe('first');
    appendFileSync(path, ' and second');
    expect(await text()).toBe('first and second');
    writeFileSync(`${path}.new`, 'third');
    renameSync(`${path}.new`, path);
    expect(await text()).toBe('third');
    rmSync(path);
    expect((await fetch(`${url}/changing.txt`)).status).toBe(404);
  });

  it.each([
    '/../secret.txt',
    '/..%2fsecret.txt',
    '/..\\secret.txt',
    '/..%5csecret.txt',
    '/%2e%2e/secret.txt',
    '/guide/../../secret.txt',
    '//secret.txt',
    '/./digits.txt',
    '/digits.txt/',
    '/digits.txt%00',
    `/${encodeURIComponent(join(folder, 'secret.txt'))}`,
    '/C:/Windows/win.ini',
    '//localhost/c$/Windows/win.ini',
  ])('staticFiles refuses the path %s', async (target) => {
    const { status, text } = await requestRaw(target);
    expect([400, 403, 404]).toContain(status);
    expect(text).not.toContain('secret\r\n');
    expect(text.split('\r\n\r\n')[1]).not.toBe('secret');
  });

  it.each([
    '/digits.txt::$DATA',
    '/digits.txt:stream',
    '/digits.txt.',
    '/digits.txt%20',
    '/DIGITS.TXT',
    '/DIGITS~1.TXT',
    '/nul',
    '/con',
    '/aux.txt',
    '/com1',
    '/guide%5cindex.html',
  ])('staticFiles serves no file under the other name %s', async (target) => {
    expect((await requestRaw(target)).status).toBe(404);
  });
});

describe('graphqlHTTP on this system', () => {
  it('graphqlHTTP executes operations and serves GraphiQL', async () => {
    expect(await post('{"query":"{ hello }"}')).toEqual({ data: { hello: 'world' } });
    const page = await fetch(`${url}/graphql`, { headers: { accept: 'text/html' } });
    const [, script] = /<script[^>]+src="([^"]+)"/.exec(await page.text()) ?? [];
    const asset = await fetch(new URL(String(script), `${url}/graphql/`));
    expect([asset.status, asset.headers.get('content-type')]).toEqual([
      200,
      expect.stringContaining('javascript'),
    ]);
  });

  it.each([100, 3_000_000])(
    'graphqlHTTP saves an upload of %i bytes and leaves no temporary file',
    async (size) => {
      const form = new FormData();
      const query = 'mutation ($file: Upload) { save(file: $file) }';
      form.set('operations', JSON.stringify({ query, variables: { file: null } }));
      form.set('map', '{"0":["variables.file"]}');
      form.set('0', new Blob([randomBytes(size)]), 'a.bin');
      expect(await post(form)).toEqual({ data: { save: size } });
      expect(readdirSync(folder).sort()).toEqual(['secret.txt', 'site', 'uploads']);
    },
  );

  it('attachSubscriptions sends events over a WebSocket', async () => {
    const client = createClient({
      url: `ws://127.0.0.1:${port}/graphql`,
      webSocketImpl: WebSocket,
      lazy: false,
    });
    const results = client.iterate({ query: 'subscription { tick }' });
    const first = results.next();
    // The server has the subscription when it responds to an operation that the client sent afterwards.
    for await (const _result of client.iterate({ query: '{ hello }' }));
    await post('{"query":"mutation { tick(tick: 7) }"}');
    expect((await first).value).toEqual({ data: { tick: 7 } });
    await client.dispose();
  });
});
