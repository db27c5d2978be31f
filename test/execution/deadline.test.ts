/** @tags graphql */
import { buildSchema, versionInfo } from 'graphql';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { SubscriptionEnd, SubscriptionOptions, Subscriptions } from '../../types/subscriptions.ts';
import { type Running, run } from '../graphql/server.ts';
import { connect, LEGACY, MODERN, ready } from '../live/client.ts';
import { until } from '../until.ts';

const V17 = versionInfo.major >= 17;
const GRAPHQL = 'application/graphql-response+json';
const LATE = {
  errors: [{ message: 'The operation took too long', extensions: { code: 'OPERATION_TIMEOUT' } }],
};
const SHORT = 30;

interface Info {
  readonly getAbortSignal?: () => AbortSignal | undefined;
}

let signals: (AbortSignal | undefined)[] = [];
let release: (() => void)[] = [];
let returned = 0;
let reports: unknown[] = [];
let running: Running | undefined;
let attached: Subscriptions | undefined;

const never = (_args: unknown, _context: unknown, info: Info): Promise<string> => {
  signals.push(info.getAbortSignal?.());
  return new Promise((resolve) => release.push(() => resolve('late')));
};

/** Events that wait for the test. */
async function* numbers(): AsyncGenerator<object> {
  try {
    yield { event: () => 'first' };
    yield { event: never };
    yield { event: () => 'third' };
    await new Promise(() => undefined);
  } finally {
    returned++;
  }
}

const endless = (): AsyncIterable<object> => ({
  [Symbol.asyncIterator]: () => ({
    next: () => new Promise(() => undefined),
    return: () => {
      returned++;
      return Promise.resolve({ done: true, value: undefined });
    },
  }),
});

const rootValue = {
  quick: async () => 'quick',
  never,
  change: never,
  event: () => numbers(),
  late: async (...args: Parameters<typeof never>) => {
    await never(...args);
    return endless();
  },
};

const schema = buildSchema(`
  ${V17 ? 'directive @defer(if: Boolean! = true, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT' : ''}
  type Query { quick: String, never(id: Int): String }
  type Mutation { change: String }
  type Subscription { event: String, late: String }
`);

async function serve(options: GraphQLOptions = {}, subscriptions: SubscriptionOptions = {}): Promise<string> {
  const onError = (error: unknown): void => void reports.push((error as Error).message);
  const handler = graphqlHTTP(schema, { rootValue, onError, timeout: SHORT, ...options });
  running = await run((req, res) => void handler(req, res));
  attached = attachSubscriptions(running.server, handler, { path: '/graphql', ...subscriptions });
  return running.url;
}

const post = (url: string, body: unknown, accept = 'application/json'): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept },
    body: JSON.stringify(body),
  });

beforeEach(() => {
  signals = [];
  release = [];
  reports = [];
  returned = 0;
});

afterEach(async () => {
  await running?.close();
  running = undefined;
});

const ENGINES = ['compiled', 'graphql-js'] satisfies GraphQLOptions['engine'][];

