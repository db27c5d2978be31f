/** @tags node-lines graphql slow */
import { once } from 'node:events';
import type http from 'node:http';
import * as http2 from 'node:http2';
import express from 'express';
import type { Browser } from 'playwright-core';
import { WebSocketServer } from 'ws';
import { createServer } from '../../middleware/server.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { SubscriptionOptions } from '../../types/subscriptions.ts';
import { launch } from '../chromium.ts';
import { tls, trusted } from '../exchange.ts';
import { atEnd, listen } from '../kit.ts';
import { MODERN } from '../live/client.ts';
import { liveSchema } from '../live/schema.ts';
import { NOTHING, until } from '../live/serve.ts';
import { frame, TEXT, wire } from '../live/wire.ts';

/** Starts a server over TLS with subscriptions, and a session of HTTP/2. */
async function serve(options: SubscriptionOptions = {}) {
  const { schema, live } = liveSchema();
  const app = express();
  app.get('/', (_req, res) => void res.send('<!doctype html><title>page</title>'));
  const server = createServer(app, { ...tls, http2: true, webSockets: true });
  const { port } = await listen(server);
  const subscriptions = attachSubscriptions(server, schema, options);
  atEnd(() => new Promise((resolve) => server.close(resolve)));
  atEnd(() => subscriptions.close());
  const session = http2.connect(`https://localhost:${port}`, trusted);
  atEnd(async () => session.destroy());
  await once(session, 'remoteSettings');
  return { server, port, live, subscriptions, session };
}

/** The extended CONNECT of a browser. */
const connect = (session: http2.ClientHttp2Session, headers: http2.OutgoingHttpHeaders = {}) =>
  session.request(
    {
      ':method': 'CONNECT',
      ':protocol': 'websocket',
      ':scheme': 'https',
      ':path': '/graphql',
      ':authority': 'localhost',
      'sec-websocket-version': '13',
      'sec-websocket-protocol': MODERN,
      ...headers,
    },
    { endStream: false },
  );

/** A WebSocket over one stream: sends messages and collects the payloads of text frames below 126 bytes. */
function client(stream: http2.ClientHttp2Stream) {
  let bytes = Buffer.alloc(0);
  const received: unknown[] = [];
  const closes: number[] = [];
  stream.on('error', () => undefined);
  stream.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    while (bytes.length >= 2 && bytes.length >= 2 + (bytes[1] as number)) {
      const payload = bytes.subarray(2, 2 + (bytes[1] as number));
      if (bytes[0] === 0x81) received.push(JSON.parse(payload.toString()));
      if (bytes[0] === 0x88) closes.push(payload.readUInt16BE());
      bytes = bytes.subarray(2 + payload.length);
    }
  });
  return {
    received,
    closes,
    send: (message: object) => stream.write(frame(TEXT, JSON.stringify(message))),
  };
}

const headersOf = async (stream: http2.ClientHttp2Stream): Promise<http2.IncomingHttpHeaders> =>
  (await once(stream, 'response'))[0];

