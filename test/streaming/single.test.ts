import { once } from 'node:events';
import * as http from 'node:http';
import type { RequestHandler } from 'express';
import { createClient } from 'graphql-sse';
import { until } from '../until.ts';
import { EVENTS, open, type Served, serve, stopAll } from './serve.ts';

afterEach(stopAll);

const TOKEN = 'x-graphql-event-stream-token';
const QUERY = 'subscription { events(topic: "a") }';

const event = (name: string, data: object): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

/** Reserves a stream and returns its token. */
async function reserve({ url }: Served, headers: Record<string, string> = {}): Promise<string> {
  const reading = await open(url, { method: 'PUT', headers });
  await until(() => reading.ended);
  expect(reading.status).toBe(201);
  expect(reading.res.headers['content-type']).toBe('text/plain; charset=utf-8');
  return reading.body;
}

const operation = (query: string, operationId?: unknown) => ({ query, extensions: { operationId } });

describe('subscriptions over server-sent events, single connection mode', () => {
  it('one stream carries the results of several operations, each with its id', async () => {
    const served = await serve();
    const token = await reserve(served);
    const stream = await open(served.url, { headers: { ...EVENTS, [TOKEN]: token } });
    expect(stream.status).toBe(200);
    const start = (query: string, id: string) =>
      open(served.url, { params: operation(query, id), headers: { [TOKEN]: token } });
    const accepted = await start('{ hello }', 'q"ü');
    await until(() => accepted.ended);
    expect([accepted.status, accepted.body]).toEqual([202, '']);
    const { id } = { id: 'q"ü' };
    const first =
      event('next', { id, payload: { data: { hello: 'Hello world' } } }) + event('complete', { id });
    await until(() => stream.body === `:\n\n${first}`);
    expect((await start('subscription { count(to: 1) }', 's')).status).toBe(202);
    const second =
      event('next', { id: 's', payload: { data: { count: 1 } } }) + event('complete', { id: 's' });
    await until(() => stream.body === `:\n\n${first}${second}`);
    expect((await start('{ hello(name: 1) { a } }', 'invalid')).status).toBe(400);
    expect((await start('query ($a: Int!) { big(bytes: $a) }', 'coercion')).status).toBe(202);
    await until(() => stream.body.includes('"id":"coercion","payload":{"errors":['));
    stream.req.destroy();
  });

  it('DELETE with a token stops an operation of the reserved stream and frees its id', async () => {
    const served = await serve();
    const { url, live } = served;
    const token = await reserve(served);
    const stream = await open(`${url}?token=${token}`, { headers: EVENTS });
    const start = () => open(url, { params: operation(QUERY, '1'), headers: { [TOKEN]: token } });
    expect((await start()).status).toBe(202);
    await until(() => live.open === 1);
    expect((await start()).status).toBe(409);
    const stop = await open(`${url}?operationId=1`, { method: 'DELETE', headers: { [TOKEN]: token } });
    expect(stop.status).toBe(200);
    await until(() => live.open === 0);
    expect((await start()).status).toBe(202);
    await until(() => live.open === 1);
    live.publish('a', 'x');
    await until(
      () => stream.body === `:\n\n${event('next', { id: '1', payload: { data: { events: 'x' } } })}`,
    );
    stream.req.destroy();
    await until(() => live.open === 0);
    expect((await start()).status).toBe(404);
  });

  it('results of operations that start before the stream is open are sent when it opens', async () => {
    const served = await serve();
    const token = await reserve(served);
    const headers = { [TOKEN]: token };
    expect((await open(served.url, { params: operation('{ hello }', '1'), headers })).status).toBe(202);
    const stream = await open(served.url, { headers: { ...EVENTS, ...headers } });
    await until(() => stream.body.includes('complete'));
    expect(stream.body).toMatch(/^:\n\nevent: next\ndata: \{"id":"1","payload":/);
    stream.req.destroy();
  });

  it('graphqlHTTP refuses wrong tokens, a second stream, missing and long operation ids', async () => {
    const served = await serve();
    const { url } = served;
    const token = await reserve(served);
    const headers = { [TOKEN]: token };
    const stream = await open(url, { headers: { ...EVENTS, ...headers } });
    const statuses = await Promise.all(
      [
        open(url, { headers: { ...EVENTS, ...headers } }),
        open(url, { headers: { ...EVENTS, [TOKEN]: 'constructor' } }),
        open(url, { params: operation(QUERY, '1'), headers: { [TOKEN]: 'unknown' } }),
        open(url, { params: operation(QUERY), headers }),
        open(url, { params: operation(QUERY, { id: 1 }), headers }),
        open(url, { params: operation(QUERY, 'x'.repeat(257)), headers }),
        open(url, { method: 'DELETE', headers }),
        open(url, { method: 'DELETE' }),
        open(`${url}?operationId=none`, { method: 'DELETE', headers }),
      ].map(async (reading) => (await reading).status),
    );
    expect(statuses).toEqual([409, 404, 404, 400, 400, 400, 400, 405, 200]);
    stream.req.destroy();
  });

  it('the server ignores a token that the client chooses', async () => {
    const served = await serve();
    const chosen = 'chosen-by-the-client';
    const token = await reserve(served, { [TOKEN]: chosen });
    expect(token).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
    expect((await open(served.url, { headers: { ...EVENTS, [TOKEN]: chosen } })).status).toBe(404);
  });

  it('a reservation can be used only by its user', async () => {
    const served = await serve({ eventStreams: { user: (req) => req.headers['x-user'] } });
    const { url } = served;
    const token = await reserve(served, { 'x-user': 'ann' });
    const headers = { ...EVENTS, [TOKEN]: token };
    expect((await open(url, { headers: { ...headers, 'x-user': 'bob' } })).status).toBe(404);
    expect((await open(url, { headers })).status).toBe(404);
    const stream = await open(url, { headers: { ...headers, 'x-user': 'ann' } });
    expect(stream.status).toBe(200);
    stream.req.destroy();
  });

  it.each<[string, (req: { headers: object }) => unknown, number]>([
    ['throws', () => JSON.parse('no user'), 500],
    ['returns a promise', () => Promise.reject(new Error('no user')), 500],
  ])('a reservation leaves no connection if the option user %s', async (_, user, status) => {
    const isQuiet: RequestHandler = ({ app }, _res, next) => {
      app.set('env', 'test');
      next();
    };
    const { url, subscriptions } = await serve({ eventStreams: { user } }, { before: [isQuiet] });
    for (let count = 0; count < 3; count++) expect((await open(url, { method: 'PUT' })).status).toBe(status);
    expect(subscriptions.stats().connections).toBe(0);
  });

  it('a client that disconnects before its context exists leaves no open stream', async () => {
    const finish: (() => void)[] = [];
    const closed: Promise<unknown>[] = [];
    const served = await serve({
      context: async (req) => {
        closed.push(once(req.socket, 'close'));
        await new Promise<void>((resolve) => finish.push(resolve));
        return {};
      },
    });
    const { url, subscriptions } = served;
    const headers = { ...EVENTS, [TOKEN]: await reserve(served) };
    const req = http.get(url, { headers }).on('error', () => undefined);
    await until(() => finish.length === 1);
    req.destroy();
    await closed[0];
    finish[0]?.();
    await new Promise(setImmediate);
    // The reservation waits for its stream again.
    const stream = open(url, { headers });
    await until(() => finish.length === 2);
    finish[1]?.();
    const { status, req: second } = await stream;
    expect(status).toBe(200);
    second.destroy();
    await until(() => subscriptions.stats().connections === 0);
  });

  it('graphqlHTTP limits the reservations that wait for their stream, and lets them expire', async () => {
    const served = await serve({ eventStreams: { maxReservations: 2 } });
    const { url, subscriptions } = served;
    const token = await reserve(served);
    await reserve(served);
    const refused = await open(url, { method: 'PUT' });
    expect([refused.status, refused.res.headers['retry-after']]).toEqual([429, '10']);
    const stream = await open(url, { headers: { ...EVENTS, [TOKEN]: token } });
    const late = await reserve(served);
    expect(subscriptions.stats().connections).toBe(3);
    await until(() => subscriptions.stats().connections === 1, 15_000);
    expect((await open(url, { headers: { ...EVENTS, [TOKEN]: late } })).status).toBe(404);
    expect(stream.ended).toBe(false);
    stream.req.destroy();
  });

  it('disconnect() does not fail for a reservation, which has no context yet', async () => {
    const served = await serve({ context: () => ({ user: { id: 'ann' } }) });
    const { url, subscriptions } = served;
    await reserve(served);
    const stream = await open(url, { headers: { ...EVENTS, [TOKEN]: await reserve(served) } });
    const isAnn = ({ context }: { context: unknown }): boolean =>
      (context as { user: { id: string } }).user.id === 'ann';
    expect(subscriptions.disconnect(isAnn)).toBe(1);
    await until(() => stream.ended);
    expect(subscriptions.disconnect(() => true)).toBe(1);
    await until(() => subscriptions.stats().connections === 0);
  });

  it('maxReservations counts the addresses of an IPv6 network of 64 bits as one client', async () => {
    const withAddress: RequestHandler = (req, _res, next) => {
      Object.defineProperty(req, 'ip', { value: req.headers['x-address'] });
      next();
    };
    const { url } = await serve({ eventStreams: { maxReservations: 1 } }, { before: [withAddress] });
    const statuses: (number | undefined)[] = [];
    for (const address of [
      '2001:db8::1',
      '2001:db8::ffff:2',
      '2001:db8:0:1::1',
      '::ffff:192.0.2.1',
      '192.0.2.1',
    ]) {
      const { status } = await open(url, { method: 'PUT', headers: { 'x-address': address } });
      statuses.push(status);
    }
    expect(statuses).toEqual([201, 429, 201, 201, 429]);
  });

  it('graphqlHTTP limits the operations of one stream', async () => {
    const served = await serve({}, { attach: { maxOperations: 1, maxOperationBytes: 2000 } });
    const token = await reserve(served);
    const headers = { [TOKEN]: token };
    const start = (id: string, query = QUERY) => open(served.url, { params: operation(query, id), headers });
    expect((await start('long', `${QUERY}${' '.repeat(2000)}`)).status).toBe(413);
    expect((await start('1')).status).toBe(202);
    expect((await start('2')).status).toBe(429);
  });

  it('graphqlHTTP refuses PUT and DELETE with single: false', async () => {
    const { url } = await serve({ eventStreams: { single: false } });
    expect((await open(url, { method: 'PUT' })).status).toBe(405);
    expect((await open(url, { method: 'DELETE' })).status).toBe(405);
  });

  it('the context function of the listening request decides about the stream', async () => {
    const { GraphQLError } = await import('graphql');
    const served = await serve({
      context: (req) => {
        if (req.headers['x-user'] !== undefined) return { user: req.headers['x-user'] };
        throw new GraphQLError('sign in', { extensions: { http: { status: 401 } } });
      },
    });
    const { url, subscriptions } = served;
    const headers = { ...EVENTS, [TOKEN]: await reserve(served) };
    expect((await open(url, { headers })).status).toBe(401);
    const stream = await open(url, { headers: { ...headers, 'x-user': 'ann' } });
    expect(stream.status).toBe(200);
    expect(subscriptions.disconnect(({ protocol }) => protocol === 'graphql-sse')).toBe(1);
    await until(() => stream.ended);
  });

  it('the client of graphql-sse runs several operations in single connection mode', async () => {
    const { url, live, subscriptions } = await serve();
    const client = createClient({ url, singleConnection: true, retryAttempts: 0 });
    const read = async (query: string): Promise<unknown[]> => {
      const results: unknown[] = [];
      for await (const result of client.iterate({ query })) results.push(result);
      return results;
    };
    const [counted, hello] = await Promise.all([read('subscription { count(to: 3) }'), read('{ hello }')]);
    expect(counted).toEqual([1, 2, 3].map((count) => ({ data: { count } })));
    expect(hello).toEqual([{ data: { hello: 'Hello world' } }]);
    const iterator = client.iterate({ query: QUERY });
    const first = iterator.next();
    await until(() => live.open === 1);
    live.publish('a', 'one');
    expect(await first).toMatchObject({ value: { data: { events: 'one' } } });
    await iterator.return?.();
    await until(() => live.open === 0);
    client.dispose();
    await until(() => subscriptions.stats().connections === 0);
  });
});
