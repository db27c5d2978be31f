/** @tags graphql */
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { LEGACY, MODERN, ready } from '../live/client.ts';
import { EVENTS, open, type Served, serve, withParams } from '../live/serve-streams.ts';
import { until } from '../until.ts';
import { sha256 } from './by-id-service.ts';

const HELLO = '{ hello }';
const LIVE = 'subscription { events(topic: "a") }';
const from = { hello: HELLO, live: LIVE };

const START = { [MODERN]: 'subscribe', [LEGACY]: 'start' };
const RESULT = { [MODERN]: 'next', [LEGACY]: 'data' };

const socketOf = ({ url }: Served): string => url.replace('http', 'ws');

describe.each([MODERN, LEGACY] as const)('documents by id over the subprotocol %s', (protocol) => {
  it('an operation names its document by documentId, id, doc_id or persistedQuery', async () => {
    const served = await serve({ documents: { from: { ...from, [sha256(HELLO)]: HELLO } } });
    const client = await ready(socketOf(served), protocol);
    for (const [index, payload] of [
      { documentId: 'hello' },
      { id: 'hello', query: null },
      { doc_id: 'hello', query: '' },
      { extensions: { persistedQuery: { version: 1, sha256Hash: sha256(HELLO) } } },
      // The recipe of graphql-ws.
      { query: '', extensions: { persistedQuery: 'hello' } },
      { documentId: `sha256:${sha256(HELLO)}` },
    ].entries()) {
      client.send({ id: `${index}`, type: START[protocol], payload });
      const messages = await client.until(({ type }) => type === 'complete' || type === 'error');
      expect(messages.find(({ type }) => type === RESULT[protocol])).toEqual({
        id: `${index}`,
        type: RESULT[protocol],
        payload: { data: { hello: 'Hello world' } },
      });
    }
    await client.close();
  });

  it('a subscription by id gets events, and shares its execution with the same subscription by text', async () => {
    const served = await serve({ documents: { from } }, { attach: { share: () => 1 } });
    const client = await ready(socketOf(served), protocol);
    client.send({ id: '1', type: START[protocol], payload: { documentId: 'live' } });
    client.send({ id: '2', type: START[protocol], payload: { query: LIVE } });
    await until(() => served.subscriptions.stats().operations === 2 && served.live.open === 1);
    expect(served.subscriptions.stats().groups).toBe(1);
    served.live.publish('a', 'one');
    for (const id of ['1', '2']) {
      await until(() =>
        client.received.some((message) => message['id'] === id && message['type'] === RESULT[protocol]),
      );
    }
    await client.close();
    await until(() => served.live.open === 0);
  });

  it('the option only refuses other documents, also by a function of the WebSocket', async () => {
    const served = await serve({
      documents: { from, only: (source) => source.headers['x-staff'] !== '1' },
    });
    const client = await ready(socketOf(served), protocol);
    const codes = async (payload: object): Promise<string> => {
      client.send({ id: 'x', type: START[protocol], payload });
      return JSON.stringify(await client.until(({ type }) => type === 'complete' || type === 'error'));
    };
    expect(await codes({ query: HELLO })).toContain('DOCUMENT_NOT_TRUSTED');
    expect(await codes({ documentId: 'unknown' })).toContain('DOCUMENT_NOT_FOUND');
    expect(await codes({ documentId: 7 })).toContain('must be a string');
    expect(await codes({ documentId: 'hello' })).toContain('Hello world');
    await client.close();
  });

  it("only: 'report' executes other documents and reports their WebSocket", async () => {
    const sockets: unknown[] = [];
    const served = await serve({
      documents: { from, only: 'report' },
      onError: (_error, { transport, socket }) => void sockets.push([transport, socket !== undefined]),
    });
    const client = await ready(socketOf(served), protocol);
    for (let count = 0; count < 2; count += 1) {
      client.send({ id: 'x', type: START[protocol], payload: { query: HELLO } });
      const received = JSON.stringify(
        await client.until(({ type }) => type === 'complete' || type === 'error'),
      );
      expect(received).toContain('Hello world');
    }
    expect(sockets).toEqual([['websocket', true]]);
    await client.close();
  });

  it('an operation is registered and found by automatic persisted queries', async () => {
    const served = await serve({ documents: { apq: true } });
    const client = await ready(socketOf(served), protocol);
    const extensions = { persistedQuery: { version: 1, sha256Hash: sha256(HELLO) } };
    const send = async (payload: object): Promise<string> => {
      client.send({ id: 'x', type: START[protocol], payload });
      return JSON.stringify(await client.until(({ type }) => type === 'complete' || type === 'error'));
    };
    expect(await send({ extensions })).toContain('"message":"PersistedQueryNotFound"');
    expect(await send({ query: `${HELLO} `, extensions })).toContain('PERSISTED_QUERY_HASH_MISMATCH');
    expect(await send({ query: HELLO, extensions })).toContain('Hello world');
    expect(await send({ extensions })).toContain('Hello world');
    await client.close();
  });
});

