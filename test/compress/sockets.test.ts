import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { constants, deflateRawSync, inflateRawSync } from 'node:zlib';
import { createClient } from 'graphql-ws';
import { WebSocket as UndiciSocket } from 'undici';
import WebSocket from 'ws';
import { launch } from '../chromium.ts';
import { connect, LEGACY, MODERN, ready } from '../subscriptions/client.ts';
import { EVENTS, events, received, sharedByAll } from '../subscriptions/connect-clients.ts';
import { serve, stopAll, until } from '../subscriptions/serve.ts';
import { frame, TEXT, upgradeRequest, wire } from '../subscriptions/wire.ts';

jest.setTimeout(60_000);
/** Sockets that do not answer when the server closes. */
const sockets: Awaited<ReturnType<typeof wire>>[] = [];
afterEach(async () => {
  for (const { socket } of sockets.splice(0)) socket.destroy();
  await stopAll();
});

async function open(...args: Parameters<typeof wire>) {
  const socket = await wire(...args);
  sockets.push(socket);
  return socket;
}

const SHARED = { ...sharedByAll, perMessageDeflate: 'shared' } as const;
const OFFER = { 'Sec-WebSocket-Protocol': MODERN, 'Sec-WebSocket-Extensions': 'permessage-deflate' };
const story = (index: number): string => `event ${index} `.repeat(200);

/** The frames in bytes of a server, without a mask. */
function framesOf(bytes: Buffer): { readonly first: number; readonly payload: Buffer }[] {
  const frames = [];
  for (let at = bytes.indexOf('\r\n\r\n') + 4; at < bytes.length; ) {
    const short = (bytes[at + 1] as number) & 127;
    const [length, head] =
      short < 126
        ? [short, 2]
        : short === 126
          ? [bytes.readUInt16BE(at + 2), 4]
          : [Number(bytes.readBigUInt64BE(at + 2)), 10];
    frames.push({ first: bytes[at] as number, payload: bytes.subarray(at + head, at + head + length) });
    at += head + length;
  }
  return frames;
}

const TAIL = Buffer.from([0, 0, 0xff, 0xff]);
const inflate = (payload: Buffer): string =>
  inflateRawSync(Buffer.concat([payload, TAIL]), { finishFlush: constants.Z_SYNC_FLUSH }).toString();

/** Opens a socket of raw bytes with a subscription. */
async function rawSubscriber(port: number, id: string, extensions = 'permessage-deflate') {
  const headers = { ...OFFER, 'Sec-WebSocket-Extensions': extensions };
  const raw = await open(port, false, upgradeRequest(headers));
  const [head] = (await raw.until('\r\n\r\n')).toString('latin1').split('\r\n\r\n');
  raw.socket.write(frame(TEXT, '{"type":"connection_init"}'));
  await raw.until('connection_ack');
  raw.socket.write(frame(TEXT, JSON.stringify(events(id))));
  return { ...raw, head: head as string };
}

/** Waits for the frames behind the acknowledgement until one of them matches. */
async function frameOf(
  raw: Awaited<ReturnType<typeof wire>>,
  match: (frame: { readonly first: number; readonly payload: Buffer }) => boolean = () => true,
) {
  for (;;) {
    const found = framesOf(await raw.until('connection_ack'))
      .slice(1)
      .find(match);
    if (found !== undefined) return found;
    await once(raw.socket, 'data');
  }
}

