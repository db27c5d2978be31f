/** @tags once slow */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import WebSocket from 'ws';
import { connect, MODERN, type RawClient, ready } from '../live/client.ts';
import { needs } from '../programs.ts';
import { startRedis } from '../redis.ts';
import { failExample, type Running, startExample, stopExamples } from './start.ts';

afterAll(stopExamples);

const folder = resolve(__dirname, '../../examples');
const names = ['api', 'chat', 'cluster', 'code-first', 'observability', 'secure', 'site', 'uploads'] as const;

interface Result {
  status: number;
  data?: Record<string, unknown>;
  errors?: { message: string }[];
}

async function execute(
  { url }: Running,
  query: string,
  headers: Record<string, string> = {},
): Promise<Result> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query }),
  });
  return { status: response.status, ...((await response.json()) as object) };
}

async function upload({ url }: Running, query: string, name: string, content: string): Promise<Result> {
  const form = new FormData();
  form.append('operations', JSON.stringify({ query, variables: { file: null } }));
  form.append('map', '{"0":["variables.file"]}');
  form.append('0', new Blob([content]), name);
  const response = await fetch(`${url}/graphql`, { method: 'POST', body: form });
  return { status: response.status, ...((await response.json()) as object) };
}

/** Runs the curl command in the first comment of an example; returns what it prints. */
async function runCommand({ url }: Running, name: string): Promise<unknown> {
  const source = readFileSync(join(folder, `${name}.ts`), 'utf8');
  const comment = source.slice(0, source.indexOf('\nimport')).replace(/^\/\/ ?/gm, '');
  const command = comment.slice(comment.indexOf('curl ')).replace('localhost:3000', new URL(url).host);
  const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd: resolve(folder, '..') });
  return JSON.parse(stdout);
}

const socketUrl = ({ url }: Running): string => `${url.replace('http', 'ws')}/graphql`;

async function subscribe(server: Running, query: string): Promise<RawClient> {
  const client = await ready(socketUrl(server));
  client.send({ id: '1', type: 'subscribe', payload: { query } });
  // The pong comes after the subscription has started.
  client.websocket.ping();
  await once(client.websocket, 'pong');
  return client;
}

describe('the examples', () => {
  it('every example has a test, at most 30 lines and its command in the first line', () => {
    const files = readdirSync(folder).filter((name) => name.endsWith('.ts'));
    expect(files.map((name) => name.replace('.ts', '')).sort()).toEqual([...names]);
    for (const file of files) {
      const lines = readFileSync(join(folder, file), 'utf8').trimEnd().split('\n');
      expect([file, lines.length <= 30]).toEqual([file, true]);
      expect(lines[0]).toContain(`npx tsx examples/${file}`);
    }
  });
});