describe('WebSockets over HTTP/2', () => {
  it('createServer announces WebSockets over HTTP/2 only with the option webSockets', async () => {
    const { session } = await serve();
    expect(session.remoteSettings.enableConnectProtocol).toBe(true);
    const { port } = await listen(createServer(express(), { ...tls, http2: true }));
    const other = http2.connect(`https://localhost:${port}`, trusted);
    await once(other, 'remoteSettings');
    expect(other.remoteSettings.enableConnectProtocol).not.toBe(true);
    other.destroy();
  });

  it('attachSubscriptions serves many WebSockets of one connection next to its requests', async () => {
    const { session, live, subscriptions } = await serve();
    const streams = Array.from({ length: 20 }, () => connect(session));
    const clients = await Promise.all(
      streams.map(async (stream) => {
        const headers = await headersOf(stream);
        expect(headers[':status']).toBe(200);
        expect(headers['sec-websocket-protocol']).toBe(MODERN);
        expect(headers).not.toHaveProperty('sec-websocket-accept');
        return client(stream);
      }),
    );
    for (const { send } of clients) send({ type: 'connection_init' });
    await until(() => clients.every(({ received }) => received.length === 1));
    for (const { send } of clients) {
      send({ id: '1', type: 'subscribe', payload: { query: 'subscription { events(topic: "a") }' } });
    }
    await until(() => live.open === 20);
    live.publish('a', 'hello');
    await until(() => clients.every(({ received }) => received.length === 2));
    expect(clients.map(({ received }) => received[1])).toEqual(
      clients.map(() => ({ id: '1', type: 'next', payload: { data: { events: 'hello' } } })),
    );
    const page = session.request({ ':path': '/' });
    expect((await headersOf(page))[':status']).toBe(200);
    page.close();
    streams[0]?.close(http2.constants.NGHTTP2_CANCEL);
    await until(() => subscriptions.stats().connections === 19);
    await subscriptions.close();
    expect(clients.slice(1).every(({ closes }) => closes[0] === 1001)).toBe(true);
    expect(subscriptions.stats()).toEqual(NOTHING);
  });

  it.each<[string, SubscriptionOptions, http2.OutgoingHttpHeaders, number]>([
    ['an unknown path', {}, { ':path': '/other' }, 404],
    ['a page of another origin', {}, { origin: 'https://evil.test' }, 403],
    ['an origin that is only the Host', {}, { origin: 'https://evil.test', host: 'evil.test' }, 403],
    ['a full server', { limits: { connections: 1 } }, {}, 503],
    ['a middleware that fails', { middleware: [(_req, _res, next) => next({ status: 401 })] }, {}, 401],
    [
      'a middleware that responds',
      {
        middleware: [
          (_req, res) => void res.writeHead(429, { 'Set-Cookie': ['a=1', 'b=2'] }).end('slow down'),
        ],
      },
      {},
      429,
    ],
  ])('a WebSocket over HTTP/2 gets the status of the refusal for %s', async (_, options, headers, status) => {
    const { session, subscriptions } = await serve(options);
    const first = status === 503 ? connect(session) : undefined;
    if (first !== undefined) await headersOf(first);
    const stream = connect(session, headers);
    const response = await headersOf(stream);
    expect(response[':status']).toBe(status);
    expect(response).not.toHaveProperty('connection');
    let body = '';
    stream.setEncoding('utf8').on('data', (chunk) => {
      body += chunk;
    });
    await once(stream, 'end');
    if (status === 429) {
      expect(response['set-cookie']).toEqual(['a=1', 'b=2']);
      expect(body).toBe('slow down');
    }
    expect(subscriptions.stats().connections).toBe(first === undefined ? 0 : 1);
  });

  it('a stream that the client resets while a middleware waits is released with its unread data', async () => {
    let refuse: ((error: unknown) => void) | undefined;
    let socket: http.IncomingMessage['socket'] | undefined;
    const { session } = await serve({
      middleware: [
        (req, _res, next) => {
          socket = req.socket;
          refuse = next;
        },
      ],
    });
    const stream = connect(session);
    stream.write('unread');
    await until(() => refuse !== undefined);
    stream.close(http2.constants.NGHTTP2_NO_ERROR);
    await once(stream, 'close');
    // The server has received the reset when it responds to a later request.
    const page = session.request({ ':path': '/' });
    await headersOf(page);
    page.close();
    expect(() => refuse?.({ status: 401 })).not.toThrow();
    expect(socket?.destroyed).toBe(true);
  });

  it('a page of our own origin may connect over HTTP/2', async () => {
    const { session, port } = await serve();
    const stream = connect(session, {
      ':authority': `localhost:${port}`,
      origin: `https://localhost:${port}`,
    });
    expect((await headersOf(stream))[':status']).toBe(200);
    stream.close();
  });

  it('createServer refuses other protocols and plain CONNECT with 501', async () => {
    const { session } = await serve();
    const other = connect(session, { ':protocol': 'connect-udp' });
    expect((await headersOf(other))[':status']).toBe(501);
    const plain = session.request({ ':method': 'CONNECT', ':authority': 'example.com:443' });
    expect((await headersOf(plain))[':status']).toBe(501);
  });

  it('attachSubscriptions terminates a client over HTTP/2 that sends nothing', async () => {
    const { session, subscriptions } = await serve({ ping: 60 });
    const stream = connect(session);
    const { send } = client(stream);
    await headersOf(stream);
    send({ type: 'connection_init' });
    await once(stream, 'close');
    await until(() => subscriptions.stats().connections === 0);
  });

  it('a cleartext server of HTTP/2 serves WebSockets too', async () => {
    const server = createServer((_req, res) => void res.end(), { http2: true, webSockets: true });
    const { url } = await listen(server);
    const subscriptions = attachSubscriptions(server, liveSchema().schema);
    const session = http2.connect(url);
    await once(session, 'remoteSettings');
    const stream = connect(session, { ':scheme': 'http' });
    expect((await headersOf(stream))[':status']).toBe(200);
    const { received, send } = client(stream);
    send({ type: 'connection_init' });
    await until(() => received.length === 1);
    await subscriptions.close();
    session.destroy();
  });

  it('a CONNECT over HTTP/1.1 is closed without a response, and the server continues', async () => {
    const { port, session } = await serve();
    const client = await wire(port, true, 'CONNECT a.test:1 HTTP/1.1\r\nHost: a.test\r\n\r\n');
    expect(String(await client.over())).toBe('');
    const stream = connect(session);
    expect((await headersOf(stream))[':status']).toBe(200);
    stream.close();
  });

  it('a listener that ends the socket without a response closes the stream, without a status', async () => {
    const { server, session } = await serve();
    server.on('upgrade', (req: http.IncomingMessage, socket) => {
      if (req.url === '/ended') socket.end();
    });
    const stream = connect(session, { ':path': '/ended' });
    let responded = false;
    stream.on('response', () => {
      responded = true;
    });
    stream.on('error', () => undefined);
    await once(stream, 'close');
    expect(responded).toBe(false);
  });

  it('the listener of ws accepts WebSockets over HTTP/2 too', async () => {
    const { server, session } = await serve();
    const sockets = new WebSocketServer({ noServer: true });
    server.on('upgrade', (req: http.IncomingMessage, socket, head) => {
      if (req.url !== '/echo') return;
      sockets.handleUpgrade(req, socket, head, (ws) =>
        ws.on('message', (data) => ws.send(JSON.stringify({ echo: String(data) }))),
      );
    });
    const stream = connect(session, { ':path': '/echo' });
    expect((await headersOf(stream))[':status']).toBe(200);
    const { received, send } = client(stream);
    send({ a: 1 });
    await until(() => received.length === 1);
    expect(received).toEqual([{ echo: '{"a":1}' }]);
    stream.close();
  });
});

