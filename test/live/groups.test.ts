/** @tags node graphql */
import { connect, LEGACY, MODERN, type RawClient, ready } from './client.ts';
import { connectClients, EVENTS, events, received, sharedByAll } from './connect-clients.ts';
import { serve, until } from './serve.ts';

describe('shared subscriptions', () => {
  it('shared subscriptions have one source and one execution, and keep their ids, in both subprotocols', async () => {
    const served = await serve(sharedByAll);
    const clients = await connectClients(served, 20);
    const legacy = await ready(served.url, LEGACY);
    legacy.send(events('l', 'a', 'start'));
    await until(() => served.subscriptions.stats().operations === 21);
    expect(served.subscriptions.stats()).toMatchObject({ groups: 1, sources: 1 });
    for (let i = 0; i < 50; i++) served.live.publish('a', `event ${i} ü`);
    const all = Array.from({ length: 50 }, (_, i) => `event ${i} ü`);
    for (const [index, client] of clients.entries()) {
      await until(() => client.received.length === 51);
      expect(received(client, `client ${index}`)).toEqual(all);
    }
    await until(() => legacy.received.length === 51);
    expect(received(legacy, 'l')).toEqual(all);
    expect(served.live.calls).toEqual({ 'subscribe events': 1, events: 50 });
  });

  it.each([
    ['no key', {}, 2],
    ['undefined', { share: () => undefined }, 2],
    ['null', { share: () => null }, 2],
    ['one key', { share: () => 1 }, 1],
    [
      'keys of each user',
      { share: (context: { connection_params: { user: string } }) => context.connection_params.user },
      2,
    ],
  ])('subscriptions are shared by key: %s', async (_, options, sources) => {
    const served = await serve(options);
    for (const user of ['ann', 'bob']) (await ready(served.url, MODERN, { user })).send(events('1'));
    await until(() => served.live.opened === sources && served.subscriptions.stats().operations === 2);
    expect(served.live.open).toBe(sources);
  });

  it.each([
    ['other variables', { variables: { topic: 'b' } }, 2],
    [
      'another order of variables',
      {
        query: 'subscription($topic: String!, $x: Boolean!) { events(topic: $topic, tag: $x) }',
        variables: { x: true, topic: 'a' },
      },
      2,
    ],
    ['another text', { query: `${EVENTS} ` }, 2],
    ['an operation name', { query: EVENTS.replace('subscription', 'subscription A'), operationName: 'A' }, 2],
    ['the same', {}, 1],
  ])('subscriptions with a difference are not shared: %s', async (_, more, sources) => {
    const served = await serve(sharedByAll);
    const client = await ready(served.url);
    client.send(events('1'));
    client.send({
      id: '2',
      type: 'subscribe',
      payload: { query: EVENTS, variables: { topic: 'a' }, ...more },
    });
    await until(() => served.subscriptions.stats().operations === 2 && served.live.open === sources);
    expect(served.live.opened).toBe(sources);
  });

  it('a variable beyond the range of numbers is not taken for null', async () => {
    const served = await serve(sharedByAll);
    const client = await ready(served.url);
    const query = 'subscription($topic: String!, $tag: Boolean) { events(topic: $topic, tag: $tag) }';
    const subscribe = (id: string, tag: string): void =>
      client.send(
        `{"id":"${id}","type":"subscribe","payload":{"query":"${query}","variables":{"topic":"a","tag":${tag}}}}`,
      );
    subscribe('1', 'null');
    await until(() => served.live.open === 1);
    subscribe('2', '1e400');
    expect(await client.next()).toMatchObject({
      id: '2',
      type: 'error',
      payload: [{ message: expect.stringContaining('"$tag"') }],
    });
  });

  it('shared subscriptions may have their variables in another order', async () => {
    const served = await serve(sharedByAll);
    const query = 'subscription($topic: String!, $x: Boolean!) { events(topic: $topic, tag: $x) }';
    const client = await ready(served.url);
    client.send({ id: '1', type: 'subscribe', payload: { query, variables: { topic: 'a', x: true } } });
    client.send({ id: '2', type: 'subscribe', payload: { query, variables: { x: true, topic: 'a' } } });
    await until(() => served.subscriptions.stats().operations === 2 && served.live.open === 1);
    expect(served.subscriptions.stats().groups).toBe(1);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('secret');
      },
    ],
    ['returns an object', () => ({})],
    ['returns NaN', () => Number('a user id')],
    ['returns Infinity', () => Number.POSITIVE_INFINITY],
  ])('a subscription fails alone when the share function %s', async (_, share) => {
    const served = await serve({ share: share as never });
    const client = await ready(served.url);
    client.send(events('1'));
    expect(await client.next()).toMatchObject({
      id: '1',
      type: 'error',
      payload: [{ message: 'Internal server error' }],
    });
    client.send({ id: '2', type: 'subscribe', payload: { query: '{ hello }' } });
    expect(await client.next()).toMatchObject({ id: '2', type: 'next' });
  });

  it('shared subscriptions continue when the first member leaves, and new members join the stream', async () => {
    const served = await serve(sharedByAll);
    const [first, second] = (await connectClients(served, 2)) as [RawClient, RawClient];
    served.live.publish('a', 1);
    await second.next();
    first.websocket.terminate();
    await until(() => served.subscriptions.stats().operations === 1);
    const third = await ready(served.url);
    third.send(events('third'));
    await until(() => served.subscriptions.stats().operations === 2);
    served.live.publish('a', 2);
    await third.next();
    expect(received(third, 'third')).toEqual(['2']);
    await until(() => received(second, 'client 1').length === 2);
    expect(received(second, 'client 1')).toEqual(['1', '2']);
  });

  it('shared subscriptions lose no event while other members join and leave', async () => {
    const served = await serve(sharedByAll);
    const [stays] = (await connectClients(served, 1)) as [RawClient];
    for (let i = 0; i < 40; i++) {
      const passing = await ready(served.url);
      passing.send(events('passing'));
      served.live.publish('a', i);
      if (i % 2 === 0) passing.send({ id: 'passing', type: 'complete' });
      else passing.websocket.terminate();
    }
    await until(() => received(stays, 'client 0').length === 40);
    expect(received(stays, 'client 0')).toEqual(Array.from({ length: 40 }, (_, i) => String(i)));
    expect(served.live.opened).toBe(1);
  });

  it('shared subscriptions keep their source for a second after the last member has left, then return it', async () => {
    const served = await serve(sharedByAll);
    const [first] = (await connectClients(served, 1)) as [RawClient];
    first.websocket.terminate();
    await until(() => served.subscriptions.stats().connections === 0);
    expect(served.live.open).toBe(1);
    const back = await ready(served.url);
    back.send(events('back'));
    await until(() => served.subscriptions.stats().operations === 1);
    served.live.publish('a', 'still the same source');
    await back.next();
    expect(served.live.opened).toBe(1);
    await back.close();
    await until(() => served.live.open === 0);
    expect(served.subscriptions.stats()).toMatchObject({ groups: 0, sources: 0, unreleased: 0 });
  });

  it.each([
    ['complete', undefined],
    ['error', new Error('secret')],
  ])(
    'shared subscriptions end together with %s after their last events, and a new one opens a new source',
    async (type, error) => {
      const served = await serve(sharedByAll);
      const clients = await connectClients(served, 5);
      served.live.publish('a', 'last');
      await new Promise(setImmediate);
      served.live.end('a', error);
      for (const client of clients) {
        const messages = await client.until((message) => message['type'] === type);
        expect(messages.map((message) => message['type'])).toEqual(['next', type]);
        expect(JSON.stringify(messages)).not.toContain('secret');
      }
      expect(served.subscriptions.stats()).toMatchObject({ groups: 0, operations: 0 });
      clients[0]?.send(events('client 0'));
      await until(() => served.live.opened === 2);
    },
  );

  it('shared subscriptions all get the error when the source cannot be opened', async () => {
    const served = await serve(sharedByAll);
    const clients = await Promise.all([ready(served.url), ready(served.url)]);
    const message = { id: '1', type: 'subscribe', payload: { query: 'subscription { broken }' } };
    for (const client of clients) client.send(message);
    for (const client of clients) expect(await client.next()).toMatchObject({ type: 'error' });
    expect(served.subscriptions.stats().groups).toBe(0);
  });

  it('a socket keeps the order of shared, private and protocol messages', async () => {
    const served = await serve({
      ...sharedByAll,
      share: (_: never, { variables }) => (variables?.['topic'] === 'shared' ? 'all' : null),
    });
    const client = await ready(served.url);
    for (const topic of ['shared', 'private']) client.send(events(topic, topic));
    client.send(events('shared too', 'shared'));
    await until(() => served.live.open === 2 && served.subscriptions.stats().operations === 3);
    for (let i = 0; i < 60; i++) {
      served.live.publish('shared', i);
      served.live.publish('private', i);
      if (i % 7 === 0) client.send({ type: 'ping', payload: { i } });
      if (i % 5 === 0) client.send({ id: `q${i}`, type: 'subscribe', payload: { query: '{ hello }' } });
      if (i % 11 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    }
    served.live.end('private');
    const numbers = Array.from({ length: 60 }, (_, i) => String(i));
    await until(
      () => received(client, 'shared').length === 60 && received(client, 'shared too').length === 60,
    );
    await client.silence();
    for (const id of ['shared', 'private', 'shared too']) expect(received(client, id)).toEqual(numbers);
    const pongs = client.received.filter(({ type }) => type === 'pong');
    expect(pongs.map(({ payload }) => (payload as { i: number }).i)).toEqual([
      0, 7, 14, 21, 28, 35, 42, 49, 56,
    ]);
    const last = client.received.findLastIndex(({ id, type }) => id === 'private' && type === 'next');
    const complete = client.received.findIndex(({ id, type }) => id === 'private' && type === 'complete');
    expect(complete).toBeGreaterThan(last);
    for (let i = 0; i < 60; i += 5) {
      expect(client.received.filter(({ id }) => id === `q${i}`).map(({ type }) => type)).toEqual([
        'next',
        'complete',
      ]);
    }
  });

  it.each([[false], [true]])(
    'shared events of every frame size arrive complete, compressed: %s',
    async (perMessageDeflate) => {
      const served = await serve({
        ...sharedByAll,
        perMessageDeflate: perMessageDeflate ? 'shared' : false,
        limits: { bufferedBytes: 8 * 1024 * 1024 },
      });
      const client = await connect(served.url, MODERN, { perMessageDeflate });
      expect(client.websocket.extensions).toBe(perMessageDeflate ? 'permessage-deflate' : '');
      client.send({ type: 'connection_init' });
      await client.next();
      client.send(events('1'));
      client.send(events('2'));
      await until(() => served.live.open === 1 && served.subscriptions.stats().operations === 2);
      const sizes = [
        0, 1, 30, 50, 51, 52, 53, 60, 100, 4000, 4096, 5000, 65_400, 65_500, 65_535, 70_000, 300_000,
      ];
      const values = sizes.map((size) => 'ü'.repeat(size >> 1).padEnd(size, 'x'));
      for (const value of values) served.live.publish('a', value);
      await until(() => received(client, '2').length === values.length);
      expect(received(client, '1')).toEqual(values);
      expect(received(client, '2')).toEqual(values);
    },
  );
});

describe('coalesced writes', () => {
  it('a burst for one socket is sent in one write', async () => {
    const served = await serve(sharedByAll);
    const [client] = (await connectClients(served, 1)) as [RawClient];
    client.send(events('second', 'b'));
    await until(() => served.live.open === 2);
    const raw = (client.websocket as unknown as { _socket: NodeJS.EventEmitter })._socket;
    let packets = 0;
    raw.on('data', () => packets++);
    for (let i = 0; i < 8; i++) {
      served.live.publish('a', i);
      served.live.publish('b', i);
    }
    await until(() => client.received.length === 17);
    expect(packets).toBe(1);
  });
});
