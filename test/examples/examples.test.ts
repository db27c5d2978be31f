import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import WebSocket from 'ws';
import { startRedis } from '../redis.ts';
import { connect, MODERN, type RawClient, ready } from '../subscriptions/client.ts';
import { type Running, startExample, stopExamples } from './start.ts';

jest.setTimeout(20_000);
afterAll(stopExamples);

const folder = resolve(__dirname, '../../examples');
const names = ['api', 'chat', 'cluster', 'code-first', 'observability', 'secure', 'site', 'uploads'] as const;

interface Asked {
  status: number;
  data?: Record<string, unknown>;
  errors?: { message: string }[];
}

async function ask({ url }: Running, query: string, headers: Record<string, string> = {}): Promise<Asked> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query }),
  });
  return { status: response.status, ...((await response.json()) as object) };
}

async function upload({ url }: Running, query: string, name: string, content: string): Promise<Asked> {
  const form = new FormData();
  form.append('operations', JSON.stringify({ query, variables: { file: null } }));
  form.append('map', '{"0":["variables.file"]}');
  form.append('0', new Blob([content]), name);
  const response = await fetch(`${url}/graphql`, { method: 'POST', body: form });
  return { status: response.status, ...((await response.json()) as object) };
}

const socketUrl = ({ url }: Running): string => `${url.replace('http', 'ws')}/graphql`;

async function subscribe(server: Running, query: string): Promise<RawClient> {
  const client = await ready(socketUrl(server));
  client.send({ id: '1', type: 'subscribe', payload: { query } });
  // Answered after the subscription was taken.
  client.websocket.ping();
  await once(client.websocket, 'pong');
  return client;
}

describe('each small example', () => {
  it('is here, under test, and fits a screen', () => {
    const files = readdirSync(folder).filter((name) => name.endsWith('.ts'));
    expect(files.map((name) => name.replace('.ts', '')).sort()).toEqual([...names]);
    for (const file of files) {
      const lines = readFileSync(join(folder, file), 'utf8').trimEnd().split('\n');
      expect([file, lines.length <= 30]).toEqual([file, true]);
      expect(lines[0]).toContain(`npx tsx examples/${file}`);
    }
  });
});

it('site serves a folder, its pages and nothing twice', async () => {
  const { url, stop } = await startExample('site');
  const page = await fetch(`${url}/`);
  expect(await page.text()).toContain('<h1>A static site</h1>');
  const again = await fetch(`${url}/`, { headers: { 'if-none-match': page.headers.get('etag') as string } });
  expect(again.status).toBe(304);
  const about = await fetch(`${url}/about`);
  expect([about.url, about.status]).toEqual([`${url}/about/`, 200]);
  await stop();
});

it('api tells those who say who they are, and everybody hello', async () => {
  const server = await startExample('api');
  const query = '{ me { name } hello }';
  expect((await ask(server, query)).data).toEqual({ me: null, hello: 'Hello world' });
  const { data } = await ask(server, query, { authorization: 'Bearer ada' });
  expect(data).toMatchObject({ me: { name: 'Ada Lovelace' } });
  await server.stop();
});

it('uploads hashes a file', async () => {
  const server = await startExample('uploads');
  const query = 'mutation ($file: Upload!) { hash(file: $file) }';
  expect((await upload(server, query, 'abc.txt', 'abc')).data).toEqual({
    hash: 'abc.txt: 3 bytes, SHA-256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  });
  expect((await upload(server, query, 'big', 'x'.repeat(6_000_000))).status).toBe(413);
  await server.stop();
});

it('chat lets everybody hear what one says', async () => {
  const server = await startExample('chat');
  const query = 'subscription { said { by text } }';
  const listeners = await Promise.all([subscribe(server, query), subscribe(server, query)]);
  await ask(server, 'mutation { say(by: "Ada", text: "Hello") }');
  for (const listener of listeners) {
    expect(await listener.next()).toMatchObject({
      payload: { data: { said: { by: 'Ada', text: 'Hello' } } },
    });
    await listener.close();
  }
  await server.stop();
});

it('code-first has a query, an upload and a subscription', async () => {
  const server = await startExample('code-first');
  expect((await ask(server, '{ hello }')).data).toEqual({ hello: 'world' });
  const query = 'mutation ($file: Upload!) { createFile(file: $file) }';
  expect((await upload(server, query, 'a.txt', 'a')).data).toEqual({ createFile: 'a.txt created' });
  const client = await subscribe(server, 'subscription { count(to: 3) }');
  const heard = await client.until(({ type }) => type === 'complete');
  const counts = heard.map(({ payload }) => (payload as Asked | undefined)?.data?.count);
  expect(counts).toEqual([1, 2, 3, undefined]);
  await client.close();
  await server.stop();
});

it('secure knows one session over HTTP and over the socket, and turns strangers away', async () => {
  const server = await startExample('secure');
  const login = await fetch(`${server.url}/login?name=Ada`);
  expect(login.headers.get('strict-transport-security')).not.toBeNull();
  const cookie = (login.headers.get('set-cookie') as string).split(';')[0] as string;
  expect((await ask(server, '{ me }', { cookie })).data).toEqual({ me: 'Ada' });
  expect((await ask(server, '{ me }')).data).toEqual({ me: null });

  const stranger = await connect(socketUrl(server));
  stranger.send({ type: 'connection_init' });
  expect((await stranger.closed).code).toBe(4403);

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

it('cluster answers from two processes, whose subscribers hear the same', async () => {
  const redis = await startRedis();
  const server = await startExample('cluster', { REDIS_URL: redis.url });
  const workers = new Set<unknown>();
  // Connections go round; each question has one of its own.
  while (workers.size < 2)
    workers.add(
      await once(get(`${server.url}/graphql?query={worker}`, { agent: false }), 'response').then(([answer]) =>
        text(answer),
      ),
    );
  const listeners = await Promise.all([1, 2, 3, 4].map(() => subscribe(server, 'subscription { news }')));
  const heard = () => listeners.every((listener) => listener.heard.some(({ type }) => type === 'next'));
  while (!heard()) {
    await ask(server, 'mutation { send(news: "it works") }');
  }
  for (const listener of listeners) {
    expect(listener.heard.at(-1)).toMatchObject({ payload: { data: { news: 'it works' } } });
  }
  expect(await server.stop()).toBe(0);
  expect(listeners.every(({ websocket }) => websocket.readyState >= WebSocket.CLOSING)).toBe(true);
  await redis.kill();
});

it('observability has a span and a metric for each step', async () => {
  const server = await startExample('observability');
  await ask(server, '{ hello }');
  await ask(server, '{ nonsense }');
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  for (const [step, result, count] of [
    ['parse', 'valid', 2],
    ['validate', 'valid', 1],
    ['validate', 'errors', 1],
    ['execute', 'data', 1],
    ['response', '200', 2],
  ]) {
    expect(metrics).toContain(`graphql_seconds_count{step="${step}",result="${result}"} ${count}`);
  }
  expect(server.output()).toContain("name: 'graphql execute'");
  await server.stop();
});
