/** @tags graphql engine */
import { once } from 'node:events';
import type * as http from 'node:http';
import type { Socket } from 'node:net';
import { buildSchema } from 'graphql';
import { createClient as createEventClient } from 'graphql-sse';
import { createClient as createSocketClient } from 'graphql-ws';
import WebSocket from 'ws';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import { listen } from '../kit.ts';
import { open, withParams } from '../live/serve-streams.ts';
import { until } from '../until.ts';
import { DIRECTIVES, incrementalSchema, V17 } from './incremental-schema.ts';
import { jsonLines } from './merge.ts';

const reported: unknown[] = [];

async function serve(options: GraphQLOptions = {}) {
  process.env['NODE_ENV'] = 'production';
  const { schema, calls } = incrementalSchema();
  const handler = graphqlHTTP(schema, {
    graphiql: false,
    onError: (error) => reported.push(error),
    ...options,
  });
  return { ...(await listen((req, res) => handler(req, res), '/graphql')), calls, handler };
}

/** Serves sockets too. */
async function serveLive() {
  const { server, handler, ...served } = await serve();
  return { ...served, server, subscriptions: attachSubscriptions(server, handler) };
}

afterEach(() => {
  reported.length = 0;
});

const MULTIPART = 'multipart/mixed;incrementalSpec=v0.2, application/json';
const LEGACY = 'multipart/mixed;deferSpec=20220824, application/json';
const DEFERRED = '{ hello ... @defer(label: "d") { slow } }';
const part = (payload: object): string =>
  `\r\nContent-Type: application/json; charset=utf-8\r\n\r\n${JSON.stringify(payload)}\r\n---`;

/** Reads the whole response; the payloads of multipart, event-stream and JSON-lines bodies. */
async function payloads(url: string, query: string, accept: string): Promise<unknown[]> {
  const reading = await open(url, { params: { query }, headers: { accept } });
  await until(() => reading.ended);
  return jsonLines(reading.body);
}

if (V17) describeIncremental();
else {
  describe('incremental delivery on graphql 16', () => {
    it('graphqlHTTP throws for incremental: true', () => {
      const { schema } = incrementalSchema();
      expect(() => graphqlHTTP(schema, { incremental: true })).toThrow(
        /"incremental".*graphql 16.*graphql 17/,
      );
    });

    it('graphqlHTTP sends one piece for a schema that declares the directives', async () => {
      const { url, calls } = await serve();
      calls.release();
      const reading = await open(url, { params: { query: DEFERRED }, headers: { accept: MULTIPART } });
      await until(() => reading.ended);
      expect(reading.body).toBe('{"data":{"hello":"world","slow":"slow"}}');
    });
  });
}

