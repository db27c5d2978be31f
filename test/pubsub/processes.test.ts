/** @tags once slow */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';
import { type Client, createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { type Running, startExample, stopExamples } from '../examples/start.ts';
import { frame, TEXT, upgradeRequest } from '../live/wire.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { until } from '../until.ts';
import { numbers } from './events.ts';

let redis: RedisServer;
let servers: Running[];
const clients = new Set<Client>();

const start = () => startExample('../test/pubsub/server', { REDIS_URL: redis.url });

beforeAll(async () => {
  redis = await startRedis();
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
async function sendRequest(url: string, query: string): Promise<{ data?: unknown; errors?: unknown }> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  return (await response.json()) as { data?: unknown };
}
const emit = (url: string, from: number, to: number) =>
  sendRequest(url, `mutation { emit(from: ${from}, to: ${to}) }`);
const ready = (all = servers) => Promise.all(all.map(({ url }) => sendRequest(url, '{ ready }')));

interface Listener {
  readonly delivered: number[];
  /** The close codes of its sockets, in order. */
  readonly codes: number[];
  /** The number of events received before each of those closes. */
  readonly countAtClose: number[];
  leave(): void;
  /** Resolves when this number of events has been received. */
  count(length: number): Promise<void>;
}

/** Starts the official client, which reconnects automatically; resolves when it is subscribed. */
async function listen(url: () => string): Promise<Listener> {
  const delivered: number[] = [];
  const codes: number[] = [];
  const countAtClose: number[] = [];
  let notify: () => void = () => undefined;
  const client = createClient({
    webSocketImpl: WebSocket,
    url: () => `${url().replace('http', 'ws')}/graphql`,
    retryAttempts: 50,
    retryWait: () => new Promise((resolve) => setTimeout(resolve, 20)),
    on: {
      closed(event) {
        codes.push((event as { code: number }).code);
        countAtClose.push(delivered.length);
      },
    },
  });
  clients.add(client);
  const connected = new Promise((resolve) => client.on('connected', resolve));
  const leave = client.subscribe<{ tick: number }>(
    { query: 'subscription { tick }' },
    {
      next: ({ data }) => {
        delivered.push(data?.tick as number);
        notify();
      },
      error: () => undefined,
      complete: () => undefined,
    },
  );
  await connected;
  return {
    delivered,
    codes,
    countAtClose,
    leave,
    async count(length) {
      while (delivered.length < length) {
        await new Promise<void>((resolve) => {
          notify = resolve;
        });
      }
    },
  };
}

const PING = frame(TEXT, '{"type":"ping"}');

interface Follower {
  readonly socket: net.Socket;
  /** The number of events that arrived in order, and the first event that did not. */
  readonly delivered: { count: number; wrong?: string };
}

/** A subscribed socket that checks only the order of events, so that one process can have a thousand of them. */
async function follow(url: string): Promise<Follower> {
  const { hostname: host, port } = new URL(url);
  const socket = net.connect({ host, port: Number(port) });
  const delivered: Follower['delivered'] = { count: 0 };
  socket.write(upgradeRequest());
  socket.write(frame(TEXT, '{"type":"connection_init"}'));
  const received = async (words: string): Promise<void> => {
    for (let text = ''; !text.includes(words); ) text += String((await once(socket, 'data'))[0]);
  };
  await received('connection_ack');
  const payload = { query: 'subscription { tick }' };
  socket.write(frame(TEXT, JSON.stringify({ type: 'subscribe', id: randomUUID(), payload })));
  // The pong follows all earlier messages.
  socket.write(PING);
  await received('pong');
  let rest = '';
  socket.on('data', (chunk) => {
    const text = rest + chunk.toString('latin1');
    const whole = text.lastIndexOf('}') + 1;
    rest = text.slice(whole);
    for (const [, tick] of text.slice(0, whole).matchAll(/"tick":(\d+)/g)) {
      if (Number(tick) === delivered.count) delivered.count++;
      else delivered.wrong ??= `${tick} after ${delivered.count}`;
    }
  });
  return { socket, delivered };
}

it('1 000 events reach 1 000 sockets of two processes in order while other sockets connect and leave', async () => {
  const followers: Follower[] = [];
  for (let i = 0; i < 1000; i += 50) {
    followers.push(...(await Promise.all(numbers(i, i + 50).map((index) => follow(at(index))))));
  }
  await ready();
  let publishing = true;
  const connecting = (async () => {
    let count = 0;
    for (; publishing; count++) {
      (await listen(() => at(count))).leave();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return count;
  })();
  expect(await emit(at(0), 0, 1000)).toEqual({ data: { emit: true } });
  publishing = false;
  expect(await connecting).toBeGreaterThan(0);
  await until(() => followers.every(({ delivered }) => delivered.count === 1000), 60_000);
  for (const { delivered, socket } of followers) {
    expect(delivered).toEqual({ count: 1000 });
    socket.destroy();
  }
}, 120_000);

it('events of two concurrent publishers keep the order of each publisher', async () => {
  const listeners = await Promise.all(numbers(0, 4).map((index) => listen(() => at(index))));
  await ready();
  await Promise.all([emit(at(0), 0, 100), emit(at(1), 1000, 1100)]);
  await Promise.all(listeners.map((listener) => listener.count(200)));
  for (const { delivered } of listeners) {
    expect(delivered.filter((tick) => tick < 1000)).toEqual(numbers(0, 100));
    expect(delivered.filter((tick) => tick >= 1000)).toEqual(numbers(1000, 1100));
  }
});

it('after a restart of Redis every client is closed once, reconnects and receives events', async () => {
  const listeners = await Promise.all(numbers(0, 20).map((index) => listen(() => at(index))));
  await ready();
  await emit(at(0), 0, 5);
  await Promise.all(listeners.map((listener) => listener.count(5)));

  await redis.kill();
  // A publish during the outage fails.
  expect(await emit(at(1), 5, 6)).toHaveProperty('errors');
  await redis.start();
  // Each connection of each server reconnects independently, and a publish before that fails.
  const published: number[] = [];
  const isOver = () =>
    [0, 1].every((index) => published.some((tick) => tick % 2 === index)) &&
    listeners.every(({ delivered }) => (delivered.at(-1) as number) >= 10);
  for (let tick = 10; !isOver(); tick++) {
    const result = await emit(at(tick), tick, tick + 1);
    if (!('errors' in (result as object))) published.push(tick);
  }
  for (const { codes, delivered } of listeners) {
    expect(codes).toEqual([1013]);
    expect(delivered.slice(0, 5)).toEqual(numbers(0, 5));
    const after = delivered.slice(5);
    const first = published.indexOf(after[0] as number);
    expect(after).toEqual(published.slice(first, first + after.length));
  }
});

it('after SIGTERM each client misses only events while it reconnects', async () => {
  const [leaving, staying] = await Promise.all([start(), start()]);
  let here = leaving.url;
  const listeners = await Promise.all(numbers(0, 20).map(() => listen(() => here)));
  await ready([leaving, staying]);
  let tick = 0;
  let over = false;
  const publishing = (async () => {
    for (; !over; tick += 20) {
      expect(await emit(staying.url, tick, tick + 20)).toEqual({ data: { emit: true } });
    }
  })();
  await Promise.all(listeners.map((listener) => listener.count(40)));
  here = staying.url;
  expect(await leaving.stop('SIGTERM')).toBe(0);
  await Promise.all(listeners.map(({ count, countAtClose }) => count((countAtClose[0] as number) + 40)));
  over = true;
  await publishing;
  for (const { delivered, codes, countAtClose } of listeners) {
    expect(codes).toEqual([1001]);
    const [before, after] = [delivered.slice(0, countAtClose[0]), delivered.slice(countAtClose[0])];
    expect(before).toEqual(numbers(0, before.length));
    const [first = 0] = after;
    expect(first).toBeGreaterThanOrEqual(before.length);
    expect(after).toEqual(numbers(first, first + after.length));
  }
});
