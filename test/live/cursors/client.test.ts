/** @tags once slow */
import { createClient as createStreamClient } from 'graphql-sse';
import { createClient as createSocketClient } from 'graphql-ws';
import WebSocket from 'ws';
import { type ResumableClient, type ResumableResult, resumable } from '../../../client/index.ts';
import { atEnd } from '../../kit.ts';
import { numbers } from '../../pubsub/events.ts';
import { type StallingProxy, startProxy } from '../../pubsub/proxy.ts';
import { until } from '../../until.ts';
import { publish, type Served, serve } from './serve.ts';

const QUERY = 'subscription { tick }';

let proxy: StallingProxy;

/** The clients by name; they reach the server through a proxy that can close their connections. */
const CLIENTS: Readonly<Record<string, (address: string) => ResumableClient>> = {
  'graphql-ws'(address) {
    const client = createSocketClient({
      url: `ws://${address}/graphql`,
      webSocketImpl: WebSocket,
      retryAttempts: Number.POSITIVE_INFINITY,
      shouldRetry: () => true,
      retryWait: () => new Promise((resolve) => setTimeout(resolve, 5)),
    });
    atEnd(() => void client.dispose());
    return client;
  },
  'graphql-sse': streamClient,
};

function streamClient(address: string): ResumableClient {
  const client = createStreamClient({
    url: `http://${address}/graphql`,
    retryAttempts: Number.POSITIVE_INFINITY,
    retry: () => new Promise((resolve) => setTimeout(resolve, 5)),
  });
  atEnd(() => client.dispose());
  return client;
}

interface Run {
  readonly ticks: number[];
  readonly failures: unknown[];
  refetches: number;
  completed: boolean;
  stop(): void;
}

/** Subscribes with a resumable client. */
function run(client: ResumableClient, query = QUERY): Run {
  const state: Run = { ticks: [], failures: [], refetches: 0, completed: false, stop: () => undefined };
  const refetch = (): void => {
    state.refetches++;
  };
  state.stop = resumable(client, { refetch, maxDelay: 5 }).subscribe(
    { query },
    {
      next: ({ data, errors }) =>
        errors === undefined
          ? state.ticks.push((data as { tick: number }).tick)
          : state.failures.push(errors),
      error: (error) => state.failures.push(error),
      complete: () => {
        state.completed = true;
      },
    },
  );
  return state;
}

async function start(connect: (address: string) => ResumableClient, served: Served): Promise<Run> {
  proxy = await startProxy(served.url.replace('http', 'redis').replace('/graphql', ''));
  atEnd(() => proxy.close());
  const state = run(connect(new URL(proxy.url).host));
  await until(() => state.refetches === 1);
  return state;
}

describe.each(Object.entries(CLIENTS))('resumable() with the client of %s', (_name, connect) => {
  it('resumable() receives every event once when its connection is lost at any event', async () => {
    const served = await serve();
    const state = await start(connect, served);
    for (let n = 0; n < 20; n++) {
      if (n % 2 === 0) proxy.drop();
      await publish(served, n, n + 1);
      if (n % 3 === 0) await until(() => state.ticks.length === n + 1);
    }
    await until(() => state.ticks.length === 20);
    expect(state).toMatchObject({ ticks: numbers(0, 20), refetches: 1, failures: [] });
  });

  it('resumable() misses no event if the connection is lost before the first event', async () => {
    const served = await serve();
    const state = await start(connect, served);
    proxy.drop();
    await publish(served, 0, 3);
    await until(() => state.ticks.length === 3);
    expect(state).toMatchObject({ ticks: [0, 1, 2], refetches: 1 });
  });

  it('resumable() calls refetch and continues when the events after its cursor are not stored any more', async () => {
    const served = await serve({ pubsub: { history: { length: 2 } } });
    const state = await start(connect, served);
    await publish(served, 0, 1);
    await until(() => state.ticks.length === 1);
    proxy.stall();
    proxy.drop();
    await publish(served, 1, 10);
    proxy.heal();
    proxy.drop();
    await until(() => state.refetches === 2);
    await publish(served, 10, 12);
    await until(() => state.ticks.at(-1) === 11);
    expect(state).toMatchObject({ ticks: [0, 10, 11], refetches: 2, failures: [] });
  });

  it('resumable() ends the subscription after an error of the operation', async () => {
    const served = await serve();
    proxy = await startProxy(served.url.replace('http', 'redis').replace('/graphql', ''));
    atEnd(() => proxy.close());
    const state = run(connect(new URL(proxy.url).host), 'subscription { refused }');
    await until(() => state.failures.length > 0);
    expect(state.failures).toMatchObject([[{ message: 'not for you' }]]);
    expect(state.refetches).toBe(0);
  });

  it('the function that resumable() returns ends the subscription', async () => {
    const served = await serve();
    const state = await start(connect, served);
    state.stop();
    await until(() => served.subscriptions.stats().operations === 0);
    await publish(served, 0, 2);
    expect(state.ticks).toEqual([]);
  });
});