describe.each(ENGINES)('the option timeout, under %s', (engine) => {
  it('graphqlHTTP ends a slow operation with OPERATION_TIMEOUT, and reports it once', async () => {
    const url = await serve({ engine });
    const response = await post(url, { query: 'query Slow { quick never }' });
    expect([response.status, await response.json()]).toEqual([200, LATE]);
    const strict = await post(url, { query: 'query Slow { never }' }, GRAPHQL);
    expect([strict.status, strict.headers.get('content-type'), await strict.json()]).toEqual([
      504,
      `${GRAPHQL}; charset=utf-8`,
      LATE,
    ]);
    const report = `The operation "Slow" was not complete after ${SHORT} ms (option "timeout")`;
    expect(reports).toEqual([report, report]);
  });

  it('graphqlHTTP aborts the signal of the resolvers of a slow operation', async () => {
    const url = await serve({ engine });
    await post(url, { query: '{ never }' });
    expect(signals.map((signal) => signal?.reason?.name)).toEqual(['TimeoutError']);
  });

  it('graphqlHTTP starts no later mutation of an operation that took too long, and reports nothing more', async () => {
    const url = await serve({ engine });
    const response = await post(url, { query: 'mutation Two { first: change second: change }' }, GRAPHQL);
    expect([response.status, await response.json()]).toEqual([504, LATE]);
    for (const end of release.splice(0)) end();
    // A later response shows that the event loop has run.
    await post(url, { query: '{ quick }' });
    expect([signals.length, reports.length]).toEqual([1, 1]);
  });

  it('the resolver of a subscription, and those of its events, have a signal that the client aborts by leaving', async () => {
    const seen: AbortSignal[] = [];
    const note = (_args: unknown, _context: unknown, info: Info): void =>
      void seen.push(info.getAbortSignal?.() as AbortSignal);
    const events = {
      event: async function* (...args: Parameters<typeof note>) {
        note(...args);
        yield {
          event: (...more: Parameters<typeof note>) => {
            note(...more);
            return new Promise((_resolve, reject) =>
              seen[1]?.addEventListener('abort', () => reject(seen[1]?.reason)),
            );
          },
        };
      },
    };
    const url = await serve({ engine, rootValue: events, timeout: false });
    const client = await ready(url.replace('http', 'ws'), MODERN);
    client.send({ id: '1', type: 'subscribe', payload: { query: 'subscription { event }' } });
    await until(() => seen.length === 2);
    expect(seen.map(({ aborted }) => aborted)).toEqual([false, false]);
    client.send({ id: '1', type: 'complete' });
    await until(() => seen.every(({ aborted }) => aborted));
    await client.close();
    await post(url, { query: '{ __typename }' });
    expect(reports).toEqual([]);
  });

  it('graphqlHTTP ends a slow operation over GET', async () => {
    const url = await serve({ engine });
    const response = await fetch(`${url}?query={never}`, { headers: { accept: GRAPHQL } });
    expect([response.status, await response.json()]).toEqual([504, LATE]);
  });

  it('graphqlHTTP keeps the other results of a batch with a slow operation', async () => {
    const url = await serve({ engine, batching: true });
    const response = await post(url, [{ query: '{ never }' }, { query: '{ quick }' }], GRAPHQL);
    expect([response.status, await response.json()]).toEqual([200, [LATE, { data: { quick: 'quick' } }]]);
    const variables = [{ id: 1 }, { id: 2 }];
    const list = await post(url, { query: 'query ($id: Int) { never(id: $id) }', variables }, GRAPHQL);
    expect([list.status, await list.json()]).toEqual([
      504,
      [
        { ...LATE, variableIndex: 0 },
        { ...LATE, variableIndex: 1 },
      ],
    ]);
  });

  it.each([MODERN, LEGACY])(
    'graphqlHTTP ends a slow operation over %s, and keeps the socket',
    async (protocol) => {
      const url = (await serve({ engine })).replace('http', 'ws');
      const client = await ready(url, protocol);
      const start = protocol === MODERN ? 'subscribe' : 'start';
      client.send({ id: '1', type: start, payload: { query: '{ never }' } });
      const payload = protocol === MODERN ? LATE.errors : LATE.errors[0];
      const ended = await client.until(({ type }) => type === 'error');
      expect(ended.at(-1)).toEqual({ id: '1', type: 'error', payload });
      client.send({ id: '1', type: start, payload: { query: '{ quick }' } });
      const answers = await client.until(({ type }) => type === 'complete');
      expect(answers[0]).toMatchObject({ payload: { data: { quick: 'quick' } } });
      await client.close();
    },
  );

  it('graphqlHTTP ends a slow event of a subscription, which continues', async () => {
    const url = (await serve({ engine })).replace('http', 'ws');
    const client = await ready(url);
    client.send({ id: '1', type: 'subscribe', payload: { query: 'subscription { event }' } });
    const results = [await client.next(), await client.next(), await client.next()];
    expect(results.map(({ payload }) => payload)).toEqual([
      { data: { event: 'first' } },
      LATE,
      { data: { event: 'third' } },
    ]);
    await client.close();
  });

  it('graphqlHTTP ends a subscription whose source is not open in time, and closes it when it opens', async () => {
    const url = (await serve({ engine })).replace('http', 'ws');
    const client = await ready(url);
    client.send({ id: '1', type: 'subscribe', payload: { query: 'subscription { late }' } });
    expect(await client.next()).toEqual({ id: '1', type: 'error', payload: LATE.errors });
    for (const open of release) open();
    await until(() => returned === 1);
    await client.close();
  });

  it('graphqlHTTP ends a slow event of an event stream, which continues', async () => {
    const url = await serve({ engine });
    const response = await post(url, { query: 'subscription { event }' }, 'text/event-stream');
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let text = '';
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      text += Buffer.from(read.value).toString();
      if (text.includes('third')) break;
    }
    const payloads = [...text.matchAll(/data: (\{.*\})/g)].map(([, json]) => JSON.parse(json as string));
    expect(payloads).toEqual([{ data: { event: 'first' } }, LATE, { data: { event: 'third' } }]);
    await reader.cancel();
  });

  if (V17) {
    it('graphqlHTTP completes the parts of a slow incremental response with the error', async () => {
      const url = await serve({ engine });
      const query = '{ quick ... @defer { never } }';
      const response = await post(url, { query }, 'multipart/mixed;incrementalSpec=v0.2');
      const text = await response.text();
      expect(text).toContain('"data":{"quick":"quick"}');
      const [, last] = text.split(/\r\n---\r\n/).slice(-2);
      expect(JSON.parse((last ?? '').split('\r\n\r\n')[1]?.split('\r\n')[0] ?? '')).toEqual({
        completed: [{ id: '0', errors: LATE.errors }],
        hasNext: false,
      });
    });
  }
});

