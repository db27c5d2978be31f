/** @tags once */
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { type Client, createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { handshake } from '../live/client.ts';
import { type Running, startExample, stopExamples } from './start.ts';

const folder = resolve(__dirname, '../../examples/file-share');
const data = mkdtempSync(join(tmpdir(), 'espalier-file-share-'));
let app: Running;
beforeAll(async () => {
  app = await startExample('file-share/server', { DATA_DIR: data });
});
afterAll(async () => {
  await stopExamples();
  rmSync(data, { recursive: true });
});

interface File {
  readonly id: string;
  readonly name: string;
  readonly url: string;
}
interface Result {
  readonly status: number;
  readonly data: { addFile?: File; share?: object; files?: { files: File[]; cursor: string | null } } | null;
  readonly errors?: { message: string; extensions: { code: string } }[];
}

/** A person with the cookie of a session. */
class Visitor {
  readonly headers: Record<string, string> = {};
  readonly url: string;

  constructor(url = app.url) {
    this.url = url;
  }

  static async signIn(name: string, url?: string): Promise<Visitor> {
    const visitor = new Visitor(url);
    const response = await fetch(`${visitor.url}/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name }),
    });
    visitor.headers['cookie'] = (response.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    return visitor;
  }

  async run(query: string, variables: object = {}): Promise<Result> {
    const headers = { ...this.headers, 'content-type': 'application/json' };
    const body = JSON.stringify({ query, variables });
    const response = await fetch(`${this.url}/graphql`, { method: 'POST', headers, body });
    return { status: response.status, ...((await response.json()) as Omit<Result, 'status'>) };
  }

  async upload(name: string, content: string): Promise<Result> {
    const body = new FormData();
    const query = 'mutation ($file: Upload!) { addFile(file: $file) { id name url } }';
    body.set('operations', JSON.stringify({ query, variables: { file: null } }));
    body.set('map', '{"0":["variables.file"]}');
    body.set('0', new Blob([content]), name);
    const response = await fetch(`${this.url}/graphql`, { method: 'POST', headers: this.headers, body });
    return { status: response.status, ...((await response.json()) as Omit<Result, 'status'>) };
  }

  download(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(this.url + path, { headers: { ...this.headers, ...headers } });
  }

  client(): Client {
    const { headers } = this;
    class Socket extends WebSocket {
      constructor(url: string, protocols?: string | string[]) {
        super(url, protocols, { headers });
      }
    }
    return createClient({
      url: `${this.url.replace('http', 'ws')}/graphql`,
      webSocketImpl: Socket,
      retryAttempts: 0,
    });
  }
}

const file = async (visitor: Visitor, name: string, content: string): Promise<File> =>
  (await visitor.upload(name, content)).data?.addFile as File;

it('a shared file appears in the subscription of the other person, who downloads it', async () => {
  const [ada, bob, eve] = await Promise.all(['Ada', 'Bob', 'Eve'].map((name) => Visitor.signIn(name)));
  const client = bob?.client() as Client;
  const events = client.iterate<{ fileShared: File & { owner: { name: string } } }>({
    query: 'subscription { fileShared { id name url owner { name } } }',
  });
  const next = events.next();
  // The result of a query shows that the socket is open and the subscription has started.
  for await (const { data } of client.iterate({ query: '{ me { name } }' })) {
    expect(data).toEqual({ me: { name: 'Bob' } });
  }
  const notes = await file(ada as Visitor, '../notes für bob.txt', 'some notes');
  expect(notes).toMatchObject({ name: 'notes für bob.txt', url: `/files/${notes.id}` });
  expect((await bob?.download(notes.url))?.status).toBe(404);

  const share = /^```graphql\n(.*)\n```/m.exec(readFileSync(join(folder, 'README.md'), 'utf8'))?.[1];
  expect((await ada?.run(String(share).replace('…', notes.id)))?.data?.share).toEqual({ name: notes.name });
  expect((await next).value.data.fileShared).toEqual({ ...notes, owner: { name: 'Ada' } });

  const download = await bob?.download(notes.url);
  expect(await download?.text()).toBe('some notes');
  expect(Object.fromEntries(download?.headers ?? [])).toMatchObject({
    'cache-control': 'private, no-cache',
    'content-disposition': `attachment; filename="notes f?r bob.txt"; filename*=UTF-8''notes%20f%C3%BCr%20bob.txt`,
    'x-content-type-options': 'nosniff',
  });
  const etag = download?.headers.get('etag') as string;
  expect((await bob?.download(notes.url, { 'if-none-match': etag }))?.status).toBe(304);
  expect((await eve?.download(notes.url, { 'if-none-match': etag }))?.status).toBe(404);
  await client.dispose();
});

it('the file share lists files in pages and finds them by a part of their name', async () => {
  const cat = await Visitor.signIn('Cat');
  for (const name of ['a1.txt', 'b1.txt', 'a2.txt', 'a3.txt']) await file(cat, name, name);
  const query = `query ($after: ID) {
    files(search: "a", first: 2, after: $after) { files { id name } cursor }
  }`;
  const first = (await cat.run(query)).data?.files;
  expect(first?.files.map(({ name }) => name)).toEqual(['a1.txt', 'a2.txt']);
  const second = (await cat.run(query, { after: first?.cursor })).data?.files;
  expect([second?.files.map(({ name }) => name), second?.cursor]).toEqual([['a3.txt'], null]);
});

it('the file share refuses visitors without a session, also for uploads and subscriptions', async () => {
  const visitor = new Visitor();
  const before = readdirSync(data).length;
  for (const { errors } of [await visitor.run('{ files { cursor } }'), await visitor.upload('a.txt', 'a')]) {
    expect(errors?.map(({ message, extensions: { code } }) => [message, code])).toEqual([
      ['Sign in first', 'UNAUTHENTICATED'],
    ]);
  }
  expect(readdirSync(data).length).toBe(before);
  const refused = visitor.client().iterate({ query: 'subscription { fileShared { id } }' });
  await expect(refused.next()).rejects.toMatchObject({ code: 4403 });
});

it('the server behind a proxy accepts sockets of the forwarded host only', async () => {
  const port = Number(new URL(app.url).port);
  const headers = { origin: 'https://share.example', 'x-forwarded-proto': 'https' };
  const forwarded = { ...headers, 'x-forwarded-host': 'share.example' };
  expect((await handshake(port, '/graphql', forwarded)).status).toBe(101);
  expect((await handshake(port, '/graphql', headers)).status).toBe(403);
});

it('the page is served for its routes, and its hashed script precompressed and immutable', async () => {
  const page = await fetch(`${app.url}/some/route`, { headers: { accept: 'text/html' } });
  expect([page.status, page.headers.get('content-security-policy')]).toEqual([
    200,
    expect.stringContaining("default-src 'self'"),
  ]);
  const path = /src="(\/assets\/app-\w+\.js)"/.exec(await page.text())?.[1] as string;
  const script = await fetch(app.url + path, { headers: { 'accept-encoding': 'br' } });
  expect(Object.fromEntries(script.headers)).toMatchObject({
    'content-encoding': 'br',
    'cache-control': 'public, max-age=31536000, immutable',
  });
  const source = join(folder, 'public', path);
  expect(brotliDecompressSync(readFileSync(`${source}.br`)).equals(readFileSync(source))).toBe(true);
});

it('the process exits with 0 on SIGTERM while a socket is open and a request never ends', async () => {
  const own = mkdtempSync(join(data, 'own-'));
  const leaving = await startExample('file-share/server', { DATA_DIR: own });
  const dan = await Visitor.signIn('Dan', leaving.url);
  const client = dan.client();
  const events = client.iterate({ query: 'subscription { fileShared { id } }' });
  const ended = events.next().catch(({ code }: { code: number }) => code);
  for await (const { data } of client.iterate({ query: '{ me { name } }' })) expect(data).toBeDefined();
  // A request that never ends keeps nothing alive.
  const stalled = connect(Number(new URL(leaving.url).port), '127.0.0.1');
  stalled.on('error', () => undefined);
  stalled.write(
    'POST /graphql HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  );
  await once(stalled, 'connect');
  expect(await leaving.stop('SIGTERM')).toBe(0);
  expect(await ended).toBe(1001);
});
