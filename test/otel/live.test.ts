/** @tags graphql */
import { SpanStatusCode } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { buildSchema } from 'graphql';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { connect, LEGACY, listen, MODERN, ready } from '../live/client.ts';
import { events } from '../live/connect-clients.ts';
import { serve, until } from '../live/serve.ts';
import * as streaming from '../live/serve-streams.ts';
import { open, EVENTS as SSE } from '../live/serve-streams.ts';
import {
  activeSpan,
  idOf,
  kindOf,
  PHASES,
  parentOf,
  REMOTE_SPAN,
  REMOTE_TRACE,
  TestTelemetry,
  TRACEPARENT,
} from './telemetry.ts';

let telemetry: TestTelemetry;
beforeEach(() => {
  telemetry = new TestTelemetry(PHASES);
});
afterEach(async () => {
  await telemetry.stop();
});

const EVENT = 'GraphQL Subscription Event';
const traceOf = (span: ReadableSpan | undefined): string | undefined => span?.spanContext().traceId;
const linksOf = (span: ReadableSpan | undefined): string[] =>
  span?.links.map(({ context }) => context.spanId) ?? [];

describe.each([
  [MODERN, 'subscribe', 'next'],
  [LEGACY, 'start', 'data'],
])('over %s', (protocol, start, result) => {
  const other = '4bf92f3577b34da6a3ce929d0e0e4736';

  it(`operations over ${protocol} get the trace context of connection_init, and their own extensions have priority`, async () => {
    const { url } = await serve();
    const client = await ready(url, protocol, { traceparent: TRACEPARENT });
    const query = '{ hello }';
    client.send({ id: '1', type: start, payload: { query } });
    await telemetry.wait('query', 1);
    const extensions = { traceparent: `00-${other}-00f067aa0ba902b7-01` };
    client.send({ id: '2', type: start, payload: { query, extensions } });
    const [first, second] = await telemetry.wait('query', 2);
    expect([traceOf(first), parentOf(first), kindOf(first)]).toEqual([REMOTE_TRACE, REMOTE_SPAN, 'SERVER']);
    expect(traceOf(second)).toBe(other);
    await client.close();
  });

  it(`operations over ${protocol} get the trace context of the upgrade request`, async () => {
    const { url } = await serve();
    const client = await connect(url, protocol, { headers: { traceparent: TRACEPARENT } });
    client.send({ type: 'connection_init' });
    await client.until(({ type }) => type === 'connection_ack');
    client.send({ id: '1', type: start, payload: { query: '{ hello }' } });
    const [span] = await telemetry.wait('query');
    expect(traceOf(span)).toBe(REMOTE_TRACE);
    await client.close();
  });

  it(`a subscription over ${protocol} is a span until its source is open, and each event is a span with a link to it`, async () => {
    const { url, live } = await serve();
    const client = await ready(url, protocol);
    client.send(events('1', 'a', start));
    const [subscription] = await telemetry.wait('subscription');
    for (const payload of ['one', 'two', new Error('secret detail')]) {
      live.publish('a', payload);
      await client.until(({ type }) => type === result);
    }
    const spans = await telemetry.wait(EVENT, 3);
    for (const span of spans) {
      expect(parentOf(span)).toBeUndefined();
      expect(traceOf(span)).not.toBe(traceOf(subscription));
      expect(linksOf(span)).toEqual([idOf(subscription)]);
      expect(span.attributes).toMatchObject({
        'graphql.processing.type': 'execute',
        'graphql.operation.type': 'subscription',
      });
    }
    expect(new Set(spans.map(traceOf)).size).toBe(3);
    expect(spans.map(({ status, attributes }) => [status.code, attributes['error.type']])).toEqual([
      [SpanStatusCode.UNSET, undefined],
      [SpanStatusCode.UNSET, undefined],
      [SpanStatusCode.ERROR, 'Error'],
    ]);
    await client.close();
  });

  it(`spans record the errors of operations over ${protocol}`, async () => {
    const { url } = await serve();
    const client = await ready(url, protocol);
    const queries = ['{', '{ nope }', '{ fails }', 'subscription { refused }', 'subscription { broken }'];
    for (const [id, query] of queries.entries()) {
      client.send({ id: String(id), type: start, payload: { query } });
    }
    await telemetry.wait('GraphQL Operation', 2);
    await telemetry.wait('subscription', 2);
    await telemetry.wait('query');
    const types = (name: string) => telemetry.named(name).map(({ attributes }) => attributes['error.type']);
    expect(types('GraphQL Operation')).toEqual(['GRAPHQL_PARSE_FAILED', 'GRAPHQL_VALIDATION_FAILED']);
    expect(types('query')).toEqual(['GraphQLError']);
    expect(types('subscription')).toEqual(['GraphQLError', 'Error']);
    await client.close();
  });
});