describe('the option timeout', () => {
  it.each([false, Number.POSITIVE_INFINITY] as const)(
    'graphqlHTTP waits for slow operations with timeout: %p',
    async (timeout) => {
      const url = await serve({ timeout });
      const answer = post(url, { query: '{ never }' });
      await until(() => release.length === 1);
      const began = Date.now();
      await until(() => Date.now() - began > SHORT * 2);
      for (const resolve of release) resolve();
      expect(await (await answer).json()).toEqual({ data: { never: 'late' } });
    },
  );

  it('graphqlHTTP limits the time of the functions context and onOperation', async () => {
    const pending = (): Promise<never> => new Promise(() => undefined);
    let url = await serve({ context: pending });
    let response = await post(url, { query: '{ quick }' }, GRAPHQL);
    expect([response.status, await response.json()]).toEqual([504, LATE]);
    await running?.close();
    url = await serve({ context: (_source, { operation }) => operation && pending() });
    const client = await ready(url.replace('http', 'ws'));
    client.send({ id: '1', type: 'subscribe', payload: { query: '{ quick }' } });
    expect(await client.next()).toEqual({ id: '1', type: 'error', payload: LATE.errors });
    await client.close();
    await running?.close();
    url = await serve({ onOperation: pending });
    response = await post(url, { query: '{ quick }' }, GRAPHQL);
    expect([response.status, await response.json()]).toEqual([504, LATE]);
  });

  it('graphqlHTTP ends the wait for the functions of the schema and of trusted documents', async () => {
    const pending = (): Promise<never> => new Promise(() => undefined);
    let url = await serve({ documents: { from: pending } });
    let response = await post(url, { documentId: 'any' }, GRAPHQL);
    expect([response.status, await response.json()]).toEqual([504, LATE]);
    await running?.close();
    const handler = graphqlHTTP(pending, { timeout: SHORT, onError: (error) => void reports.push(error) });
    running = await run((req, res) => handler(req, res));
    url = running.url;
    response = await post(url, { query: '{ quick }' }, GRAPHQL);
    expect([response.status, await response.json()]).toEqual([504, LATE]);
    expect(reports).toHaveLength(2);
  });

  describe.each([
    [MODERN, 'subscribe'],
    [LEGACY, 'start'],
  ])('over %s', (protocol, start) => {
    const pending = (): Promise<never> => new Promise(() => undefined);
    const byId = (id: string, documentId: string): object => ({
      id,
      type: start,
      payload: { extensions: {}, documentId },
    });

    it('attachSubscriptions ends the wait for the function of trusted documents', async () => {
      const from = (id: string): Promise<string> | string => (id === 'quick' ? '{ quick }' : pending());
      const url = (await serve({ documents: { from } }, { ping: false })).replace('http', 'ws');
      const client = await ready(url, protocol);
      client.send(byId('1', 'slow'));
      client.send(byId('2', 'slow'));
      client.send(byId('3', 'quick'));
      const messages = await client.until(({ type }) => type === 'complete');
      const payload = protocol === MODERN ? LATE.errors : LATE.errors[0];
      expect(messages.slice(0, 2)).toEqual([
        { id: '1', type: 'error', payload },
        { id: '2', type: 'error', payload },
      ]);
      expect(messages[2]).toMatchObject({ id: '3', payload: { data: { quick: 'quick' } } });
      expect(reports).toHaveLength(2);
      client.send(byId('1', 'quick'));
      expect(await client.next()).toMatchObject({ id: '1', payload: { data: { quick: 'quick' } } });
      await client.close();
    });

    const closed = async (url: string): Promise<unknown[]> => {
      const client = await connect(url.replace('http', 'ws'), protocol);
      client.send({ type: 'connection_init' });
      const { code, reason } = await client.closed;
      return [...client.received, code, reason];
    };
    const reason = 'Connection acknowledgement timeout';
    const refused =
      protocol === MODERN
        ? [4504, reason]
        : [{ type: 'connection_error', payload: { message: reason } }, 1011, reason];
    const report = `The acceptance of a connection was not complete after ${SHORT} ms (option "timeout")`;

    it('attachSubscriptions closes a socket whose schema or context is not there in time', async () => {
      const onError = (error: unknown): void => void reports.push((error as Error).message);
      const handler = graphqlHTTP(pending, { timeout: SHORT, onError });
      running = await run((req, res) => handler(req, res));
      attachSubscriptions(running.server, handler, { path: '/graphql' });
      expect(await closed(running.url)).toEqual(refused);
      await running.close();
      expect(await closed(await serve({ context: pending }))).toEqual(refused);
      expect(reports).toEqual([report, report]);
    });

    it('attachSubscriptions closes a socket whose onConnect is late, and calls onClose when it returns', async () => {
      const ends: SubscriptionEnd[] = [];
      let accept: () => void = () => undefined;
      const url = await serve(
        {},
        {
          onConnect: () => new Promise<void>((resolve) => (accept = resolve)),
          onClose: (_connection, end) => ends.push(end),
        },
      );
      expect(await closed(url)).toEqual(refused);
      expect(reports).toEqual([report]);
      await until(() => attached?.stats().connections === 0);
      expect(ends).toEqual([]);
      accept();
      await until(() => ends.length === 1);
      expect(ends).toMatchObject([{ accepted: true }]);
      expect(attached?.stats()).toMatchObject({ connections: 0, operations: 0 });
    });
  });

  it('graphqlHTTP passes the error of a timeout through formatError and statusCodes', async () => {
    const url = await serve({
      formatError: (error) => ({ ...error, message: 'zu langsam' }),
      statusCodes: ({ kind, status }) => (kind === 'refused' ? 503 : status),
    });
    const response = await post(url, { query: '{ never }' });
    expect([response.status, ((await response.json()) as typeof LATE).errors[0]?.message]).toEqual([
      503,
      'zu langsam',
    ]);
  });

  it('graphqlHTTP never stores the result of a timeout, and sends an expired one within staleIfError', async () => {
    const url = await serve({ responseCache: { staleIfError: '1h' }, httpCache: { defaultMaxAge: 1 } });
    const ask = async (query: string) => (await post(url, { query })).json();
    const first = ask('{ never }');
    await until(() => release.length === 1);
    release[0]?.();
    expect(await first).toEqual({ data: { never: 'late' } });
    expect([await ask('{ a: never }'), await ask('{ a: never }')]).toEqual([LATE, LATE]);
    const stored = Date.now();
    await until(() => Date.now() - stored > 1000);
    expect(await ask('{ never }')).toEqual({ data: { never: 'late' } });
    expect(release).toHaveLength(4);
  });

  it('graphqlHTTP ends a slow mutation, whose stored results are invalidated', async () => {
    const url = await serve({ responseCache: true });
    const response = await post(url, { query: 'mutation { change }' }, GRAPHQL);
    expect([response.status, await response.json()]).toEqual([504, LATE]);
  });
});