describe('resumable()', () => {
  type Sink = Parameters<ResumableClient['subscribe']>[1];

  /** A client whose results the test creates. */
  function scripted() {
    const attempts: { sink: Sink; request: unknown; isStopped: boolean }[] = [];
    const client: ResumableClient & { readonly dispose: () => string } = {
      dispose: () => 'disposed',
      subscribe(request, sink) {
        const attempt = { sink, request, isStopped: false };
        attempts.push(attempt);
        return () => {
          attempt.isStopped = true;
          sink.complete();
        };
      },
    };
    const received: ResumableResult[] = [];
    const ends: unknown[] = [];
    const sink: Sink = {
      next: (result) => received.push(result),
      error: (error) => ends.push(error),
      complete: () => ends.push('complete'),
    };
    return { attempts, client, received, ends, sink };
  }

  const event = (n: number, cursor: string): ResumableResult => ({ data: { n }, extensions: { cursor } });
  const sent = (request: unknown): unknown => JSON.parse(JSON.stringify(request));

  it('resumable() removes events whose position was received before', () => {
    const { attempts, client, received, sink } = scripted();
    resumable(client).subscribe({ query: QUERY }, sink);
    const [attempt] = attempts;
    for (const [n, cursor] of [
      [1, 'a.1.x'],
      [2, 'b.1.x'],
      [1, 'a.2.y'],
      [2, 'b.3.z'],
      [3, 'c.3.z'],
    ] as const)
      attempt?.sink.next(event(n, cursor));
    expect(received.map(({ data }) => data)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    expect(sent(attempt?.request)).toEqual({ query: QUERY, extensions: { after: 'c.3.z' } });
  });

  it('resumable() remembers a limited number of positions', () => {
    const { attempts, client, received, sink } = scripted();
    resumable(client).subscribe({ query: QUERY }, sink);
    for (let n = 0; n < 1005; n++) attempts[0]?.sink.next(event(n, `${n}.1.x`));
    attempts[0]?.sink.next(event(1004, '1004.1.x'));
    attempts[0]?.sink.next(event(0, '0.1.x'));
    expect(received.length).toBe(1006);
  });

  it('resumable() keeps the extensions and members of the client, and passes on results without a cursor', () => {
    const { attempts, client, received, sink } = scripted();
    const wrapped = resumable(client);
    expect(wrapped.dispose()).toBe('disposed');
    wrapped.subscribe({ query: QUERY, extensions: { a: 1 } }, sink);
    expect(sent(attempts[0]?.request)).toEqual({ query: QUERY, extensions: { a: 1, after: null } });
    attempts[0]?.sink.next({ data: null });
    attempts[0]?.sink.next({ errors: [null, {}] });
    expect(received).toEqual([{ data: null }, { errors: [null, {}] }]);
  });

  it.each(['EVENTS_MISSED', 'CURSOR_INVALID', 'CURSOR_EXPIRED'])(
    'after %s resumable() subscribes without a cursor and ignores the ended subscription',
    async (code) => {
      const { attempts, client, received, ends, sink } = scripted();
      let refetches = 0;
      resumable(client, { maxDelay: 1, refetch: () => refetches++ }).subscribe({ query: QUERY }, sink);
      attempts[0]?.sink.next(event(1, 'a.1.x'));
      attempts[0]?.sink.error([{ message: 'x', extensions: { code, refetch: true } }]);
      attempts[0]?.sink.next(event(9, 'z.1.x'));
      await until(() => attempts.length === 2);
      expect(attempts[0]?.isStopped).toBe(true);
      expect(sent(attempts[1]?.request)).toEqual({ query: QUERY, extensions: { after: null } });
      expect(refetches).toBe(1);
      attempts[1]?.sink.next({ data: null, extensions: { cursor: 'b.1.x' } });
      expect(refetches).toBe(2);
      expect(received.length).toBe(1);
      expect(ends).toEqual([]);
      attempts[1]?.sink.error(new Error('x'));
      attempts[1]?.sink.complete();
      expect(ends).toEqual([new Error('x'), 'complete']);
    },
  );

  it('resumable() does not start again when it was stopped while it waited', async () => {
    const { attempts, client, sink } = scripted();
    const stop = resumable(client, { maxDelay: 5 }).subscribe({ query: QUERY }, sink);
    attempts[0]?.sink.next({ errors: [{ extensions: { refetch: true } }] });
    stop();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(attempts.length).toBe(1);
  });

  it('resumable() does not start again for an error that arrives after it was stopped', async () => {
    const { attempts, client, sink } = scripted();
    const stop = resumable(client, { maxDelay: 5 }).subscribe({ query: QUERY }, sink);
    stop();
    attempts[0]?.sink.error([{ extensions: { refetch: true } }]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(attempts.length).toBe(1);
  });
});
