/** @tags node graphql */
import { createClient } from 'graphql-sse';
import { createClient as createSocketClient } from 'graphql-ws';
import WebSocket from 'ws';
import type { StreamConnection } from '../../types/subscriptions.ts';
import { until } from '../until.ts';
import { EVENTS, open, serve, withParams } from './serve-streams.ts';

const next = (payload: object): string => `event: next\ndata: ${JSON.stringify(payload)}\n\n`;
const COMPLETE = 'event: complete\ndata:\n\n';
const COUNT = { query: 'subscription { count(to: 2) }' };

describe('subscriptions over server-sent events, distinct connections mode', () => {
  it('graphqlHTTP sends the events of a subscription to a POST that accepts event streams', async () => {
    const { url } = await serve();
    const reading = await open(url, { params: COUNT, headers: EVENTS });
    await until(() => reading.ended);
    expect(reading.status).toBe(200);
    expect(reading.res.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      vary: 'Accept',
    });
    expect(reading.body).toBe(
      `:\n\n${next({ data: { count: 1 } })}${next({ data: { count: 2 } })}${COMPLETE}`,
    );
  });

  it.each([
    ['a syntax error', '{', 'Syntax Error'],
    ['a validation error', '{ unknown }', 'Cannot query field'],
    ['a source that is refused', 'subscription { refused }', 'not for you'],
    ['a source that fails unexpectedly', 'subscription { broken }', 'Internal server error'],
  ])('graphqlHTTP sends the error of %s as an event with status 200', async (_, query, message) => {
    const { url } = await serve();
    const reading = await open(withParams(url, { query }), { headers: EVENTS });
    await until(() => reading.ended);
    expect(reading.status).toBe(200);
    expect(reading.body).toMatch(
      /^:\n\nevent: next\ndata: \{"errors":\[.*\]\}\n\nevent: complete\ndata:\n\n$/,
    );
    expect(reading.body).toContain(message);
    expect(reading.body).not.toContain('secret');
  });

  it('graphqlHTTP sends the result of a query as one event to a client that accepts only event streams', async () => {
    const { url } = await serve();
    const reading = await open(withParams(url, { query: '{ hello }' }), { headers: EVENTS });
    await until(() => reading.ended);
    expect(reading.body).toBe(`:\n\n${next({ data: { hello: 'Hello world' } })}${COMPLETE}`);
  });

  it('graphqlHTTP sends JSON for a query of a client that accepts both', async () => {
    const { url } = await serve();
    const headers = { accept: 'text/event-stream, application/json' };
    const reading = await open(withParams(url, { query: '{ hello }' }), { headers });
    await until(() => reading.ended);
    expect(reading.body).toBe('{"data":{"hello":"Hello world"}}');
  });

  it.each([
    ['*/*', 400],
    ['application/json', 400],
    ['text/*', 406],
    ['text/event-stream;q=0', 406],
    ['multipart/mixed;subscriptionSpec=2.0, application/json', 400],
  ])('graphqlHTTP refuses a subscription with Accept: %s', async (accept, status) => {
    const { url } = await serve();
    expect((await open(url, { params: COUNT, headers: { accept } })).status).toBe(status);
  });

  it('graphqlHTTP refuses a subscription in a batch and over HEAD', async () => {
    const { url } = await serve({ batching: true });
    const accept = 'text/event-stream, application/json';
    expect((await open(url, { params: [COUNT], headers: { accept } })).status).toBe(400);
    expect((await open(withParams(url, COUNT), { method: 'HEAD', headers: { accept } })).status).toBe(400);
  });

  it('graphqlHTTP refuses subscriptions with eventStreams: false', async () => {
    const { url } = await serve({ eventStreams: false });
    expect((await open(url, { params: COUNT, headers: EVENTS })).status).toBe(406);
  });

  it('graphqlHTTP refuses event streams by default if attachSubscriptions has onConnect', async () => {
    const attach = { onConnect: () => true };
    const { url } = await serve({}, { attach });
    expect((await open(url, { params: COUNT, headers: EVENTS })).status).toBe(400);
    const explicit = await serve({ eventStreams: true }, { attach });
    const reading = await open(explicit.url, { params: COUNT, headers: EVENTS });
    await until(() => reading.body.endsWith(COMPLETE));
  });

  it('graphqlHTTP refuses a cross-site GET with a cookie and a mutation over a cross-site GET', async () => {
    const { url } = await serve();
    const crossSite = { ...EVENTS, cookie: 'a=b', 'sec-fetch-site': 'cross-site' };
    const subscription = await open(withParams(url, COUNT), {
      headers: { ...crossSite, 'sec-fetch-mode': 'no-cors' },
    });
    expect(subscription.status).toBe(403);
    const mutation = await open(withParams(url, { query: 'mutation { set(value: "a") }' }), {
      headers: { ...crossSite, 'sec-fetch-mode': 'cors' },
    });
    expect(mutation.status).toBe(403);
  });

  it('graphqlHTTP returns the source when the client disconnects', async () => {
    const { url, live, subscriptions } = await serve();
    const reading = await open(url, {
      params: { query: 'subscription { events(topic: "a") }' },
      headers: EVENTS,
    });
    await until(() => live.open === 1);
    expect(subscriptions.stats()).toMatchObject({ connections: 1, operations: 1, sources: 1 });
    live.publish('a', '1');
    await until(() => reading.body.includes('"events":"1"'));
    reading.req.destroy();
    await until(() => live.open === 0 && subscriptions.stats().connections === 0);
  });

  it('event streams and WebSockets with the same share key have one source and one execution per event', async () => {
    const { url, live, subscriptions } = await serve({}, { attach: { share: () => 'all' } });
    const query = 'subscription { events(topic: "a") }';
    const streams = await Promise.all([1, 2, 3].map(() => open(url, { params: { query }, headers: EVENTS })));
    const socket = createSocketClient({ url: url.replace('http', 'ws'), webSocketImpl: WebSocket });
    const seen: unknown[] = [];
    socket.subscribe(
      { query },
      { next: ({ data }) => seen.push(data), error: () => undefined, complete: () => undefined },
    );
    await until(() => subscriptions.stats().operations === 4);
    expect(subscriptions.stats()).toMatchObject({ connections: 4, sources: 1, groups: 1 });
    const burst = ['1', '2', 'ü€😀'];
    for (const event of burst) live.publish('a', event);
    await until(() => streams.every(({ body }) => body.includes('😀')) && seen.length === 3);
    expect(live.calls['events']).toBe(3);
    for (const { body } of streams) {
      expect(body).toBe(`:\n\n${burst.map((events) => next({ data: { events } })).join('')}`);
    }
    await socket.dispose();
  });

  it('disconnect() ends the event streams that the predicate selects, without complete', async () => {
    const { url, live, subscriptions } = await serve({
      context: (req) => ({ user: req.headers['x-user'] }),
    });
    const params = { query: 'subscription { events(topic: "a") }' };
    const [ann, bob] = await Promise.all(
      ['ann', 'bob'].map((user) => open(url, { params, headers: { ...EVENTS, 'x-user': user } })),
    );
    await until(() => live.open === 2);
    const isAnn = ({ context }: StreamConnection<{ user?: string }>): boolean => context.user === 'ann';
    expect(subscriptions.disconnect(isAnn)).toBe(1);
    await until(() => ann?.ended === true);
    expect(ann?.body).toBe(':\n\n');
    live.publish('a', 'x');
    await until(() => bob?.body.includes('"x"') === true);
  });

  it('close() of attachSubscriptions ends the event streams over the drain period and refuses new ones', async () => {
    const { url, live, subscriptions } = await serve();
    const params = { query: 'subscription { events(topic: "a") }' };
    const streams = await Promise.all([1, 2, 3, 4].map(() => open(url, { params, headers: EVENTS })));
    await until(() => live.open === 4);
    live.publish('a', 'last');
    await subscriptions.close({ drain: 100 });
    await until(() => streams.every(({ ended }) => ended));
    for (const { body } of streams) expect(body).toBe(`:\n\n${next({ data: { events: 'last' } })}`);
    // The streams end with their connections.
    await until(() => streams.every(({ req }) => req.socket?.destroyed === true));
    const refused = await open(url, { params, headers: EVENTS });
    expect([refused.status, refused.res.headers['retry-after']]).toEqual([503, '5']);
    expect(live.open).toBe(0);
  });

  it('a source that ends with a closeCode ends the stream without complete, so that clients connect again', async () => {
    const { url, live } = await serve();
    const params = { query: 'subscription { events(topic: "a") }' };
    const reading = await open(url, { params, headers: EVENTS });
    await until(() => live.open === 1);
    live.end('a', Object.assign(new Error('missed'), { closeCode: 1013 }));
    await until(() => reading.ended);
    expect(reading.body).toBe(':\n\n');
  });

  it('an event stream gets keep-alive comments at the interval of the option ping', async () => {
    const { url } = await serve({}, { attach: { ping: 20 } });
    const params = { query: 'subscription { events(topic: "a") }' };
    const reading = await open(url, { params, headers: EVENTS });
    await until(() => reading.body.startsWith(':\n\n:\n\n:\n\n'));
  });

  it('limits.connections of attachSubscriptions includes event streams', async () => {
    const { url, live } = await serve({}, { attach: { limits: { connections: 1 } } });
    const params = { query: 'subscription { events(topic: "a") }' };
    await open(url, { params, headers: EVENTS });
    await until(() => live.open === 1);
    expect((await open(url, { params, headers: EVENTS })).status).toBe(503);
  });

  it('the client of graphql-sse receives results, errors and completions in distinct connections mode', async () => {
    const { url, live } = await serve();
    const client = createClient({ url, retryAttempts: 0 });
    const results: unknown[] = [];
    for await (const result of client.iterate(COUNT)) results.push(result);
    expect(results).toEqual([{ data: { count: 1 } }, { data: { count: 2 } }]);
    for await (const result of client.iterate({ query: '{ unknown }' })) {
      expect(result.errors).toHaveLength(1);
    }
    const iterator = client.iterate({ query: 'subscription { events(topic: "a") }' });
    const first = iterator.next();
    await until(() => live.open === 1);
    live.publish('a', 'one');
    expect(await first).toMatchObject({ value: { data: { events: 'one' } } });
    await iterator.return?.();
    await until(() => live.open === 0);
    client.dispose();
  });
});
