/** @tags once */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';

// Apps of users, migrated as docs/migrating says: the same responses, except for the differences that the page lists.

const root = resolve(__dirname, '../..');
// The code in this folder finds the packages of test/neighbours.
const folder = join(__dirname, 'artifacts', 'migrations');
const running = new Set<ChildProcess>();

const ANY_PORT = `
const net = require('node:net');
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  this.once('listening', () => process.send(this.address().port));
  return listen.call(this, port === 3000 ? { port: 0, host: '127.0.0.1' } : port, ...rest);
};
`;
const FILES: Record<string, string> = {
  'public/index.html': '<!doctype html><title>Home</title>',
  'public/a.txt': '0123456789',
  'public/with space.txt': 'a space',
  'public/about.html': '<!doctype html><title>About</title>',
  'public/guide/index.html': '<!doctype html><title>Guide</title>',
  'public/guide/one.html': '<!doctype html><title>One</title>',
  'public/plain/a.css': 'a {}',
  'public/.env': 'SECRET=1',
  'port.cjs': ANY_PORT,
};

beforeAll(() => {
  for (const name of ['public/guide', 'public/plain', 'node_modules']) {
    mkdirSync(join(folder, name), { recursive: true });
  }
  for (const [name, content] of Object.entries(FILES)) writeFileSync(join(folder, name), content);
  const link = join(folder, 'node_modules', 'espalier');
  if (!existsSync(link)) symlinkSync(root, link);
});

afterAll(() => {
  for (const child of running) child.kill();
});