describe("perMessageDeflate: 'shared'", () => {
  it('a shared event is compressed once: the frames of sockets differ only in the id of the operation', async () => {
    const served = await serve(SHARED);
    const pair = [await rawSubscriber(served.port, 'first'), await rawSubscriber(served.port, 'other')];
    await until(() => served.subscriptions.stats().operations === 2);
    served.live.publish('a', story(1));
    const frames = [];
    for (const [index, socket] of pair.entries()) {
      expect(socket.head).toMatch(
        /permessage-deflate; server_no_context_takeover; client_no_context_takeover/,
      );
      const event = await frameOf(socket);
      expect(event.first).toBe(0xc1);
      expect(JSON.parse(inflate(event.payload))).toEqual({
        id: index === 0 ? 'first' : 'other',
        type: 'next',
        payload: { data: { events: story(1) } },
      });
      frames.push(event.payload);
    }
    const [one, two] = frames as [Buffer, Buffer];
    expect(one.length).toBeLessThan(200);
    expect(one.toString('latin1').replace('first', 'other')).toBe(two.toString('latin1'));
  });

  it('sockets with and without the extension get the same events, in both subprotocols', async () => {
    const served = await serve(SHARED);
    const plain = await ready(served.url, MODERN);
    const legacy = await connect(served.url, LEGACY, { perMessageDeflate: true });
    legacy.send({ type: 'connection_init' });
    await legacy.next();
    const deflated = await connect(served.url, MODERN, { perMessageDeflate: true });
    deflated.send({ type: 'connection_init' });
    await deflated.next();
    plain.send(events('1'));
    deflated.send(events('2'));
    legacy.send(events('3', 'a', 'start'));
    await until(() => served.subscriptions.stats().operations === 3);
    const texts = Array.from({ length: 50 }, (_, index) =>
      index % 3 === 0 ? `short ${index}` : story(index),
    );
    for (const text of texts) served.live.publish('a', text);
    await until(() => received(legacy, '3').length === texts.length);
    expect(received(plain, '1')).toEqual(texts);
    expect(received(deflated, '2')).toEqual(texts);
    expect(received(legacy, '3')).toEqual(texts);
  });

  it.each([
    ['server_max_window_bits=15', 0xc1],
    ['client_max_window_bits', 0xc1],
    ['client_max_window_bits=9; server_no_context_takeover', 0xc1],
    // A smaller window would need other bytes: such a client gets its messages as they are.
    ['server_max_window_bits=9', 0x81],
    ['server_max_window_bits=7', 0x81],
    ['server_max_window_bits=abc', 0x81],
    ['unknown_parameter', 0x81],
    ['server_no_context_takeover; server_no_context_takeover', 0x81],
  ])('the offer permessage-deflate; %s gets events whose first byte is %d', async (parameters, first) => {
    const served = await serve(SHARED);
    const headers = { ...OFFER, 'Sec-WebSocket-Extensions': `permessage-deflate; ${parameters}` };
    const raw = await open(served.port, false, upgradeRequest(headers));
    const answer = (await raw.until('\r\n\r\n')).toString('latin1');
    // ws refuses what the RFC forbids, with 400.
    if (answer.startsWith('HTTP/1.1 400')) {
      expect(first).toBe(0x81);
      return;
    }
    raw.socket.write(frame(TEXT, '{"type":"connection_init"}'));
    await raw.until('connection_ack');
    raw.socket.write(frame(TEXT, JSON.stringify(events('1'))));
    await until(() => served.subscriptions.stats().operations === 1);
    served.live.publish('a', story(1));
    const event = await frameOf(raw);
    expect(event.first).toBe(first);
  });

  it('private results of every size arrive complete, compressed from a kibibyte on', async () => {
    const served = await serve({
      keepAlive: 0,
      perMessageDeflate: 'shared',
      limits: { bufferedBytes: '32mb' },
    });
    const client = await connect(served.url, MODERN, { perMessageDeflate: true });
    client.send({ type: 'connection_init' });
    await client.next();
    client.send(events('1'));
    await until(() => served.live.open === 1);
    const sizes = [
      0, 1, 127, 128, 900, 1000, 1024, 5000, 32_768, 65_535, 65_536, 200_000, 1_048_576, 1_500_000,
    ];
    const texts = sizes.flatMap((size) => [
      'ü'.repeat(size >> 1),
      randomBytes(size).toString('base64').slice(0, size),
    ]);
    for (const text of texts) served.live.publish('a', text);
    await until(() => received(client, '1').length === texts.length);
    expect(received(client, '1')).toEqual(texts);
  });

  it('random events of many sockets, some of which leave, arrive complete and in order', async () => {
    const served = await serve(SHARED);
    const clients = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const client = await connect(served.url, MODERN, { perMessageDeflate: index % 3 !== 0 });
        client.send({ type: 'connection_init' });
        await client.next();
        client.send(events(`id ${index}`));
        return client;
      }),
    );
    await until(() => served.subscriptions.stats().operations === 20);
    const texts = Array.from({ length: 200 }, (_, index) =>
      index % 2 === 0 ? story(index).slice(0, (index * 97) % 2000) : randomBytes(index).toString('hex'),
    );
    for (const [index, text] of texts.entries()) {
      served.live.publish('a', text);
      if (index % 40 === 0) clients[index / 40]?.websocket.terminate();
      if (index % 10 === 0) await new Promise(setImmediate);
    }
    for (const [index, client] of [...clients.entries()].slice(5)) {
      await until(() => received(client, `id ${index}`).length === texts.length);
      expect(received(client, `id ${index}`)).toEqual(texts);
    }
  });

  it('operations of clients may be compressed, also in fragments, and broken ones close only their socket', async () => {
    const served = await serve(SHARED);
    const query = JSON.stringify({ id: 'q', type: 'subscribe', payload: { query: '{ hello }' } });
    const bytes = deflateRawSync(query, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4);
    const raw = await rawSubscriber(served.port, 'e');
    const first = frame(TEXT, bytes.subarray(0, 10), false);
    first[0] = 0x41;
    raw.socket.write(Buffer.concat([first, frame(0, bytes.subarray(10))]));
    await raw.until('"id":"q"');
    for (const [broken, code] of [
      [Buffer.from([0xff, 0xff, 0xff, 0x07]), 1007],
      [undefined, 1002],
    ] as const) {
      const other = await rawSubscriber(served.port, 'x');
      const sent =
        broken === undefined ? Buffer.concat([frame(TEXT, 'a', false), frame(0, 'b')]) : frame(TEXT, broken);
      // RSV1 on a continuation is an error of the protocol (RFC 7692 section 6.1).
      sent[broken === undefined ? 7 : 0] = broken === undefined ? 0xc0 : 0xc1;
      other.socket.write(sent);
      await other.until(Buffer.from([0x88, 0x02, code >> 8, code & 255]) as never);
    }
    served.live.publish('a', story(2));
    await frameOf(raw, ({ first: byte }) => byte === 0xc1);
  });
});

