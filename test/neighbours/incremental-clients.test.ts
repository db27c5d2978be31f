import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { incrementalSchema, V17 } from '../streaming/incremental-schema.ts';
import { type Served, serve, stopAll } from '../streaming/serve.ts';
import { until } from '../until.ts';

const closing: (() => void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) close();
  await stopAll();
});

async function serveIncremental() {
  const { schema, calls } = incrementalSchema();
  const handler = graphqlHTTP(schema, { graphiql: false, onError: false });
  const server = createServer((req, res) => handler(req, res));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { uri: `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`, calls };
}

interface Observer {
  next(result: { data?: unknown; error?: unknown }): void;
  error(error: unknown): void;
  complete(): void;
}
interface Observable {
  subscribe(observer: Observer): { unsubscribe(): void };
}

/** Checks that a client receives events as they are published, and that it ends the source. */
async function subscribes({ live }: Served, subscribe: () => Observable): Promise<void> {
  const seen: unknown[] = [];
  const subscription = subscribe().subscribe({
    next: ({ data }) => seen.push(data),
    error: (error) => seen.push(error),
    complete: () => seen.push('complete'),
  });
  await until(() => live.open === 1);
  for (const event of ['one', 'two']) {
    live.publish('a', event);
    await until(() => JSON.stringify(seen.at(-1)) === JSON.stringify({ events: event }));
  }
  subscription.unsubscribe();
  await until(() => live.open === 0);
}

const SUBSCRIPTION = 'subscription { events(topic: "a") }';
const DEFERRED = '{ hello node { name ... @defer { node { name } } } ... @defer { slow } }';
const WHOLE = { hello: 'world', node: { name: 'n', node: { name: 'inner' } }, slow: 'slow' };

/** Checks that a client shows the first payload before the deferred resolver finishes, and then the whole result. */
async function defers(query: () => Observable, release: () => void): Promise<void> {
  const seen: unknown[] = [];
  query().subscribe({
    next: ({ data, error }) => seen.push(JSON.parse(JSON.stringify(error ?? data ?? null))),
    error: (error) => seen.push(error),
    complete: () => undefined,
  });
  if (V17) await until(() => JSON.stringify(seen).includes('world'));
  if (V17) expect(JSON.stringify(seen)).not.toContain('"slow":"slow"');
  release();
  await until(() => JSON.stringify(seen).includes('"slow":"slow"'));
  expect(seen.at(-1)).toMatchObject(WHOLE);
}

describe('Apollo Client over HTTP', () => {
  it("Apollo Client 4 subscribes through HttpLink without another package, by Apollo's multipart protocol", async () => {
    const { ApolloClient, gql, HttpLink, InMemoryCache } = await import('@apollo/client/core');
    const served = await serve();
    const client = new ApolloClient({ link: new HttpLink({ uri: served.url }), cache: new InMemoryCache() });
    await subscribes(served, () => client.subscribe({ query: gql(SUBSCRIPTION) }));
    client.stop();
  });

  it('Apollo Client 3 subscribes through HttpLink without another package', async () => {
    const { ApolloClient, gql, HttpLink, InMemoryCache } = await import('apollo-client3/core');
    const served = await serve();
    const client = new ApolloClient({ link: new HttpLink({ uri: served.url }), cache: new InMemoryCache() });
    await subscribes(served, () => client.subscribe({ query: gql(SUBSCRIPTION) }));
    client.stop();
  });

  it.each(['GraphQL17Alpha9Handler', 'Defer20220824Handler'] as const)(
    'Apollo Client 4 merges the payloads of a deferred query with %s',
    async (name) => {
      const { ApolloClient, gql, HttpLink, InMemoryCache } = await import('@apollo/client/core');
      const handlers = await import('@apollo/client/incremental');
      const { uri, calls } = await serveIncremental();
      const incrementalHandler = { incrementalHandler: new handlers[name]() };
      const client = new ApolloClient({
        link: new HttpLink({ uri }),
        cache: new InMemoryCache(),
        ...(incrementalHandler as object),
      });
      await defers(
        () => client.watchQuery({ query: gql(DEFERRED) }),
        () => calls.release(),
      );
      client.stop();
    },
  );

  it('Apollo Client 3 merges the payloads of a deferred query', async () => {
    const { ApolloClient, gql, HttpLink, InMemoryCache } = await import('apollo-client3/core');
    const { uri, calls } = await serveIncremental();
    const client = new ApolloClient({ link: new HttpLink({ uri }), cache: new InMemoryCache() });
    await defers(
      () => client.watchQuery({ query: gql(DEFERRED) }),
      () => calls.release(),
    );
    client.stop();
  });
});
