/** @tags node graphql engine */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { inject } from '../../middleware/testing.ts';
import type { ObservedOperation } from '../../src/execution/observed.ts';
import type { ExecuteFunction } from '../../types/graphql.ts';
import { incrementalSchema, V17 } from '../graphql/incremental-schema.ts';
import { atEnd, listen } from '../kit.ts';
import { until } from '../until.ts';
import { listen as listenForSockets, MODERN, ready } from './client.ts';
import { open, serve } from './serve-streams.ts';

interface Message {
  kind?: string;
  stream?: unknown;
  operation?: { source: string };
  origin?: { transport: string };
  payloads?: number;
  reason?: string;
  duration?: number;
}

const received: Message[] = [];
const listener = (message: unknown): void => void received.push(message as Message);
const CHANNELS = ['espalier:graphql:stream-start', 'espalier:graphql:stream-end'];

beforeEach(() => {
  received.splice(0);
  for (const name of CHANNELS) subscribe(name, listener);
});
afterEach(async () => {
  for (const name of CHANNELS) unsubscribe(name, listener);
});

/** Checks that exactly one stream was published, and returns its messages. */
async function oneStream(): Promise<{ start: Message; end: Message }> {
  await until(() => received.length === 2);
  const [start, end] = received as [Message, Message];
  expect(end.stream).toBe(start);
  expect(end.duration).toEqual(expect.any(Number));
  return { start, end };
}

describe('the diagnostics channels of streams', () => {
  it('the channels report a subscription over server-sent events with the number of its events', async () => {
    const { url } = await serve();
    const query = 'subscription { count(to: 3) }';
    const reading = await open(url, { params: { query }, headers: { accept: 'text/event-stream' } });
    await until(() => reading.ended);
    const { start, end } = await oneStream();
    expect(start).toMatchObject({
      kind: 'subscription',
      operation: { source: query },
      origin: { transport: 'http' },
    });
    expect(end).toMatchObject({ payloads: 3, reason: 'completed' });
  });

  it('the channels report a subscription whose client disconnects as cancelled', async () => {
    const { url, live } = await serve();
    const query = 'subscription { events(topic: "a") }';
    const reading = await open(url, { params: { query }, headers: { accept: 'text/event-stream' } });
    await until(() => live.open === 1);
    live.publish('a', 'one');
    await until(() => reading.body.includes('one'));
    reading.res.destroy();
    const { end } = await oneStream();
    expect(end).toMatchObject({ payloads: 1, reason: 'cancelled' });
  });

  it('the channels report the results of an engine function over a socket', async () => {
    async function* engine() {
      yield { data: { a: 1 } };
      yield { data: { a: 2 } };
      throw new Error('the source fails');
    }
    const options = { engine: engine as ExecuteFunction, onError: false } as const;
    const handler = graphqlHTTP(buildSchema('type Query { a: Int }'), options);
    const { server, url } = await listenForSockets((req, res) => handler(req, res));
    const subscriptions = attachSubscriptions(server, handler, { keepAlive: 0 });
    atEnd(async () => {
      await subscriptions.close();
      server.close();
    });
    const client = await ready(url, MODERN);
    client.send({ id: '1', type: 'subscribe', payload: { query: '{ a }' } });
    await client.until(({ type }) => type === 'error');
    const { start, end } = await oneStream();
    expect(start).toMatchObject({ kind: 'incremental', origin: { transport: 'websocket' } });
    expect(end).toMatchObject({ payloads: 2, reason: 'failed' });
    await client.close();
  });

  it('the channels report nothing for an operation with one result', async () => {
    const { url } = await serve();
    await fetch(`${url}?query={hello}`);
    expect(received).toEqual([]);
  });

  if (V17) {
    it('the channels report a deferred response with the number of its payloads', async () => {
      const { schema, calls } = incrementalSchema();
      const handler = graphqlHTTP(schema, { graphiql: false });
      const { url } = await listen((req, res) => handler(req, res), '/graphql');
      calls.release();
      const query = '{ hello ... @defer { slow } }';
      const reading = await open(url, { params: { query }, headers: { accept: 'application/jsonl' } });
      await until(() => reading.ended);
      const { start, end } = await oneStream();
      expect(start).toMatchObject({ kind: 'incremental', operation: { source: query } });
      expect(end).toMatchObject({ payloads: 2, reason: 'completed' });
    });

    it('an observed operation has the errors of its first payload', async () => {
      const messages: (readonly string[])[] = [];
      const observe = (message: unknown): void =>
        (message as ObservedOperation).observe({
          executing: () => ({
            ended: (result) => messages.push(result?.errors.map((error) => error.message) ?? []),
          }),
        });
      subscribe('espalier:graphql:operation', observe);
      try {
        const handler = graphqlHTTP(incrementalSchema().schema, { graphiql: false, onError: false });
        const response = await inject(handler, {
          query: '{ failing ... @defer { hello } }',
          headers: { accept: 'application/jsonl' },
        });
        expect(response.text).toContain('"hasNext":true');
        expect(messages).toEqual([['secret detail']]);
      } finally {
        unsubscribe('espalier:graphql:operation', observe);
      }
    });
  }
});
