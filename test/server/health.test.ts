/** @tags node-lines graphql */
import { once } from 'node:events';
import * as http from 'node:http';
import * as http2 from 'node:http2';
import { type AddressInfo, connect, type Server } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import express from 'express';
import { buildSchema } from 'graphql';
import { WebSocketServer } from 'ws';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createServer } from '../../middleware/server.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { MemoryStore } from '../../src/cache/memory-store.ts';
import type { HealthOptions } from '../../types/server.ts';
import { requestHttp1, requestHttp2, requestHttps, requestSecureHttp2, tls } from '../exchange.ts';
import { eachExpress } from '../express.ts';
import { ready as readyClient } from '../live/client.ts';
import { until } from '../until.ts';

const portOf = (server: Server): number => (server.address() as AddressInfo).port;
const listen = async (server: Server): Promise<string> => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${portOf(server)}`;
};

interface Probe {
  readonly status: number;
  readonly body: { status: string; failed?: string[] };
}

/** Sends a probe. A keep-alive agent uses a connection again that is already open. */
function probe(url: string, agent?: http.Agent): Promise<Probe> {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { agent }, (response) => {
      let text = '';
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode as number, body: JSON.parse(text) }));
    });
    request.on('error', reject);
  });
}

function createApp(make: typeof express, options: HealthOptions = {}) {
  const app = make();
  const server = createServer(app, options);
  app.get('/livez', server.liveness);
  app.get('/readyz', server.readiness);
  return { app, server };
}

eachExpress((make, major) => {
  it(`liveness and readiness send 200 until draining begins, and then 503 (Express ${major})`, async () => {
    const { server } = createApp(make);
    const url = await listen(server);
    expect(await probe(`${url}/livez`)).toEqual({ status: 200, body: { status: 'live' } });
    expect(await probe(`${url}/readyz`)).toEqual({ status: 200, body: { status: 'ready' } });
    expect(server.stats().state).toBe('ready');
    const drained = server.drain({ delay: 1500 });
    expect(await probe(`${url}/livez`)).toEqual({ status: 503, body: { status: 'draining' } });
    expect(await probe(`${url}/readyz`)).toEqual({ status: 503, body: { status: 'draining' } });
    expect(server.stats().state).toBe('draining');
    await drained;
    expect(server.listening).toBe(false);
    await expect(probe(`${url}/readyz`)).rejects.toThrow('ECONNREFUSED');
  });
});

it('readiness sends 503 on an open connection after close() of the server', async () => {
  const app = express();
  const server = createServer(app);
  let release: (() => void) | undefined;
  app.get('/slow', (_req, res) => {
    release = () => res.end('{}');
  });
  app.get('/readyz', server.readiness);
  const url = await listen(server);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const slow = probe(`${url}/slow`, agent);
  // Before the request has arrived, its connection is idle, and close() would close it.
  await until(() => release !== undefined);
  expect(server.stats().connections).toBe(1);
  const queued = probe(`${url}/readyz`, agent);
  await new Promise(setImmediate);
  server.close();
  release?.();
  await slow;
  const result = await queued.catch((error: NodeJS.ErrnoException) => error.code);
  expect([{ status: 503, body: { status: 'draining' } }, 'ECONNRESET', 'ECONNREFUSED']).toContainEqual(
    result,
  );
  agent.destroy();
});

/** A resolver that waits for `release`. */
function slowField() {
  let release = (): void => undefined;
  const released = new Promise<string>((resolve) => {
    release = () => resolve('done');
  });
  const field = {
    isCalled: false,
    release: () => release(),
    resolve(): Promise<string> {
      field.isCalled = true;
      return released;
    },
  };
  return field;
}

describe('checks', () => {
  it('readiness runs the checks, and names those that throw, reject, return false or take too long', async () => {
    let works = false;
    const { server } = createApp(express, {
      checks: {
        good: () => works,
        throws: () => {
          if (!works) throw new Error('hunter2');
        },
        rejects: async () => {
          if (!works) throw new Error('hunter2');
        },
        hangs: () => (works ? undefined : new Promise(() => undefined)),
        fine: () => 'anything but false',
      },
    });
    const url = await listen(server);
    const failed = ['good', 'throws', 'rejects', 'hangs'];
    expect(await probe(`${url}/readyz`)).toEqual({ status: 503, body: { status: 'unavailable', failed } });
    expect((await probe(`${url}/livez`)).status).toBe(200);
    const becomesReady = server.ready();
    works = true;
    await becomesReady;
    expect((await probe(`${url}/readyz`)).status).toBe(200);
    await server.drain();
  });

  it('readiness runs the checks once a second for many requests', async () => {
    let calls = 0;
    const { server } = createApp(express, { checks: { one: () => calls++ } });
    const url = await listen(server);
    const started = performance.now();
    await Promise.all(Array.from({ length: 20 }, () => probe(`${url}/readyz`)));
    await probe(`${url}/readyz`);
    const seconds = Math.floor((performance.now() - started) / 1000);
    expect(calls).toBeGreaterThan(0);
    expect(calls).toBeLessThanOrEqual(1 + seconds);
    await server.drain();
  });
});

describe('ready()', () => {
  it('ready() resolves when the server listens', async () => {
    const server = createServer(express());
    let isReady = false;
    const ready = server.ready().then(() => {
      isReady = true;
    });
    await new Promise(setImmediate);
    expect([isReady, server.stats().state]).toEqual([false, 'starting']);
    server.listen(0, '127.0.0.1');
    await ready;
    await server.drain();
    await expect(server.ready()).rejects.toThrow('The server is draining');
  });

  it('ready() rejects if the port is in use, or the server drains before it listens', async () => {
    const first = createServer(express());
    await listen(first);
    const second = createServer(express());
    const failed = second.ready();
    second.listen(portOf(first), '127.0.0.1');
    await expect(failed).rejects.toThrow('EADDRINUSE');
    const third = createServer(express());
    const never = third.ready();
    await third.drain();
    await expect(never).rejects.toThrow('The server is draining');
    await first.drain();
  });
});

describe('drain()', () => {
  const schema = buildSchema('type Query { slow: String } type Subscription { never: String }');
  Object.assign(schema.getSubscriptionType()?.getFields()['never'] as object, {
    async *subscribe() {
      await new Promise(() => undefined);
      yield 'never';
    },
  });

  it('drain() closes a server that listens again after an earlier drain', async () => {
    const { server } = createApp(express);
    await listen(server);
    await server.drain();
    await listen(server);
    await server.drain();
    expect(server.listening).toBe(false);
  });

  it('drain() lets requests finish, closes the sockets of attachSubscriptions, and resolves when all are closed', async () => {
    const slow = slowField();
    const handler = graphqlHTTP(schema, { rootValue: { slow: slow.resolve } });
    const server = createServer(express().use('/graphql', handler));
    attachSubscriptions(server, handler);
    const url = await listen(server);
    const client = await readyClient(`${url.replace('http', 'ws')}/graphql`);
    client.send({ id: '1', type: 'subscribe', payload: { query: 'subscription { never }' } });
    await until(() => server.stats().live.operations === 1);
    const response = fetch(`${url}/graphql?query={slow}`).then((result) => result.json());
    // Before the request has arrived, its connection is idle, and drain() would close it.
    await until(() => slow.isCalled);
    expect(server.stats().connections).toBe(2);
    let isDrained = false;
    const drained = server.drain({ timeout: 2000 }).then(() => {
      isDrained = true;
    });
    expect((await client.closed).code).toBe(1001);
    expect(isDrained).toBe(false);
    slow.release();
    expect(await response).toEqual({ data: { slow: 'done' } });
    await drained;
    expect(server.stats()).toMatchObject({ connections: 0, live: { connections: 0, operations: 0 } });
  });

  it.each([
    ['TCP', {}, false],
    ['TCP for TLS', tls, false],
    ['TLS', tls, true],
    ['TCP for HTTP/2', { http2: true }, false],
    ['TLS for HTTP/2', { http2: true, ...tls }, true],
  ])(
    'drain() does not wait for connections over %s on which no request begins',
    async (_, options, isSecure) => {
      const server = createServer(() => undefined, options as object);
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const port = portOf(server);
      const client = isSecure
        ? tlsConnect({ port, host: '127.0.0.1', ca: tls.cert, servername: 'localhost' })
        : connect(port, '127.0.0.1');
      const closed = new Promise((resolve) => client.on('error', () => undefined).on('close', resolve));
      client.resume();
      await once(client, isSecure ? 'secureConnect' : 'connect');
      await until(() => server.stats().connections === 1);
      // Longer than the test may take.
      await server.drain({ timeout: 60_000 });
      await closed;
    },
  );

  it('drain() lets a request end whose first bytes arrive after the drain has begun, except on Node 26', async () => {
    const server = createServer((_req, res) => void res.end('late'));
    const url = await listen(server);
    const client = connect(portOf(server), '127.0.0.1').on('error', () => undefined);
    let response = '';
    client.on('data', (chunk) => (response += chunk));
    await until(() => server.stats().connections === 1);
    const drained = server.drain({ timeout: 60_000 });
    client.write(`GET / HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`);
    await drained;
    await until(() => client.closed);
    // Since Node 26, the `close` of a server of Node closes connections without a request immediately.
    const isClosedByNode = Number.parseInt(process.versions.node, 10) >= 26;
    expect(response.split('\r\n')[0]).toBe(isClosedByNode ? '' : 'HTTP/1.1 200 OK');
  });

  it.each([
    ['HTTP/1.1', requestHttp1, {}],
    ['HTTPS', requestHttps, tls],
    ['HTTP/2', requestHttp2, { http2: true }],
    ['HTTP/2 with TLS', requestSecureHttp2, { http2: true, ...tls }],
  ])(
    'drain() ends event streams of a handler without attachSubscriptions over %s',
    async (_, send, options) => {
      const slow = slowField();
      const handler = graphqlHTTP(schema, { rootValue: { slow: slow.resolve } });
      const [server, other] = [createServer(handler, options as object), createServer(handler)];
      await Promise.all([listen(server), listen(other)]);
      const headers = { accept: 'text/event-stream' };
      const never = { path: '/?query=subscription{never}', headers };
      // A client may get an error, because its stream has no ending.
      const settled = (response: Promise<unknown>): Promise<unknown> => response.catch(() => undefined);
      const kept = settled(requestHttp1(portOf(other), never));
      const ended = settled(send(portOf(server), never));
      const response = send(portOf(server), { path: '/?query={slow}' });
      await until(() => slow.isCalled && server.stats().live.operations === 2);
      const drained = server.drain({ timeout: 3000 });
      await ended;
      // The timeout, which ends all requests, has not passed.
      slow.release();
      expect((await response).body).toContain('done');
      await drained;
      expect(server.stats().live.operations).toBe(1);
      await other.drain({ timeout: 0 });
      await kept;
    },
  );

  it('a server that listens again after drain() has event streams again', async () => {
    const server = createServer(graphqlHTTP(schema));
    for (let round = 0; round < 2; round++) {
      const response = await fetch(`${await listen(server)}/?query=subscription{never}`, {
        headers: { accept: 'text/event-stream' },
      });
      expect(response.status).toBe(200);
      await server.drain({ timeout: 0 });
      await response.text().catch(() => undefined);
    }
    expect(server.stats().live.connections).toBe(0);
  });

  it('drain() closes sockets that the application has given to websocketHandler', async () => {
    const handler = graphqlHTTP(schema);
    const server = createServer(express().use('/graphql', handler));
    new WebSocketServer({ server }).on('connection', handler.websocketHandler);
    const client = await readyClient(`${(await listen(server)).replace('http', 'ws')}/graphql`);
    client.send({ id: '1', type: 'subscribe', payload: { query: 'subscription { never }' } });
    await until(() => server.stats().live.operations === 1);
    const drained = server.drain({ timeout: 2000 });
    expect(await client.closed).toEqual({ code: 1001, reason: 'Going away' });
    await drained;
    expect(server.stats().live.connections).toBe(0);
  });

  it('drain() closes upgraded connections of other code after the timeout', async () => {
    const server = createServer(() => undefined);
    server.on('upgrade', (_request, socket) => {
      socket.on('error', () => undefined);
      socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n');
    });
    await listen(server);
    const client = http.get({ port: portOf(server), headers: { connection: 'upgrade', upgrade: 'x' } });
    const [, socket] = await once(client, 'upgrade');
    await server.drain({ timeout: 100 });
    if (!socket.closed) await once(socket.on('error', () => undefined).resume(), 'close');
    expect(server.stats().connections).toBe(0);
  });

  it('a second call of drain() waits for the first one', async () => {
    const server = createServer(express());
    await listen(server);
    await Promise.all([server.drain({ delay: 20 }), server.drain()]);
    await server.drain();
    expect(() => server.drain({ delay: -1 })).toThrow(/drain: option "delay" is -1/);
  });

  /** Two servers, as behind a load balancer that opens connections to the second one when the first one drains. */
  async function startPair(options: { http2?: true } = {}) {
    const respond = (_: unknown, res: { end(text: string): unknown }) =>
      void setTimeout(() => res.end('ok'), 5 * Math.random());
    const create = () =>
      options.http2 ? createServer(respond, { http2: true }) : createServer(respond as http.RequestListener);
    const [first, second] = [create(), create()];
    return { first, second, urls: [await listen(first), await listen(second)] as const };
  }

  /** Sends requests with pauses until the end; returns the errors. */
  async function sendUntil(isOver: () => boolean, send: () => Promise<unknown>): Promise<unknown[]> {
    const errors: unknown[] = [];
    // Bounded, so that a failure ends.
    for (let times = 0; times < 500 && !isOver(); times++) {
      await send().catch((error: unknown) => errors.push(error));
      await new Promise((resolve) => setTimeout(resolve, 20 * Math.random()));
    }
    return errors;
  }

  it('drain() with a delay loses no request of busy clients over HTTP/1.1', async () => {
    const { first, second, urls } = await startPair();
    const counts = { 'keep-alive': 0, close: 0 };
    let isOver = false;
    const clients = Array.from({ length: 12 }, () => {
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
      let isClosed = false;
      return sendUntil(
        () => isOver,
        async () => {
          const [response] = await once(http.get(urls[isClosed ? 1 : 0], { agent }), 'response');
          const { connection } = response.headers as { connection: keyof typeof counts };
          counts[connection]++;
          isClosed ||= connection === 'close';
          await once(response.resume(), 'end');
        },
      ).finally(() => agent.destroy());
    });
    await until(() => counts['keep-alive'] > 50);
    expect(counts.close).toBe(0);
    await first.drain({ delay: 300 });
    isOver = true;
    expect((await Promise.all(clients)).flat()).toEqual([]);
    expect(counts.close).toBe(12);
    await second.drain();
  });

  it('drain() without a delay closes the connection of the request in progress with its response', async () => {
    let respond = (): void => undefined;
    const server = createServer((_req, res) => {
      respond = () => void res.end('ok');
    });
    const url = await listen(server);
    const agent = new http.Agent({ keepAlive: true });
    const received = once(http.get(url, { agent }), 'response');
    await once(server, 'request');
    const drained = server.drain();
    respond();
    const [response] = await received;
    expect(response.headers.connection).toBe('close');
    response.resume();
    await drained;
  });

  it('drain() with a delay closes the connection of a request with Expect whose body is read', async () => {
    const { app, server } = createApp(express);
    app.post('/read', express.text(), (req, res) => void res.send(req.body));
    await listen(server);
    const socket = connect(portOf(server), '127.0.0.1').setEncoding('latin1');
    await once(socket, 'connect');
    const drained = server.drain({ delay: 1000 });
    socket.write(
      'POST /read HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n',
    );
    let seen = '';
    socket.on('data', (part: string) => {
      seen += part;
      if (seen.endsWith('100 Continue\r\n\r\n')) socket.write('words');
    });
    await once(socket, 'close');
    expect(seen).toMatch(/100 Continue.*200 OK.*\r\nConnection: close\r\n.*words$/s);
    await drained;
  });

  it('drain() with a delay loses no request of busy clients over HTTP/2', async () => {
    const { first, second, urls } = await startPair({ http2: true });
    let responses = 0;
    let goaways = 0;
    let isOver = false;
    const clients = Array.from({ length: 8 }, () => {
      let session = http2.connect(urls[0]).on('goaway', () => goaways++);
      return sendUntil(
        () => isOver,
        async () => {
          if (session.closed || session.destroyed) session = http2.connect(urls[1]);
          const stream = session.request({ ':path': '/' });
          await once(stream.resume(), 'end').catch((error: unknown) => {
            // The client itself refuses a request that it has not sent when the GOAWAY arrives; it sends it again.
            if (stream.rstCode !== http2.constants.NGHTTP2_REFUSED_STREAM) throw error;
          });
          responses++;
        },
      ).finally(() => session.close());
    });
    await until(() => responses > 50);
    expect(goaways).toBe(0);
    await first.drain({ delay: 300 });
    isOver = true;
    expect((await Promise.all(clients)).flat()).toEqual([]);
    expect(goaways).toBeGreaterThanOrEqual(8);
    await second.drain();
  });

  it('drain() of a server that never listened resolves', async () => {
    await createServer(express()).drain();
  });
});

it('stats() counts documents, operations and uploads, and measures the event loop', async () => {
  const handler = graphqlHTTP(buildSchema('type Query { a: String }'), { uploads: { memoryBytes: 12_345 } });
  const { app, server } = createApp(express);
  app.use('/graphql', handler);
  const before = server.stats();
  const url = await listen(server);
  await fetch(`${url}/graphql?query={a}`);
  const { documents, uploads, eventLoop, memory, uptime } = server.stats();
  expect(documents.entries - before.documents.entries).toBe(1);
  expect(documents.bytes).toBeGreaterThan(before.documents.bytes);
  expect(uploads.maxBytes).toBeGreaterThanOrEqual(12_345);
  expect(eventLoop.utilization).toBeGreaterThan(0);
  expect(eventLoop.utilization).toBeLessThanOrEqual(1);
  expect(memory.rss).toBeGreaterThan(1e6);
  expect(uptime).toBeGreaterThan(0);
  await server.drain();
});

it('stats() counts the responses that graphqlHTTP has stored', async () => {
  const store = new MemoryStore(54_321);
  const { responses } = createServer(express()).stats();
  expect(responses.maxBytes).toBeGreaterThanOrEqual(54_321);
  expect(store.size).toBe(0);
});

it('stats() contains the delay by a resolver that blocks the event loop', async () => {
  const server = createServer(express());
  server.stats();
  await new Promise((resolve) => setTimeout(resolve, 60));
  const until100 = performance.now() + 200;
  while (performance.now() < until100);
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(server.stats().eventLoop.max).toBeGreaterThan(100);
});

it('drain answers requests on connections that wait in the kernel when its delay ends', async () => {
  const server = createServer(express().use((_req, res) => void res.end('late')));
  await listen(server);
  const drained = server.drain({ delay: 50 });
  const answers = Array.from({ length: 50 }, async () => {
    const socket = connect(portOf(server), '127.0.0.1');
    socket.end('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    let text = '';
    for await (const chunk of socket) text += chunk;
    return text.slice(0, 15);
  });
  // The event loop is busy until the delay is over, so that it accepts none of them before.
  await new Promise(process.nextTick);
  const end = performance.now() + 100;
  while (performance.now() < end);
  expect(new Set(await Promise.all(answers))).toEqual(new Set(['HTTP/1.1 200 OK']));
  await drained;
});