it('the span of an event is active in its resolvers', async () => {
  const seen: (string | undefined)[] = [];
  const schema = buildSchema('type Query { a: String } type Subscription { ticks: String }');
  const fields = schema.getSubscriptionType()?.getFields() ?? {};
  Object.assign(fields['ticks'] as object, {
    async *subscribe() {
      yield 'one';
      yield 'two';
    },
    resolve: async (tick: string) => {
      await new Promise(setImmediate);
      seen.push(activeSpan());
      return tick;
    },
  });
  const { server, url } = await listen();
  const subscriptions = attachSubscriptions(server, schema);
  const client = await ready(url);
  client.send({ id: '1', type: 'subscribe', payload: { query: 'subscription { ticks }' } });
  const spans = await telemetry.wait(EVENT, 2);
  expect(seen).toEqual(spans.map(idOf));
  await subscriptions.close();
  server.close();
});

it('a shared subscription executes each event in one span, which continues when the first subscriber leaves', async () => {
  const { url, live, subscriptions } = await serve({ share: () => 'all' });
  const clients = await Promise.all([ready(url), ready(url), ready(url)]);
  for (const client of clients) client.send(events('1'));
  await telemetry.wait('subscription', 3);
  await until(() => live.open === 1);
  live.publish('a', 'one');
  await telemetry.wait(EVENT, 1);
  const first = clients[0];
  await first?.close();
  await until(() => subscriptions.stats().connections === 2);
  live.publish('a', 'two');
  await telemetry.wait(EVENT, 2);
  for (const client of clients.slice(1))
    await client.until(({ payload }) => JSON.stringify(payload)?.includes('two'));
  expect(telemetry.named(EVENT)).toHaveLength(2);
  for (const client of clients) await client.close();
});

it('an operation that its client cancels is a span without an error', async () => {
  const { url } = await serve();
  const client = await ready(url);
  client.send({ id: '1', type: 'subscribe', payload: { query: '{ pending }' } });
  await until(() => telemetry.named('GraphQL Document Parsing').length === 1);
  client.send({ id: '1', type: 'complete' });
  const [span] = await telemetry.wait('query');
  expect(span?.status.code).toBe(SpanStatusCode.UNSET);
  await client.close();
});

describe('event streams', () => {
  it.each([
    ['server-sent events', SSE],
    ['multipart', { accept: 'multipart/mixed;subscriptionSpec="1.0"' }],
  ])(
    'a subscription over %s is a span with the parent of the headers, and its events are spans',
    async (_, accept) => {
      const { url, live } = await streaming.serve();
      const params = { query: 'subscription { events(topic: "a") }' };
      const reading = await open(url, { params, headers: { ...accept, traceparent: TRACEPARENT } });
      const [subscription] = await telemetry.wait('subscription');
      expect(traceOf(subscription)).toBe(REMOTE_TRACE);
      await until(() => live.open === 1);
      live.publish('a', 'one');
      const [event] = await telemetry.wait(EVENT);
      expect(linksOf(event)).toEqual([idOf(subscription)]);
      reading.req.destroy();
    },
  );

  it('a subscription that HTTP refuses is a span with the code of the refusal', async () => {
    const { url } = await streaming.serve();
    await open(url, { params: { query: 'subscription { events(topic: "a") }' } });
    const [span] = await telemetry.wait('subscription');
    expect(span?.attributes['error.type']).toBe('SUBSCRIPTION_OVER_HTTP');
  });
});