function describeIncremental(): void {
  describe('incremental delivery', () => {
    it('graphqlHTTP sends the initial payload before any deferred resolver starts', async () => {
      const { url, calls } = await serve();
      const reading = await open(url, { params: { query: DEFERRED }, headers: { accept: MULTIPART } });
      const initial = part({
        data: { hello: 'world' },
        pending: [{ id: '0', path: [], label: 'd' }],
        hasNext: true,
      });
      await until(() => reading.body === `---${initial}`);
      expect(reading.res.headers['content-type']).toBe('multipart/mixed; boundary="-"; incrementalSpec=v0.2');
      calls.release();
      await until(() => reading.ended);
      const last = part({
        hasNext: false,
        incremental: [{ id: '0', data: { slow: 'slow' } }],
        completed: [{ id: '0' }],
      });
      expect(reading.body).toBe(`---${initial}${last}--\r\n`);
    });

    it('the kernel has the initial payload when the first deferred resolver is called', async () => {
      const { url, calls } = await serve({ context: (req) => ({ socket: req.socket }) });
      const sent: unknown[] = [];
      calls.onSlow = (context) => {
        const { socket } = context as { socket: Socket };
        sent.push([socket.writableLength, socket.bytesWritten > 300]);
      };
      calls.release();
      await payloads(url, DEFERRED, MULTIPART);
      expect(sent).toEqual([[0, true]]);
    });

    it.each([
      ['multipart/mixed;deferSpec=20220824', 'multipart/mixed; boundary="-"; deferSpec=20220824', 'path'],
      [
        'multipart/mixed; incrementalSpec="v0.1"',
        'multipart/mixed; boundary="-"; incrementalSpec=v0.1',
        'path',
      ],
      ['multipart/mixed', 'multipart/mixed; boundary="-"', 'id'],
      ['text/event-stream', 'text/event-stream; charset=utf-8', 'id'],
      ['application/jsonl', 'application/jsonl; charset=utf-8', 'id'],
      ['application/json, text/event-stream', 'text/event-stream; charset=utf-8', 'id'],
      ['multipart/mixed;q=0.5, application/jsonl', 'application/jsonl; charset=utf-8', 'id'],
    ])('graphqlHTTP sends the payloads to Accept: %s', async (accept, contentType, key) => {
      const { url, calls } = await serve();
      calls.release();
      const reading = await open(url, { params: { query: DEFERRED }, headers: { accept } });
      await until(() => reading.ended);
      expect(reading.res.headers['content-type']).toBe(contentType);
      expect(reading.body).toContain(key === 'id' ? '"id":"0"' : '"path":[],"label":"d"');
      expect(reading.body).toContain('"slow":"slow"');
    });

    it('graphqlHTTP streams lists in the format of 2022 to clients that name no format', async () => {
      const { url } = await serve();
      const query = '{ list @stream(initialCount: 1) }';
      expect(await payloads(url, query, 'multipart/mixed')).toEqual([
        { data: { list: [1] }, hasNext: true },
        { incremental: [{ items: [2, 3], path: ['list', 1] }], hasNext: false },
      ]);
      const configured = await serve({ incremental: 'v0.2' });
      expect(await payloads(configured.url, query, 'multipart/mixed')).toEqual([
        { data: { list: [1] }, pending: [{ id: '0', path: ['list'] }], hasNext: true },
        { incremental: [{ id: '0', items: [2, 3] }], completed: [{ id: '0' }], hasNext: false },
      ]);
    });

    it.each([
      ['*/*'],
      ['application/json'],
      ['multipart/mixed;incrementalSpec=v9, application/json'],
      ['multipart/mixed;boundary=graphql;subscriptionSpec=1.0, application/json'],
      ['multipart/mixed;q=0, application/json'],
    ])('graphqlHTTP sends one piece to Accept: %s', async (accept) => {
      const { url, calls } = await serve();
      calls.release();
      const reading = await open(url, { params: { query: DEFERRED }, headers: { accept } });
      await until(() => reading.ended);
      expect(reading.body).toBe('{"data":{"hello":"world","slow":"slow"}}');
    });

    it('graphqlHTTP sends an ordinary response if all directives are disabled', async () => {
      const { url } = await serve();
      const query = '{ hello ... @defer(if: false) { node { name } } }';
      const reading = await open(url, { params: { query }, headers: { accept: MULTIPART } });
      await until(() => reading.ended);
      expect(reading.res.headers['content-type']).toBe('application/json; charset=utf-8');
      expect(reading.body).toBe('{"data":{"hello":"world","node":{"name":"n"}}}');
    });

    it('graphqlHTTP sends one piece with incremental: false, in a batch and over HEAD', async () => {
      const off = await serve({ incremental: false });
      off.calls.release();
      const whole = await open(off.url, { params: { query: DEFERRED }, headers: { accept: MULTIPART } });
      await until(() => whole.ended);
      expect(whole.body).toBe('{"data":{"hello":"world","slow":"slow"}}');
      const { url, calls } = await serve({ batching: true });
      calls.release();
      const batch = await open(url, { params: [{ query: DEFERRED }], headers: { accept: MULTIPART } });
      await until(() => batch.ended);
      expect(batch.body).toBe('[{"data":{"hello":"world","slow":"slow"}}]');
      calls.release();
      const head = await open(withParams(url, { query: DEFERRED }), {
        method: 'HEAD',
        headers: { accept: MULTIPART },
      });
      expect(head.res.headers['content-length']).toBe(
        String('{"data":{"hello":"world","slow":"slow"}}'.length),
      );
    });

    it.each([
      ['v0.2', MULTIPART],
      ['20220824', LEGACY],
    ])(
      'graphqlHTTP masks and reports unexpected errors of deferred parts in the format %s',
      async (_, accept) => {
        const { url } = await serve();
        const query = '{ hello ... @defer { failing expected } }';
        const [, deferred] = await payloads(url, query, accept);
        const text = JSON.stringify(deferred);
        expect(text).toContain('"message":"Internal server error"');
        expect(text).toContain('"message":"on purpose"');
        expect(text).not.toContain('secret');
        expect(reported).toEqual([new Error('secret detail')]);
      },
    );

    it('graphqlHTTP formats the errors that complete a part', async () => {
      const { url } = await serve({ formatError: (formatted) => ({ ...formatted, message: 'formatted' }) });
      const query = '{ node { name ... @defer { must } } }';
      const [, last] = await payloads(url, query, MULTIPART);
      expect(last).toMatchObject({ completed: [{ id: '0', errors: [{ message: 'formatted' }] }] });
    });

    it('the limits of documents count the fields of deferred parts', async () => {
      const { url } = await serve({ limits: { rootFields: 2 } });
      const query = '{ hello ... @defer { node { name } list } }';
      const reading = await open(url, { params: { query }, headers: { accept: MULTIPART } });
      await until(() => reading.ended);
      expect(reading.body).toContain('LIMIT_ROOT_FIELDS');
    });

    it('a response that other code has ended meanwhile returns the streamed generators', async () => {
      const warned = jest.spyOn(console, 'warn').mockImplementation();
      const { url, calls, server } = await serve();
      server.prependListener('request', (_req, res: http.ServerResponse) => {
        calls.onSlow = () => res.writeHead(503).end('late');
      });
      const params = { query: '{ slow items @stream(initialCount: 1) }' };
      const reading = await open(url, { params, headers: { accept: MULTIPART } });
      await until(() => reading.ended && calls.open === 1);
      for (let i = 0; i < 3; i++) calls.release();
      await until(() => calls.open === 0);
      expect([reading.status, reading.body, reported]).toEqual([503, 'late', []]);
      expect(warned).toHaveBeenCalledWith(expect.stringContaining('cannot send a result'));
      warned.mockRestore();
    });

    it('a client that disconnects aborts the deferred resolvers and returns the streamed generators', async () => {
      const { url, calls } = await serve();
      const query = '{ items @stream ... @defer { slow } }';
      const reading = await open(url, { params: { query }, headers: { accept: MULTIPART } });
      await until(() => calls.names.includes('slow') && calls.open === 1);
      reading.req.destroy();
      await until(() => calls.signal?.aborted === true);
      calls.release();
      calls.release();
      await until(() => calls.open === 0);
      expect(reported).toEqual([]);
    });

    it('a client that disconnects aborts the resolvers of a document with @defer', async () => {
      const { url, calls } = await serve();
      const reading = await open(url, { params: { query: DEFERRED }, headers: { accept: MULTIPART } });
      await until(() => calls.names.includes('slow'));
      expect(calls.signal?.aborted).toBe(false);
      reading.req.destroy();
      await until(() => calls.signal?.aborted === true);
      calls.release();
      expect(reported).toEqual([]);
    });

    it.each([0, 1, 2, 3])(
      'a client that disconnects after payload %d ends the streamed generator',
      async (count) => {
        const { url, calls } = await serve();
        const reading = await open(url, {
          params: { query: '{ items @stream }' },
          headers: { accept: 'application/jsonl' },
        });
        for (let seen = 0; seen < count; seen++) {
          calls.release();
          await until(() => jsonLines(reading.body).length > seen);
        }
        reading.req.destroy();
        // A suspended generator returns when the promise that it waits for settles.
        await until(() => {
          calls.release();
          return calls.open === 0 && calls.names.includes('items');
        });
        expect(reported).toEqual([]);
      },
    );

    it('clients of sockets and event streams get each payload as a message', async () => {
      const { url, calls, subscriptions } = await serveLive();
      const socket = createSocketClient({ url: url.replace('http', 'ws'), webSocketImpl: WebSocket });
      const events = createEventClient({ url, retryAttempts: 0 });
      for (const client of [socket, events]) {
        const results = client.iterate({ query: DEFERRED });
        expect(await results.next()).toMatchObject({
          value: { data: { hello: 'world' }, pending: [{ id: '0' }], hasNext: true },
        });
        calls.release();
        expect(await results.next()).toMatchObject({
          value: { incremental: [{ id: '0', data: { slow: 'slow' } }], hasNext: false },
        });
        expect(await results.next()).toMatchObject({ done: true });
      }
      await socket.dispose();
      events.dispose();
      await subscriptions.close();
    });

    it('server.close and close let a deferred response over HTTP finish', async () => {
      const { url, calls, server, subscriptions } = await serveLive();
      const headers = { accept: 'application/jsonl', connection: 'close' };
      const reading = await open(url, { params: { query: DEFERRED }, headers });
      await until(() => jsonLines(reading.body).length === 1);
      const closed = once(server, 'close');
      server.close();
      await subscriptions.close({ drain: 20 });
      expect(reading.ended).toBe(false);
      calls.release();
      await until(() => reading.ended);
      expect(jsonLines(reading.body).at(-1)).toMatchObject({ hasNext: false });
      await closed;
    });

    it('close() of attachSubscriptions ends deferred operations of sockets, and returns their generators', async () => {
      const { url, calls, subscriptions } = await serveLive();
      const socket = createSocketClient({
        url: url.replace('http', 'ws'),
        webSocketImpl: WebSocket,
        retryAttempts: 0,
      });
      const failures: unknown[] = [];
      const sink = { next: () => undefined, complete: () => undefined };
      socket.subscribe({ query: '{ items @stream }' }, { ...sink, error: (error) => failures.push(error) });
      await until(() => calls.open === 1);
      expect(subscriptions.stats()).toMatchObject({ operations: 1, sources: 1 });
      await subscriptions.close({ drain: 20 });
      // A suspended generator returns when the promise that it waits for settles.
      calls.release();
      await until(() => calls.open === 0 && failures.length === 1);
      expect(subscriptions.stats()).toMatchObject({ operations: 0, sources: 0, unreleased: 0 });
      await socket.dispose();
    });

    it('graphqlHTTP runs a deferred mutation once', async () => {
      const { url, calls } = await serve();
      const seen = await payloads(url, 'mutation { set { name ... @defer { node { name } } } }', MULTIPART);
      expect(seen).toHaveLength(2);
      expect(calls.names).toEqual(['set', 'node']);
    });

    it('onOperation adds its extensions to the initial payload', async () => {
      const { url, calls } = await serve({ onOperation: () => ({ extensions: { cost: 1 } }) });
      calls.release();
      const [first] = await payloads(url, DEFERRED, MULTIPART);
      expect(first).toMatchObject({ data: { hello: 'world' }, extensions: { cost: 1 }, hasNext: true });
    });

    it('graphqlHTTP throws for incremental: true without the directives, or with an engine function', () => {
      const schema = buildSchema('type Query { a: Int }');
      expect(() => graphqlHTTP(schema, { incremental: true })).toThrow('GraphQLDeferDirective');
      const declared = buildSchema(`${DIRECTIVES} type Query { a: Int }`);
      const engine = () => ({ data: {} });
      expect(() => graphqlHTTP(declared, { incremental: true, engine })).toThrow('"engine"');
    });
  });
}
