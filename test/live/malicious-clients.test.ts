/** @tags node-lines graphql */
import { randomBytes } from 'node:crypto';
import { format } from 'node:util';
import { debug } from '../../src/diagnostics/logging.ts';
import { connect, handshake, MODERN, ready } from './client.ts';
import { type Served, serve, serveOpen, serveReady, until } from './serve.ts';
import { CONTINUATION, frame, frameHead, TEXT, upgradeRequest, wire } from './wire.ts';

const EVENTS = { id: '1', type: 'subscribe', payload: { query: 'subscription { events(topic: "a") }' } };
const INIT = frame(TEXT, '{"type":"connection_init"}');

/** The names are so short that they fit in 16 KiB; newer versions of Node limit their number. */
const manyHeaders = (value: string): Record<string, string> =>
  Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [i.toString(36), value]));

/** A raw socket whose connection was accepted and which has one subscription. */
async function subscribed({ port, live }: Served, secure: boolean) {
  const client = await wire(port, secure, upgradeRequest(), INIT);
  await client.until('connection_ack');
  client.socket.write(frame(TEXT, JSON.stringify(EVENTS)));
  await until(() => live.open === 1);
  return client;
}

describe.each([
  ['TCP', false],
  ['TLS', true],
])('bytes from a malicious client over %s', (_, secure) => {
  const start = () => serve({}, (_req, res) => res.end('still here'), secure);
  /** Other clients are served, and nothing is kept for disconnected ones. */
  async function expectStillServing({ url, live, subscriptions }: Served): Promise<void> {
    await until(() => live.open === 0 && subscriptions.stats().connections === 0);
    const client = await ready(url);
    client.send({ id: 'q', type: 'subscribe', payload: { query: '{ hello }' } });
    expect(await client.next()).toMatchObject({ id: 'q', type: 'next' });
    await client.close();
  }

  it.each([
    ['of a message that never ends', Buffer.alloc(0)],
    ['of one byte each', Buffer.from(' ')],
  ])('a flood of fragments %s is closed with 1008 (CVE-2026-48779)', async (__, payload) => {
    const served = await start();
    const client = await subscribed(served, secure);
    const fragment = frame(CONTINUATION, payload, false);
    client.socket.write(frame(TEXT, payload, false));
    // 16 384 are accepted. One write, so that the result does not depend on how fast the socket is read.
    client.socket.write(Buffer.concat(Array.from({ length: 20_000 }, () => fragment)));
    const seen = await client.until(Buffer.from([0x88, 0x02, 1008 >> 8, 1008 & 255]));
    expect(seen.toString('latin1')).not.toContain('"type":"error"');
    client.socket.destroy();
    await expectStillServing(served);
  });

  it('the fragments of a message within the limits form one message', async () => {
    const served = await start();
    const client = await wire(served.port, secure, upgradeRequest());
    const parts = [...'{"type":"connection_init"}'];
    const last = parts.length - 1;
    for (const [index, part] of parts.entries()) {
      client.socket.write(frame(index === 0 ? TEXT : CONTINUATION, part, index === last));
    }
    await client.until('connection_ack');
    client.socket.destroy();
    await expectStillServing(served);
  });

  it('a message with a declared length of 100 MiB is closed with 1009 after its header', async () => {
    const served = await start();
    const client = await subscribed(served, secure);
    client.socket.write(frameHead(TEXT, 100 * 1024 * 1024));
    await client.until(Buffer.from([0x88, 0x02, 1009 >> 8, 1009 & 255]));
    client.socket.destroy();
    await expectStillServing(served);
  });

  it.each([
    ['short ones are upgraded', '', '(101|431)'],
    ['long ones are refused by Node', 'x'.repeat(100), '431'],
  ])('a handshake with 2 000 headers: %s (CVE-2024-37890)', async (__, value, status) => {
    const served = await start();
    const client = await wire(
      served.port,
      secure,
      upgradeRequest({ 'Sec-WebSocket-Protocol': MODERN, ...manyHeaders(value) }),
    );
    const seen = await client.until('\r\n\r\n');
    expect(seen.toString('latin1')).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    client.socket.destroy();
    await expectStillServing(served);
  });

  it.each([
    ['alone', 0, '(200|431)'],
    ['with another upgrade listener', 1, '(400|431)'],
  ])(
    'a handshake whose headers come after 2 000 others is not an upgrade: %s',
    async (__, others, status) => {
      const served = await start();
      for (let i = 0; i < others; i++) served.server.on('upgrade', () => undefined);
      const [line, ...headers] = upgradeRequest({
        'Sec-WebSocket-Protocol': MODERN,
        ...manyHeaders(''),
      }).split('\r\n');
      const turned = [line, ...headers.slice(0, -2).reverse(), '', ''].join('\r\n');
      const client = await wire(served.port, secure, turned);
      const seen = await client.until('\r\n\r\n');
      expect(seen.toString('latin1')).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      client.socket.destroy();
      await expectStillServing(served);
    },
  );

  it.each([
    ['invalid UTF-8', frame(TEXT, Buffer.from([0xff, 0xfe])), 1007],
    ['an unmasked frame', Buffer.from([0x81, 0x02, 0x7b, 0x7d]), 1002],
    ['a reserved bit', Buffer.from([0xf1, 0x80, 0, 0, 0, 0]), 1002],
    ['an unknown opcode', frame(3, 'x'), 1002],
    ['a continuation frame without a message', frame(CONTINUATION, 'x'), 1002],
    ['a ping in fragments', frame(9, 'x', false), 1002],
    ['a ping of 200 bytes', frame(9, 'x'.repeat(200)), 1002],
    ['an invalid close code', frame(8, Buffer.from([0, 1])), 1002],
  ])('%s is closed with the code of RFC 6455, and the sources are returned', async (__, bytes, code) => {
    const served = await start();
    const client = await subscribed(served, secure);
    client.socket.write(bytes);
    await client.until(Buffer.from([0x88, 0x02, code >> 8, code & 255]));
    client.socket.destroy();
    await expectStillServing(served);
  });

  it('random bytes of one client after its handshake have no effect on others', async () => {
    const served = await start();
    for (let i = 0; i < 50; i++) {
      const client = await wire(served.port, secure, upgradeRequest(), randomBytes(1 + i * 7));
      await client.until('101 Switching Protocols');
      client.socket.destroy();
    }
    await expectStillServing(served);
  });
});