it('operations whose documents a function finds asynchronously start in order', async () => {
  let release: () => void = () => undefined;
  const found = new Promise<string>((resolve) => {
    release = () => resolve(HELLO);
  });
  const served = await serve({ documents: { from: () => found } });
  const client = await ready(socketOf(served));
  client.send({ id: '1', type: 'subscribe', payload: { documentId: 'a' } });
  client.send({ id: '2', type: 'subscribe', payload: { query: '{ later: hello }' } });
  expect(await client.silence()).toEqual([]);
  release();
  const messages = await client.until(({ id, type }) => id === '2' && type === 'next');
  expect(messages.filter(({ type }) => type === 'next').map(({ id }) => id)).toEqual(['1', '2']);
  await client.close();
});

it('a WebSocket without the option closes with 4400 for an operation without a query', async () => {
  const served = await serve();
  const client = await ready(socketOf(served));
  client.send({ id: '1', type: 'subscribe', payload: { documentId: 'hello' } });
  expect(await client.closed).toMatchObject({ code: 4400 });
});

it.each([MODERN, LEGACY] as const)(
  'a %s socket without the option answers a hash of Apollo clients as HTTP does, and runs the text',
  async (protocol) => {
    const served = await serve();
    const client = await ready(socketOf(served), protocol);
    const extensions = { persistedQuery: { version: 1, sha256Hash: sha256(HELLO) } };
    const over = await open(served.url, { params: { extensions } });
    await until(() => over.ended);
    for (const query of [undefined, null, '']) {
      client.send({ id: '1', type: START[protocol], payload: { query, extensions } });
      const messages = await client.until(({ type }) => type === 'error');
      expect([messages.at(-1)?.['payload']].flat()).toEqual(JSON.parse(over.body).errors);
    }
    expect(over.body).toContain('"PERSISTED_QUERY_NOT_SUPPORTED"');
    client.send({ id: '1', type: START[protocol], payload: { query: HELLO, extensions } });
    const messages = await client.until(({ type }) => type === 'complete');
    expect(JSON.stringify(messages)).toContain('Hello world');
    await client.close();
  },
);

it('the client of graphql-ws subscribes with an id in its extensions', async () => {
  const served = await serve({ documents: { from } });
  const client = createClient({ url: socketOf(served), webSocketImpl: WebSocket });
  const results = [];
  const extensions = { persistedQuery: { version: 1, sha256Hash: 'hello' } };
  for await (const result of client.iterate({ query: '', extensions })) results.push(result.data);
  expect(results).toEqual([{ hello: 'Hello world' }]);
  await client.dispose();
});

describe('documents by id over server-sent events', () => {
  it('a subscription by id is streamed in distinct connection mode', async () => {
    const served = await serve({ documents: { from, only: true } });
    for (const url of [withParams(served.url, { documentId: 'live' }), `${served.url}/live`]) {
      const stream = await open(url, { headers: EVENTS });
      await until(() => served.live.open === 1);
      served.live.publish('a', 'one');
      await until(() => stream.body.includes('"events":"one"'));
      stream.req.destroy();
      await until(() => served.live.open === 0);
    }
    const refused = await open(served.url, { params: { query: LIVE }, headers: EVENTS });
    await until(() => refused.ended);
    expect(refused.body).toContain('DOCUMENT_NOT_TRUSTED');
  });
});
