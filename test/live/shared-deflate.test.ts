/** @tags node-lines graphql */
import { randomBytes } from 'node:crypto';
import { createClient } from 'graphql-ws';
import { WebSocket as UndiciSocket } from 'undici';
import WebSocket from 'ws';
import { launch } from '../chromium.ts';
import { connect, LEGACY, MODERN, ready } from './client.ts';
import { EVENTS, events, received, sharedByAll } from './connect-clients.ts';
import { FIN, inflate, Peer, RSV1 } from './deflate-peer.ts';
import { serve, until } from './serve.ts';
import { TEXT } from './wire.ts';

jest.setTimeout(60_000);

const SHARED = { ...sharedByAll, perMessageDeflate: 'shared' } as const;
const story = (index: number): string => `event ${index} `.repeat(200);

describe("perMessageDeflate: 'shared'", () => {
  it('a shared event is compressed once: the frames of sockets differ only in the id of the operation', async () => {
    const served = await serve(SHARED);
    const [first, other] = [
      await Peer.ready(served.port, 'permessage-deflate'),
      await Peer.ready(served.port, 'permessage-deflate'),
    ];
    first.sendPlain(JSON.stringify(events('first')));
    other.sendPlain(JSON.stringify(events('other')));
    await until(() => served.subscriptions.stats().operations === 2);
    served.live.publish('a', story(1));
    const frames = [await first.frame(), await other.frame()] as const;
    for (const [index, { first: bits, payload }] of frames.entries()) {
      expect(bits).toBe(FIN | RSV1 | TEXT);
      expect(JSON.parse(inflate(payload))).toEqual({
        id: index === 0 ? 'first' : 'other',
        type: 'next',
        payload: { data: { events: story(1) } },
      });
      expect(payload.length).toBeLessThan(200);
    }
    const [one, two] = frames.map(({ payload }) => payload.toString('latin1'));
    expect(one?.replace('first', 'other')).toBe(two);
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
    const all = () => [received(plain, '1'), received(deflated, '2'), received(legacy, '3')];
    await until(() => all().every(({ length }) => length === texts.length));
    expect(received(plain, '1')).toEqual(texts);
    expect(received(deflated, '2')).toEqual(texts);
    expect(received(legacy, '3')).toEqual(texts);
  });

  it('private results of every size arrive complete, compressed from a kibibyte on', async () => {
    const served = await serve({
      ping: false,
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