/** How the examples listen, each with an example. Express 5 passes the error to its callback instead of throwing it. */
const LISTEN = {
  site: /app\.listen\(port, \(error\) => \{\n {2}if \(error\) throw error;/,
  secure: /createServer\(app\)\.listen\(port, \(\) =>/,
} as const;

it('an example whose port is in use ends with the error and announces no URL', async () => {
  const other = createServer().listen(0);
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  for (const name of names.filter((each) => each !== 'cluster')) {
    const source = readFileSync(join(folder, `${name}.ts`), 'utf8');
    expect([name, Object.values(LISTEN).filter((way) => way.test(source)).length]).toEqual([name, 1]);
  }
  const shown = Object.keys(LISTEN);
  const results = await Promise.all(shown.map((name) => failExample(name, { PORT: `${port}` })));
  other.close();
  for (const [index, { code, output }] of results.entries()) {
    expect([shown[index], code]).toEqual([shown[index], 1]);
    expect(output).toContain(`EADDRINUSE: address already in use :::${port}`);
    expect(output).not.toContain('http://localhost');
  }
});

it('examples/site.ts serves pages and sends 304 for a known ETag', async () => {
  const { url, stop } = await startExample('site');
  const page = await fetch(`${url}/`);
  expect(await page.text()).toContain('<h1>A static site</h1>');
  const again = await fetch(`${url}/`, { headers: { 'if-none-match': page.headers.get('etag') as string } });
  expect(again.status).toBe(304);
  const about = await fetch(`${url}/about`);
  expect([about.url, about.status]).toEqual([`${url}/about/`, 200]);
  await stop();
});

needs('curl').it('examples/api.ts sends the user of the token and a greeting without one', async () => {
  const server = await startExample('api');
  const query = '{ me { name } hello }';
  expect((await execute(server, query)).data).toEqual({ me: null, hello: 'Hello world' });
  const { data } = await execute(server, query, { authorization: 'Bearer ada' });
  expect(data).toMatchObject({ me: { name: 'Ada Lovelace' } });
  expect(await runCommand(server, 'api')).toEqual({ data: { me: { name: 'Ada Lovelace' } } });
  await server.stop();
});

needs('curl').it('examples/uploads.ts hashes a file and refuses one over its limit', async () => {
  const server = await startExample('uploads');
  const query = 'mutation ($file: Upload!) { hash(file: $file) }';
  expect((await upload(server, query, 'abc.txt', 'abc')).data).toEqual({
    hash: 'abc.txt: 3 bytes, SHA-256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  });
  expect((await upload(server, query, 'big', 'x'.repeat(6_000_000))).status).toBe(413);
  expect(await runCommand(server, 'uploads')).toEqual({
    data: { hash: expect.stringMatching(/^package\.json: \d+ bytes, SHA-256 [0-9a-f]{64}$/) },
  });
  await server.stop();
});

it('examples/chat.ts sends a message to every subscriber', async () => {
  const server = await startExample('chat');
  const query = 'subscription { said { by text } }';
  const listeners = await Promise.all([subscribe(server, query), subscribe(server, query)]);
  await execute(server, 'mutation { say(by: "Ada", text: "Hello") }');
  for (const listener of listeners) {
    expect(await listener.next()).toMatchObject({
      payload: { data: { said: { by: 'Ada', text: 'Hello' } } },
    });
    await listener.close();
  }
  await server.stop();
});

it('examples/code-first.ts serves a query, an upload and a subscription', async () => {
  const server = await startExample('code-first');
  expect((await execute(server, '{ hello }')).data).toEqual({ hello: 'world' });
  const query = 'mutation ($file: Upload!) { createFile(file: $file) }';
  expect((await upload(server, query, 'a.txt', 'a')).data).toEqual({ createFile: 'a.txt created' });
  const client = await subscribe(server, 'subscription { count(to: 3) }');
  const received = await client.until(({ type }) => type === 'complete');
  const counts = received.map(({ payload }) => (payload as Result | undefined)?.data?.count);
  expect(counts).toEqual([1, 2, 3, undefined]);
  await client.close();
  await server.stop();
});

it('examples/secure.ts uses one session for HTTP and sockets and closes clients without a login', async () => {
  const server = await startExample('secure');
  const login = await fetch(`${server.url}/login?name=Ada`);
  expect(login.headers.get('strict-transport-security')).not.toBeNull();
  const cookie = (login.headers.get('set-cookie') as string).split(';')[0] as string;
  expect((await execute(server, '{ me }', { cookie })).data).toEqual({ me: 'Ada' });
  expect((await execute(server, '{ me }')).data).toEqual({ me: null });

  const anonymous = await connect(socketUrl(server));
  anonymous.send({ type: 'connection_init' });
  expect((await anonymous.closed).code).toBe(4403);

  const client = await connect(socketUrl(server), MODERN, { headers: { cookie } });
  client.send({ type: 'connection_init' });
  await client.until(({ type }) => type === 'connection_ack');
  client.send({ id: '1', type: 'subscribe', payload: { query: 'subscription { greetings }' } });
  expect(await client.next()).toMatchObject({ payload: { data: { greetings: 'Welcome Ada' } } });
  await client.close();

  const page = await fetch(`${server.url}/graphql`, { headers: { accept: 'text/html' } });
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  await server.stop();
});

needs('redis-server').it(
  'examples/cluster.ts delivers events to the subscribers of both processes',
  async () => {
    const redis = await startRedis();
    const server = await startExample('cluster', { REDIS_URL: redis.url });
    const workers = new Set<unknown>();
    // The cluster distributes connections, so each request uses a new one.
    while (workers.size < 2)
      workers.add(
        await once(get(`${server.url}/graphql?query={worker}`, { agent: false }), 'response').then(
          ([response]) => text(response),
        ),
      );
    const listeners = await Promise.all([1, 2, 3, 4].map(() => subscribe(server, 'subscription { news }')));
    const received = () =>
      listeners.every((listener) => listener.received.some(({ type }) => type === 'next'));
    // Redis may get an event before the subscription of a process.
    const deadline = Date.now() + 20_000;
    while (!received()) {
      if (Date.now() > deadline) throw new Error(`the events did not arrive:\n${server.output()}`);
      await execute(server, 'mutation { send(news: "it works") }');
    }
    for (const listener of listeners) {
      expect(listener.received.at(-1)).toMatchObject({ payload: { data: { news: 'it works' } } });
    }
    expect(await server.stop()).toBe(0);
    expect(listeners.every(({ websocket }) => websocket.readyState >= WebSocket.CLOSING)).toBe(true);
    await redis.kill();
  },
);

it('examples/observability.ts shows spans in the console, and its figures when Prometheus scrapes it', async () => {
  const server = await startExample('observability');
  await execute(server, '{ hello }');
  await execute(server, '{ hello }');
  await execute(server, '{ unknown }');
  const response = await fetch(`${server.url}/metrics`);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const metrics = await response.text();
  expect(metrics).toContain('graphql_seconds_count{type="query",result="data"} 2');
  expect(metrics).toContain('graphql_seconds_count{type="unknown",result="refused"} 1');
  expect(metrics).toContain('espalier_documents{number="entries"} 2');
  expect(metrics).toMatch(/^espalier_documents\{number="bytes"\} \d{4}/m);
  expect(server.output()).toContain("name: 'query'");
  await server.stop();
});