describe('documents of a malicious client', () => {
  it.each([
    ['a selection 10 000 deep', `${'{deep'.repeat(10_000)}{hello}${'}'.repeat(10_000)}`],
    ['100 000 aliases', `{${Array.from({ length: 100_000 }, (_, i) => `a${i}:hello`).join(' ')}}`],
    ['a fragment that contains itself', '{...F} fragment F on Query {...F}'],
    ['a megabyte of brackets', `{hello(name:${'['.repeat(1_000_000)}`],
  ])('a malicious document ends its operation only: %s', async (_, query) => {
    const { client, live } = await serveReady({ limits: { messageBytes: 4 * 1024 * 1024 } });
    client.send(EVENTS);
    await until(() => live.open === 1);
    client.send({ id: 'x', type: 'subscribe', payload: { query } });
    expect(await client.next()).toMatchObject({ id: 'x', type: 'error' });
    live.publish('a', 'continues');
    expect(await client.next()).toMatchObject({ id: '1', payload: { data: { events: 'continues' } } });
    expect(live.calls['hello']).toBeUndefined();
  });
});

describe('variables from a malicious client', () => {
  const messageWith = (variables: string): string =>
    `{"id":"x","type":"subscribe","payload":{"query":"{ hello }","variables":${variables}}}`;
  const keys = (count: number): string => Array.from({ length: count }, (_, i) => `"k${i}":0`).join();

  it.each([
    ['20 001 values', `{"v":[${'0,'.repeat(20_000)}0]}`],
    ['an object of 2001 members', `{${keys(2001)}}`],
    ['210 levels', `{"v":${'['.repeat(210)}${']'.repeat(210)}}`],
  ])('malicious variables end their operation only: %s', async (_, variables) => {
    const { client, live } = await serveReady();
    client.send(messageWith(variables));
    expect(await client.next()).toMatchObject({
      id: 'x',
      type: 'error',
      payload: [{ extensions: { code: 'LIMIT_VARIABLES' } }],
    });
    expect(live.calls['hello']).toBeUndefined();
  });

  it('variables that would take long to parse make the message invalid', async () => {
    const { client } = await serveReady();
    client.send(messageWith(`{"v":${'['.repeat(100_000)}${']'.repeat(100_000)}}`));
    expect((await client.closed).code).toBe(4400);
  });

  it('variables within the limits are accepted', async () => {
    const { client } = await serveReady();
    client.send(messageWith(`{"v":[${'0,'.repeat(15_000)}0]}`));
    expect(await client.next()).toMatchObject({ id: 'x', type: 'next' });
  });
});