/** Starts an app of the folder migrations and returns its port. */
async function start(name: string): Promise<number> {
  const file = join(folder, `${name}.mts`);
  writeFileSync(file, readFileSync(join(__dirname, 'migrations', `${name}.mts`)));
  const child = spawn(process.execPath, ['--require', './port.cjs', '--import', 'tsx', file], {
    cwd: folder,
    env: { ...process.env, NODE_ENV: 'production' },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  running.add(child);
  let output = '';
  child.stderr?.on('data', (chunk) => (output += chunk));
  return new Promise<number>((done, fail) => {
    child.once('message', (message) => done(message as number));
    child.once('exit', (code) => fail(new Error(`${name} ended with ${code}: ${output}`)));
  });
}

interface Sent {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** Sends a request without changes to its path, and returns the parts of the response that should be the same. */
async function exchange(port: number, { body, ...sent }: Sent): Promise<Record<string, unknown>> {
  const outgoing = request({ port, host: '127.0.0.1', ...sent }).end(body);
  const [response] = await new Promise<[import('node:http').IncomingMessage]>((done, fail) => {
    outgoing.once('response', (...given) => done(given)).once('error', fail);
  });
  const { headers } = response;
  const content = await text(response);
  return {
    status: response.statusCode,
    type: headers['content-type']?.toLowerCase(),
    cache: headers['cache-control'],
    location: headers.location,
    range: headers['content-range'],
    name: headers['x-name'],
    body: response.statusCode === 301 ? '' : content,
  };
}

/** Checks that a page lists a difference. */
function documented(page: string, words: string): void {
  const content = readFileSync(join(root, 'docs', 'migrating', `${page}.md`), 'utf8').replace(/\s+/g, ' ');
  expect(content).toContain(words);
}

describe('a site that served its files with express.static', () => {
  let before: number;
  let after: number;
  beforeAll(async () => {
    [before, after] = (await Promise.all([start('site-before'), start('site-after')])) as [number, number];
  });

  it.each<Sent>([
    { path: '/static/' },
    { path: '/static/index.html' },
    { path: '/static/a.txt' },
    { path: '/static/a.txt?v=1' },
    { path: '/static/a.txt', method: 'HEAD' },
    { path: '/static/a.txt', headers: { range: 'bytes=2-5' } },
    { path: '/static/with%20space.txt' },
    { path: '/static/about' },
    { path: '/static/about.html' },
    { path: '/static/guide/' },
    { path: '/static/guide/one' },
    { path: '/static/plain/' },
    { path: '/static/plain/a.css' },
    { path: '/static/missing.txt' },
    { path: '/static/.env' },
    { path: '/static/..%2fport.cjs' },
    { path: '/static/a.txt', method: 'POST' },
    { path: '/elsewhere' },
  ])('staticFiles sends the response of express.static for %j', async (sent) => {
    const expected = await exchange(before, sent);
    const actual = await exchange(after, sent);
    expect(actual).toEqual(expected);
  });

  it('the guide lists the differences of redirects and of ranges that cannot be satisfied', async () => {
    const redirect = { path: '/static/guide' };
    for (const port of [before, after]) {
      const { status, location } = await exchange(port, redirect);
      const target = new URL(String(location), 'http://site.test/static/guide').pathname;
      expect([status, target]).toEqual([301, '/static/guide/']);
    }
    documented('express-static', 'a relative `Location` with a line of text');
    const range = { path: '/static/a.txt', headers: { range: 'bytes=20-' } };
    for (const port of [before, after]) {
      expect(await exchange(port, range)).toMatchObject({ status: 416, range: 'bytes */10' });
    }
    expect((await exchange(after, range))['cache']).toBeUndefined();
    documented(
      'express-static',
      'no satisfiable range | `next(error)` with 412 or 416 | a 412 or 416 response',
    );
  });

  it.each<[Sent, unknown, unknown, string]>([
    [{ path: '/static//a.txt' }, 200, 404, '`//file`'],
    [{ path: '/static/plain/../a.txt' }, 200, 404, '`/a/../file`'],
    [{ path: '/static/plain%2fa.css' }, 200, 404, '`/dir%2ffile`'],
    [
      { path: '/static/a.txt', headers: { range: 'bytes=0-0,4-5' } },
      200,
      206,
      'several ranges | the whole file | `multipart/byteranges`',
    ],
  ])('the guide lists the difference for %j', async (sent, expected, actual, words) => {
    expect((await exchange(before, sent))['status']).toBe(expected);
    expect((await exchange(after, sent))['status']).toBe(actual);
    documented('express-static', words);
  });
});

const post = (query: string, variables?: object, headers: Record<string, string> = {}): Sent => ({
  method: 'POST',
  path: '/graphql',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify({ query, variables }),
});

describe('an API of express-graphql', () => {
  let before: number;
  let after: number;
  beforeAll(async () => {
    [before, after] = (await Promise.all([start('team-before'), start('team-after')])) as [number, number];
  });
  const json = async (port: number, sent: Sent): Promise<unknown> => {
    const { status, body } = await exchange(port, sent);
    return [status, JSON.parse(String(body))];
  };

  it.each<Sent>([
    post('{ me }', undefined, { 'x-user': 'ada' }),
    post('{ team(name: "core") { name size } }'),
    post('query ($name: String!) { team(name: $name) { name } }', { name: 'core' }),
    post('mutation { rename(to: "new") }'),
    post('{ denied team(name: "core") { name } }'),
    { path: '/graphql?query={me}', headers: { 'x-user': 'ada' } },
    {
      path: `/graphql?query=${encodeURIComponent('query ($n: String!) { team(name: $n) { size } }')}&variables={"n":"core"}`,
    },
    post('{ team(name: "other") { name } }'),
  ])('graphqlHTTP sends the result of express-graphql for %j', async (sent) => {
    expect(await json(after, sent)).toEqual(await json(before, sent));
  });

  it('the guide lists that unexpected errors are masked', async () => {
    const [, expected] = (await json(before, post('{ broken }'))) as [number, { errors: object[] }];
    const [, actual] = (await json(after, post('{ broken }'))) as [number, { errors: object[] }];
    expect(expected.errors).toEqual([
      { message: 'password of the database', path: ['broken'], code: 'NONE' },
    ]);
    expect(actual.errors).toEqual([{ message: 'Internal server error', path: ['broken'], code: 'NONE' }]);
    documented('express-graphql', 'Unexpected errors are masked');
  });

  it.each<[string, Sent, number, number, string]>([
    ['a validation error', post('{ nothing }'), 400, 200, 'A failed operation has status 200'],
    [
      'a urlencoded body',
      {
        method: 'POST',
        path: '/graphql',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: 'query={me}',
      },
      200,
      415,
      'Urlencoded and `application/graphql` bodies are refused',
    ],
    [
      'a mutation over GET',
      { path: `/graphql?query=${encodeURIComponent('mutation { rename(to: "x") }')}` },
      405,
      200,
      'Mutations over GET run for clients that are not browsers',
    ],
    [
      'parameters in the URL of a POST',
      { ...post(''), path: '/graphql?query={me}' },
      200,
      400,
      'Parameters in the URL of a POST are ignored',
    ],
  ])('the guide lists the difference for %s', async (_name, sent, expected, actual, words) => {
    expect((await exchange(before, sent))['status']).toBe(expected);
    expect((await exchange(after, sent))['status']).toBe(actual);
    documented('express-graphql', words);
  });

  it('both servers send GraphiQL to browsers', async () => {
    for (const port of [before, after]) {
      const { type, body } = await exchange(port, { path: '/graphql', headers: { accept: 'text/html' } });
      expect([type, body]).toEqual(['text/html; charset=utf-8', expect.stringContaining('GraphiQL')]);
    }
  });
});

describe('an API of GraphQL Yoga', () => {
  let before: number;
  let after: number;
  beforeAll(async () => {
    [before, after] = (await Promise.all([start('notes-before'), start('notes-after')])) as [number, number];
  });
  const result = async (port: number, sent: Sent): Promise<unknown> =>
    JSON.parse(String((await exchange(port, sent))['body']));

  it.each<Sent>([
    post('{ notes { text } }'),
    post('mutation ($text: String!) { add(text: $text) { text by } }', { text: 'one' }, { 'x-user': 'ada' }),
    post('mutation { add(text: "two") { by } }'),
    post('{ notes { text by } }'),
    { path: '/graphql?query={notes{text}}' },
  ])('graphqlHTTP sends the result of Yoga for %j', async (sent) => {
    expect(await result(after, sent)).toEqual(await result(before, sent));
  });

  it('both servers mask unexpected errors, with different messages', async () => {
    const [expected, actual] = await Promise.all(
      [before, after].map(async (port) => (await result(port, post('{ broken }'))) as { errors: object[] }),
    );
    expect(expected?.errors[0]).toMatchObject({ message: 'Unexpected error.' });
    expect(actual?.errors[0]).toMatchObject({ message: 'Internal server error' });
  });

  it('both servers store an upload of the renamed scalar', async () => {
    for (const port of [before, after]) {
      const body = new FormData();
      const query = 'mutation ($file: File!) { attach(file: $file) }';
      body.set('operations', JSON.stringify({ query, variables: { file: null } }));
      body.set('map', '{"0":["variables.file"]}');
      body.set('0', new Blob(['some text'], { type: 'text/plain' }), 'note.txt');
      const response = await fetch(`http://127.0.0.1:${port}/graphql`, { method: 'POST', body });
      expect(await response.json()).toEqual({ data: { attach: 'note.txt (text/plain): some text' } });
    }
    documented('graphql-yoga', '`await file.toFile()` returns a `File`');
  });

  it('an event arrives over WebSocket as it did over server-sent events', async () => {
    const query = 'subscription { added { text by } }';
    const add = post('mutation { add(text: "live") { text } }', undefined, { 'x-user': 'bob' });
    const stream = await fetch(`http://127.0.0.1:${before}/graphql?query=${encodeURIComponent(query)}`, {
      headers: { accept: 'text/event-stream' },
    });
    await exchange(before, add);
    let received = '';
    for await (const chunk of stream.body as ReadableStream<Uint8Array>) {
      received += Buffer.from(chunk).toString();
      if (received.includes('"live"')) break;
    }
    const expected = JSON.parse(/^data: (\{.*\})$/m.exec(received)?.[1] as string);

    const client = createClient({
      url: `ws://127.0.0.1:${after}/graphql`,
      webSocketImpl: WebSocket,
      retryAttempts: 0,
    });
    const events = client.iterate({ query });
    const next = events.next();
    // Operations of a socket start in order: the subscription is open when the query is complete.
    for await (const { data } of client.iterate({ query: '{ __typename }' })) expect(data).toBeDefined();
    await exchange(after, add);
    expect((await next).value).toEqual(expected);
    await client.dispose();
    documented('graphql-yoga', 'also over WebSocket (`attachSubscriptions`)');
  });
});