describe('Chromium', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());

  it('Chromium opens a WebSocket over the HTTP/2 connection of its page', async () => {
    const { server, port } = await serve();
    const versions: string[] = [];
    server.on('upgrade', ({ httpVersion }: http.IncomingMessage) => void versions.push(httpVersion));
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    const page = await context.newPage();
    await page.goto(`https://localhost:${port}/`);
    const messages = await page.evaluate(
      ([url, protocol]) =>
        new Promise<string[]>((resolve, reject) => {
          const seen: string[] = [];
          const socket = new WebSocket(url as string, protocol);
          socket.onopen = () => socket.send('{"type":"connection_init"}');
          socket.onerror = () => reject(new Error('the WebSocket has failed'));
          socket.onmessage = ({ data }) => {
            seen.push(data);
            if (seen.length === 1) {
              socket.send(
                '{"id":"1","type":"subscribe","payload":{"query":"subscription { count(to: 2) }"}}',
              );
            }
            if (data.includes('complete')) resolve(seen);
          };
        }),
      [`wss://localhost:${port}/graphql`, MODERN],
    );
    expect(messages).toEqual([
      '{"type":"connection_ack"}',
      '{"id":"1","type":"next","payload":{"data":{"count":1}}}',
      '{"id":"1","type":"next","payload":{"data":{"count":2}}}',
      '{"id":"1","type":"complete"}',
    ]);
    expect(versions).toEqual(['2.0']);
    await context.close();
  });
});

it.each<[string, () => unknown, number]>([
  ['node:http2 without TLS', () => http2.createServer(), 1],
  ['node:http2 with TLS', () => http2.createSecureServer(tls), 1],
  ['createServer without webSockets', () => createServer(express(), { http2: true }), 1],
  ['node:http2 with allowHTTP1', () => http2.createSecureServer({ ...tls, allowHTTP1: true }), 0],
  ['createServer over TLS', () => createServer(express(), { ...tls, http2: true }), 0],
  ['createServer with webSockets', () => createServer(express(), { http2: true, webSockets: true }), 0],
  ['createServer for HTTP/1.1', () => createServer(express()), 0],
])(
  'attachSubscriptions warns about a server to which no WebSocket can be opened: %s',
  async (_name, make, count) => {
    const warned = jest.spyOn(console, 'warn').mockImplementation();
    try {
      const subscriptions = attachSubscriptions(make() as http.Server, liveSchema().schema);
      // Immediates run in the order in which they were set, so the warning comes before this one.
      await new Promise(setImmediate);
      await subscriptions.close();
      const message = expect.stringContaining('createServer(app, { http2: true, webSockets: true })');
      expect(warned.mock.calls).toEqual(Array(count).fill([message]));
    } finally {
      warned.mockRestore();
    }
  },
);