describe.each([
  [MODERN, 'subscribe'],
  ['graphql-ws', 'start'],
])('the memory of live operations over %s', (protocol, type) => {
  const subscribe = (id: string, payload: object): object => ({
    id,
    type,
    payload: { query: 'subscription { events(topic: "a") }', ...payload },
  });

  it.each([
    ['long strings', { text: 'x'.repeat(900_000) }],
    ['many empty objects', { list: Array.from({ length: 19_000 }, () => ({})) }],
  ])(
    'the memory of live operations is limited for variables with %s, and freed when operations end',
    async (_, variables) => {
      const { client, subscriptions } = await serveReady({ ping: false }, protocol);
      for (let i = 0; i < 10; i++) client.send(subscribe(`s${i}`, { variables }));
      const { id, payload } = await client.next();
      expect([id, JSON.stringify(payload)]).toEqual([
        expect.stringMatching(/^s[1-9]$/),
        expect.stringContaining('too large together'),
      ]);
      await client.silence();
      const live = subscriptions.stats().operations;
      expect(live).toBeLessThan(7);
      for (let i = 0; i < live; i++) {
        client.send({ id: `s${i}`, type: type === 'start' ? 'stop' : 'complete' });
      }
      await until(() => subscriptions.stats().operations === 0);
      client.send(subscribe('again', { variables }));
      await until(() => subscriptions.stats().operations === 1);
    },
  );

  it('the memory of live operations does not contain extensions', async () => {
    const { client, subscriptions } = await serveReady({ ping: false }, protocol);
    for (let i = 0; i < 10; i++) client.send(subscribe(`s${i}`, { extensions: { x: 'x'.repeat(900_000) } }));
    await until(() => subscriptions.stats().operations === 10);
  });
});

describe('the debug log', () => {
  const { subscriptions } = debug;
  let lines: string[];
  beforeEach(() => {
    lines = [];
    debug.subscriptions = (...all) => void lines.push(format(...all));
  });
  afterEach(() => {
    debug.subscriptions = subscriptions;
  });

  it('the debug log contains the reason of a refused upgrade', async () => {
    const { port, url } = await serve({ limits: { connections: 1 } });
    await handshake(port, '/graphql', { host: 'a', origin: 'http://b' });
    await connect(url);
    await handshake(port, '/graphql', { host: 'a' });
    await handshake(port, '/other', { host: 'a' });
    expect(lines.map((line) => /\d{3} for .*/.exec(line)?.[0])).toEqual([
      '403 for an upgrade of /graphql: the origin "http://b" is not that of the host "a" and not in "allowedOrigins"',
      '503 for an upgrade of /graphql: the limit "limits.connections" is reached',
      '404 for an upgrade of /other: no subscriptions are attached to this path; attached: /graphql',
    ]);
  });

  it('the debug log contains no line break and no parameter of a client', async () => {
    const { client } = await serveOpen();
    client.send({ type: 'connection_init', payload: { token: 'secret-token' } });
    await client.next();
    const id = 'x\n\u001b[31m1970-01-01 root logged in';
    for (let i = 0; i < 2; i++) client.send({ ...EVENTS, id });
    expect((await client.closed).code).toBe(4409);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('closed with 4409');
    for (const words of ['\n', '\u001b', 'secret-token']) expect(lines[0]).not.toContain(words);
  });
});
