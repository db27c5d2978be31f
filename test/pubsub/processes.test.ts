import { type Client, createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { type Running, startExample, stopExamples } from '../examples/start.ts';
import { type RedisServer, startRedis } from '../redis.ts';

jest.setTimeout(30_000);

let redis: RedisServer;
let servers: Running[];
const clients = new Set<Client>();

beforeAll(async () => {
  redis = await startRedis();
  const start = () => startExample('../test/pubsub/server', { REDIS_URL: redis.url });
  servers = await Promise.all([start(), start()]);
});
afterEach(async () => {
  await Promise.all([...clients].map((client) => client.dispose()));
  clients.clear();
});
afterAll(async () => {
  await stopExamples();
  await redis.kill();
});

const at = (index: number): string => (servers[index % 2] as Running).url;
const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

async function ask(url: string, query: string): Promise<{ data?: unknown; errors?: unknown }> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  return (await response.json()) as { data?: unknown };
}
const emit = (url: string, from: number, to: number) =>
  ask(url, `mutation { emit(from: ${from}, to: ${to}) }`);
const ready = () => Promise.all(servers.map(({ url }) => ask(url, '{ ready }')));

interface Listener {
  readonly heard: number[];
  /** Codes its sockets were closed with. */
  readonly codes: number[];
  leave(): void;
  /** Resolves when it has heard so many. */
  count(length: number): Promise<void>;
}

/** The official client, which connects again by itself; resolves when it is subscribed. */
async function listen(url: () => string): Promise<Listener> {
  const heard: number[] = [];
  const codes: number[] = [];
  let told: () => void = () => undefined;
  const client = createClient({
    webSocketImpl: WebSocket,
    url: () => `${url().replace('http', 'ws')}/graphql`,
    retryAttempts: 50,
    retryWait: () => new Promise((resolve) => setTimeout(resolve, 20)),
    on: { closed: (event) => codes.push((event as { code: number }).code) },
  });
  clients.add(client);
  const connected = new Promise((resolve) => client.on('connected', resolve));
  const leave = client.subscribe<{ tick: number }>(
    { query: 'subscription { tick }' },
    {
      next: ({ data }) => {
        heard.push(data?.tick as number);
        told();
      },
      error: () => undefined,
      complete: () => undefined,
    },
  );
  await connected;
  return {
    heard,
    codes,
    leave,
    async count(length) {
      while (heard.length < length) {
        await new Promise<void>((resolve) => {
          told = resolve;
        });
      }
    },
  };
}

it('every event reaches every subscriber of two processes in order, whoever comes and goes', async () => {
  const listeners = await Promise.all(numbers(0, 100).map((index) => listen(() => at(index))));
  await ready();
  const passers = (async () => {
    for (const index of numbers(0, 30)) (await listen(() => at(index))).leave();
  })();
  expect(await emit(at(0), 0, 200)).toEqual({ data: { emit: true } });
  await Promise.all(listeners.map((listener) => listener.count(200)));
  for (const { heard } of listeners) expect(heard).toEqual(numbers(0, 200));
  await passers;
});

it('two processes can publish at once; each one’s events keep their order', async () => {
  const listeners = await Promise.all(numbers(0, 4).map((index) => listen(() => at(index))));
  await ready();
  await Promise.all([emit(at(0), 0, 100), emit(at(1), 1000, 1100)]);
  await Promise.all(listeners.map((listener) => listener.count(200)));
  for (const { heard } of listeners) {
    expect(heard.filter((tick) => tick < 1000)).toEqual(numbers(0, 100));
    expect(heard.filter((tick) => tick >= 1000)).toEqual(numbers(1000, 1100));
  }
});

it('Redis killed and started again: every client is sent away once, comes back and hears on', async () => {
  const listeners = await Promise.all(numbers(0, 20).map((index) => listen(() => at(index))));
  await ready();
  await emit(at(0), 0, 5);
  await Promise.all(listeners.map((listener) => listener.count(5)));

  await redis.kill();
  // A publish in the outage is told to fail.
  expect(await emit(at(1), 5, 6)).toHaveProperty('errors');
  await redis.start();
  let tick = 10;
  while (!listeners.every(({ heard }) => (heard.at(-1) as number) >= 10)) await emit(at(tick), tick, ++tick);
  for (const { codes, heard } of listeners) {
    expect(codes).toEqual([1013]);
    expect(heard.slice(0, 5)).toEqual(numbers(0, 5));
    const after = heard.slice(5);
    expect(after).toEqual(numbers(after[0] as number, (after[0] as number) + after.length));
  }
});

it('SIGTERM drains: what was published is delivered, clients go on elsewhere, the process leaves', async () => {
  const [leaving, staying] = servers as [Running, Running];
  let here = leaving.url;
  const listeners = await Promise.all(numbers(0, 20).map(() => listen(() => here)));
  await ready();
  await emit(staying.url, 0, 100);
  here = staying.url;
  expect(await leaving.stop('SIGTERM')).toBe(0);
  for (const { heard, codes } of listeners) {
    expect(heard).toEqual(numbers(0, 100));
    expect(codes).toEqual([1001]);
  }
  let tick = 1000;
  while (!listeners.every(({ heard }) => (heard.at(-1) as number) >= 1000)) await emit(here, tick, ++tick);
});