describe('stock clients', () => {
  it.each([
    ['ws', WebSocket],
    ['undici', UndiciSocket],
  ])('graphql-ws with the sockets of %s gets compressed events', async (_, webSocketImpl) => {
    const served = await serve(SHARED);
    const client = createClient({ url: served.url, webSocketImpl });
    const results = client.iterate<{ events: string }>({ query: EVENTS, variables: { topic: 'a' } });
    const texts = [story(1), 'short', story(2)];
    const first = results.next();
    await until(() => served.live.open === 1);
    for (const text of texts) served.live.publish('a', text);
    expect((await first).value?.data?.events).toBe(texts[0]);
    for (const text of texts.slice(1)) expect((await results.next()).value?.data?.events).toBe(text);
    await results.return?.();
    await client.dispose();
  });

  it('Chromium gets compressed events', async () => {
    const served = await serve(SHARED, (_req, res) => void res.end('<!doctype html>'));
    const browser = await launch();
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${served.port}/`);
    const extensions = await page.evaluate(`new Promise((resolve) => {
      globalThis.got = [];
      const socket = new WebSocket('${served.url}', '${MODERN}');
      socket.onopen = () => socket.send('{"type":"connection_init"}');
      socket.onmessage = ({ data }) => {
        const message = JSON.parse(data);
        if (message.type === 'next') got.push(message.payload.data.events);
        else if (message.type === 'connection_ack') {
          socket.send(${JSON.stringify(JSON.stringify(events('1')))});
          resolve(socket.extensions);
        }
      };
    })`);
    expect(extensions).toContain('permessage-deflate');
    await until(() => served.live.open === 1);
    const texts = [story(1), 'short', story(2)];
    for (const text of texts) served.live.publish('a', text);
    await page.waitForFunction('got.length === 3');
    expect(await page.evaluate('got')).toEqual(texts);
    await browser.close();
  });
});
