/** @tags node graphql engine */
import { buildSchema, GraphQLError } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { ExecuteFunction } from '../../types/graphql.ts';
import { atEnd } from '../kit.ts';
import { LEGACY, listen, MODERN, ready } from './client.ts';
import { inProduction, until } from './serve.ts';

inProduction();

/** Serves a schema whose operations the function executes. */
async function serve(engine: ExecuteFunction) {
  const reports: Error[] = [];
  const onError = (error: unknown): void => void reports.push(error as Error);
  const schema = buildSchema('type Query { a: Int }');
  const handler = graphqlHTTP(schema, { engine, onError });
  const { server, url, port } = await listen((req, res) => handler(req, res));
  const subscriptions = attachSubscriptions(server, handler, { ping: false });
  atEnd(async () => {
    await subscriptions.close();
    server.close();
    server.closeAllConnections();
  });
  return { url, port, reports, subscriptions };
}

/** A stream that gives the results and then waits. `returned` counts the calls of `return`. */
function endless(results: object[]) {
  const stream = {
    returned: 0,
    [Symbol.asyncIterator]() {
      const left = [...results];
      return {
        next: (): Promise<IteratorResult<object>> =>
          left.length > 0
            ? Promise.resolve({ done: false, value: left.shift() as object })
            : new Promise(() => undefined),
        async return() {
          stream.returned++;
          return { done: true as const, value: undefined };
        },
      };
    },
  };
  return stream;
}

const ends = ({ type }: Record<string, unknown>): boolean => type === 'complete' || type === 'error';

describe.each([
  [MODERN, 'subscribe', 'next', 'complete'],
  [LEGACY, 'start', 'data', 'stop'],
])('an engine function that returns several results, over %s', (protocol, type, next, cancel) => {
  const run = (variables?: object): object => ({ id: '1', type, payload: { query: '{ a }', variables } });

  it('attachSubscriptions yields to the event loop while it sends results that are always ready', async () => {
    let most = 0;
    let sent = 0;
    const { url } = await serve(async function* () {
      let isCounted = false;
      for (let a = 0; a < 5000; a++) {
        most = Math.max(most, ++sent);
        if (!isCounted) {
          isCounted = true;
          setImmediate(() => {
            isCounted = false;
            sent = 0;
          });
        }
        yield { data: { a } };
      }
    } as ExecuteFunction);
    const client = await ready(url, protocol);
    client.send(run());
    expect(await client.until(ends)).toHaveLength(5001);
    expect(most).toBeLessThan(250);
  });

  it('attachSubscriptions sends each result of an async generator, then complete', async () => {
    const { url, reports } = await serve(async function* () {
      yield { data: { a: 1 }, hasNext: true };
      yield { data: { a: 2 }, errors: [new GraphQLError('visible')], hasNext: false };
    } as ExecuteFunction);
    const client = await ready(url, protocol);
    client.send(run());
    expect(await client.until(ends)).toEqual([
      { id: '1', type: next, payload: { data: { a: 1 }, hasNext: true } },
      {
        id: '1',
        type: next,
        payload: { data: { a: 2 }, errors: [{ message: 'visible' }], hasNext: false },
      },
      { id: '1', type: 'complete' },
    ]);
    expect(reports).toEqual([]);
    await client.close();
  });

  it('attachSubscriptions masks and reports errors in the parts of an incremental result', async () => {
    const secret = (): GraphQLError => new GraphQLError('x', { originalError: new Error('secret') });
    const { url, reports } = await serve(async () => ({
      initialResult: { data: { a: null }, errors: [secret()], hasNext: true },
      subsequentResults: (async function* () {
        yield {
          incremental: [{ id: '0', data: {}, errors: [secret()] }],
          completed: [{ id: '1', errors: [secret()] }],
          hasNext: false,
        };
      })(),
    }));
    const client = await ready(url, protocol);
    client.send(run());
    const errors = [{ message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR' } }];
    expect((await client.until(ends)).map(({ payload }) => payload)).toEqual([
      { data: { a: null }, errors, hasNext: true },
      { incremental: [{ id: '0', data: {}, errors }], completed: [{ id: '1', errors }], hasNext: false },
      undefined,
    ]);
    expect(reports.map(({ message }) => message)).toEqual(['secret', 'secret', 'secret']);
    await client.close();
  });

  it('attachSubscriptions returns the stream when the client cancels the operation', async () => {
    const stream = endless([{ data: { a: 1 } }]);
    const { url, subscriptions } = await serve(() => stream);
    const client = await ready(url, protocol);
    client.send(run());
    expect(await client.next()).toMatchObject({ payload: { data: { a: 1 } } });
    expect(subscriptions.stats()).toMatchObject({ operations: 1, sources: 1 });
    client.send({ id: '1', type: cancel });
    await until(() => stream.returned === 1);
    expect(subscriptions.stats()).toMatchObject({ operations: 0, sources: 0, unreleased: 0 });
    await client.close();
  });

  it('attachSubscriptions returns a stream that arrives after the client has cancelled the operation', async () => {
    const stream = endless([{ data: { a: 1 } }]);
    let resolve: (value: typeof stream) => void = () => undefined;
    let called = false;
    const { url, subscriptions } = await serve(() => {
      called = true;
      return new Promise((done) => {
        resolve = done;
      });
    });
    const client = await ready(url, protocol);
    client.send(run());
    await until(() => called);
    client.send({ id: '1', type: cancel });
    await until(() => subscriptions.stats().operations === 0);
    resolve(stream);
    await until(() => stream.returned === 1);
    expect(await client.silence()).toEqual([]);
    expect(subscriptions.stats()).toMatchObject({ sources: 0, unreleased: 0 });
    await client.close();
  });

  it('attachSubscriptions sends a masked error when the stream fails or gives no object', async () => {
    const results: (() => unknown)[] = [
      () => {
        throw new Error('secret');
      },
      () => 'secret',
    ];
    for (const result of results) {
      const { url, reports } = await serve(async function* () {
        yield { data: { a: 1 } };
        yield result();
      } as ExecuteFunction);
      const client = await ready(url, protocol);
      client.send(run());
      const [first, error] = await client.until(ends);
      expect(first).toMatchObject({ type: next, payload: { data: { a: 1 } } });
      expect(error).toMatchObject({ type: 'error' });
      expect(JSON.stringify(error)).toContain('Internal server error');
      expect(JSON.stringify(error)).not.toContain('secret');
      expect(reports).toHaveLength(1);
      await client.close();
    }
  });
});

it('graphqlHTTP closes several results of an engine function and responds with 500', async () => {
  const stream = endless([{ data: { a: 1 } }]);
  const { port, reports } = await serve(() => stream);
  const response = await fetch(`http://127.0.0.1:${port}/graphql?query={a}`);
  expect(response.status).toBe(500);
  expect(await response.text()).toContain('Internal server error');
  expect(reports).toMatchObject([
    { message: 'The engine returned an async iterable of results, which only sockets deliver' },
  ]);
  expect(stream.returned).toBe(1);
});
