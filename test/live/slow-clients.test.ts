/** @tags node graphql slow */
import type net from 'node:net';
import type { RawClient } from './client.ts';
import { ready } from './client.ts';
import { connectClients, events, received, sharedByAll } from './connect-clients.ts';
import { serve, until } from './serve.ts';

describe('slow clients', () => {
  const MIB = 1024 * 1024;
  /** Stops reading from the socket. */
  const stall = (client: RawClient): void => client.websocket.pause();

  it('a slow client is closed with 1013 at the limit, and others lose nothing', async () => {
    const served = await serve({ ...sharedByAll, limits: { bufferedBytes: MIB } });
    const clients = await connectClients(served, 4);
    const [slow, ...good] = clients as [RawClient, ...RawClient[]];
    stall(slow);
    const blob = 'x'.repeat(256 * 1024);
    let sent = 0;
    while (served.subscriptions.stats().operations === 4) {
      served.live.publish('a', `${sent++}${blob}`);
      await until(() => good.every((client) => client.received.length === sent + 1));
    }
    expect(sent).toBeLessThan(200);
    slow.websocket.resume();
    expect(await slow.closed).toEqual({ code: 1013, reason: 'Too slow a reader' });
    for (const [index, client] of good.entries()) {
      expect(
        received(client, `client ${index + 1}`).map((text) => Number.parseInt(text as string, 10)),
      ).toEqual(Array.from({ length: sent }, (_, i) => i));
    }
  });

  it('a slow client that does not read the close frame is terminated after a second', async () => {
    const served = await serve(sharedByAll);
    const [slow, good] = (await connectClients(served, 2)) as [RawClient, RawClient];
    stall(slow);
    const blob = 'x'.repeat(256 * 1024);
    for (let sent = 0; served.subscriptions.stats().operations === 2; sent++) {
      served.live.publish('a', blob);
      await until(() => good.received.length === sent + 2);
    }
    await until(() => served.subscriptions.stats().connections === 1);
    served.live.publish('a', 'continues');
    await until(() => received(good, 'client 1').at(-1) === 'continues');
  });

  it('a slow client pauses its private source and loses nothing when it continues', async () => {
    const served = await serve({ ping: false, limits: { bufferedBytes: MIB } });
    const client = await ready(served.url);
    stall(client);
    client.send({
      id: 'b',
      type: 'subscribe',
      payload: { query: 'subscription { blobs(count: 200, bytes: 65536) }' },
    });
    await until(() => served.live.open === 1);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(served.live.open).toBe(1);
    expect(served.live.calls['blobs']).toBeLessThan(200);
    client.websocket.resume();
    const messages = await client.until(({ type }) => type === 'complete');
    expect(messages).toHaveLength(201);
  });

  it('a slow client that closes and reads again does not let its source run without end', async () => {
    const served = await serve({ ping: false, limits: { bufferedBytes: MIB } });
    const client = await ready(served.url);
    stall(client);
    const query = 'subscription { blobs(count: 100000, bytes: 10000) }';
    client.send({ id: 'b', type: 'subscribe', payload: { query } });
    await until(() => served.live.open === 1);
    await new Promise((resolve) => setTimeout(resolve, 100));
    // Only the close frame: with `complete` the operation would end first.
    client.websocket.close(1000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    client.websocket.resume();
    await until(() => served.live.open === 0);
    expect(served.live.calls['blobs']).toBeLessThan(5000);
  });

  it.each([
    ['private', {}],
    ['shared', { share: () => 'all' }],
  ])('a source that is always ready does not block the event loop: %s', async (_, options) => {
    const served = await serve({ ping: false, ...options });
    const client = await ready(served.url);
    let most = 0;
    let before = 0;
    let isSampling = true;
    const sample = (): void => {
      const now = served.live.calls['count'] ?? 0;
      most = Math.max(most, now - before);
      before = now;
      if (isSampling) setImmediate(sample);
    };
    setImmediate(sample);
    client.send({ id: '1', type: 'subscribe', payload: { query: 'subscription { count(to: 5000) }' } });
    const messages = await client.until(({ type }) => type === 'complete');
    isSampling = false;
    expect(messages).toHaveLength(5001);
    expect(most).toBeLessThan(250);
  });

  it('a shared source that is always ready does not block the event loop after its last client has disconnected', async () => {
    const served = await serve(sharedByAll);
    const client = await ready(served.url);
    client.send({ id: '1', type: 'subscribe', payload: { query: 'subscription { count(to: 1000000) }' } });
    await client.until(({ type }) => type === 'next');
    client.send({ id: '1', type: 'complete' });
    await until(() => served.subscriptions.stats().operations === 0);
    expect(served.live.open).toBe(1);
    await until(() => served.live.open === 0);
  });

  it.each([
    ['TCP', false],
    ['TLS', true],
  ])(
    'stalled clients of private subscriptions are closed with little memory and do not affect fast and steady clients: %s',
    async (_, secure) => {
      const served = await serve({ ping: false }, undefined, secure);
      const sockets: net.Socket[] = [];
      served.server.on('upgrade', (_req, socket) => sockets.push(socket as net.Socket));
      const clients = await connectClients(served, 5);
      const [good, steady, ...stalled] = clients as [RawClient, RawClient, ...RawClient[]];
      for (const client of stalled) stall(client);
      let total = 4;
      steady.websocket.on('message', () => {
        if (steady.received.length % total !== 0) return;
        stall(steady);
        setTimeout(() => steady.websocket.resume(), 150);
      });
      const event = 'x'.repeat(60 * 1024);
      for (let sent = 0; sent < 400; sent++) {
        served.live.publish('a', event);
        await until(() => received(good, 'client 0').length === sent + 1);
      }
      // Bytes executed for the stalled clients, without those that the kernel has taken.
      const executed = (served.live.calls['events'] as number) - 400;
      const taken = sockets.slice(1).reduce((sum, raw) => sum + raw.bytesWritten - raw.writableLength, 0);
      if (!secure) expect(executed * event.length - taken).toBeLessThan(4 * (64 + 2 * 60) * 1024);
      expect(executed).toBeLessThan(4 * 400);

      await until(() => served.subscriptions.stats().connections === 2);
      expect(served.subscriptions.stats()).toMatchObject({ operations: 2, sources: 2, unreleased: 0 });
      expect(sockets.filter(({ destroyed }) => destroyed)).toHaveLength(3);
      total = Number.POSITIVE_INFINITY;
      await until(() => received(steady, 'client 1').length === 400);
    },
    30_000,
  );

  it.each([
    ['TCP', false, false],
    ['TLS', true, false],
    ['compression', false, true],
  ] as const)('slow clients of long private results get their own bytes: %s', async (_, secure, deflated) => {
    const served = await serve({ ping: false, perMessageDeflate: deflated && 'shared' }, undefined, secure);
    const clients = await Promise.all(Array.from({ length: 6 }, () => ready(served.url)));
    for (const [index, client] of clients.entries()) {
      client.send(events('own', `topic ${index}`));
      client.send(events('all'));
      if (index % 2 === 0) stall(client);
    }
    await until(() => served.live.open === 12);
    const texts = Array.from({ length: 60 }, (_, i) =>
      `${i} ${i % 3 === 0 ? 'é' : 'e'} `.repeat(5000 + ((i * 7919) % 9000)),
    );
    for (const [sent, text] of texts.entries()) {
      for (const index of clients.keys()) served.live.publish(`topic ${index}`, `${index} ${text}`);
      served.live.publish('a', text);
      await until(() => received(clients[1] as RawClient, 'all').length === sent + 1);
    }
    for (const client of clients) client.websocket.resume();
    for (const [index, client] of clients.entries()) {
      await until(() => client.received.length === 1 + 2 * texts.length);
      expect(received(client, 'all')).toEqual(texts);
      expect(received(client, 'own')).toEqual(texts.map((text) => `${index} ${text}`));
    }
  });

  it('a client that sends pings without reading is closed at the limit', async () => {
    const served = await serve({ ping: false, limits: { bufferedBytes: MIB } });
    const client = await ready(served.url);
    stall(client);
    const payload = { x: 'x'.repeat(512 * 1024) };
    for (let i = 0; i < 60; i++) client.send({ type: 'ping', payload });
    await until(
      () => served.subscriptions.stats().connections === 0 || client.websocket.bufferedAmount === 0,
    );
    client.websocket.resume();
    // 1013 if it reads in time, 1006 if not.
    expect([1013, 1006]).toContain((await client.closed).code);
  });

  it('one event above limits.bufferedBytes does not close the client', async () => {
    const served = await serve({ ...sharedByAll, limits: { bufferedBytes: 1024 } });
    const [client] = (await connectClients(served, 1)) as [RawClient];
    served.live.publish('a', 'x'.repeat(3 * MIB));
    await client.next();
    served.live.publish('a', 'next');
    await client.next();
    expect(received(client, 'client 0')).toHaveLength(2);
  });
});
