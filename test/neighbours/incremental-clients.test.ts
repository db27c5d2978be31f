/** @tags graphql */
import { meros } from 'meros/browser';
import type { ConcreteRequest, INetwork } from 'relay-runtime';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { codedFetch } from '../compress/coded-fetch.ts';
import { incrementalSchema, V17 } from '../graphql/incremental-schema.ts';
import { atEnd, listen } from '../kit.ts';
import { type Served, serve } from '../live/serve-streams.ts';
import { snippets } from '../snippets.ts';
import { until } from '../until.ts';

async function serveIncremental(options: GraphQLOptions = {}) {
  const { schema, calls } = incrementalSchema();
  const handler = graphqlHTTP(schema, { graphiql: false, onError: false, ...options });
  const { url } = await listen((req, res) => handler(req, res), '/graphql');
  atEnd(() => {});
  return { uri: url, calls };
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

describe('Apollo Client and compressed responses', () => {
  it.each(['@apollo/client/core', 'apollo-client3/core'] as const)(
    '%s reads compressed results, events and deferred payloads',
    async (name) => {
      const { ApolloClient, gql, HttpLink, InMemoryCache } = await import(name);
      const clientOf = (uri: string, options: object = {}) =>
        new ApolloClient({
          link: new HttpLink({ uri, fetch: codedFetch }),
          cache: new InMemoryCache(),
          ...options,
        });
      const served = await serve({ compress: true });
      const client = clientOf(served.url);
      const { data } = await client.query({ query: gql('{ big(bytes: 5000) }') });
      expect(data).toEqual({ big: 'x'.repeat(5000) });
      await subscribes(served, () => client.subscribe({ query: gql(SUBSCRIPTION) }));
      client.stop();
      const { Defer20220824Handler } = await import('@apollo/client/incremental');
      const { uri, calls } = await serveIncremental({ compress: true });
      const handlers =
        name === '@apollo/client/core' ? { incrementalHandler: new Defer20220824Handler() } : {};
      const deferring = clientOf(uri, handlers);
      await defers(
        () => deferring.watchQuery({ query: gql(DEFERRED) }),
        () => calls.release(),
      );
      deferring.stop();
    },
  );
});

/** The network of docs/streaming.md, with the packages that it imports. */
async function relayNetwork(uri: string): Promise<INetwork> {
  const { Network, Observable } = await import('relay-runtime');
  const [{ code = '' } = {}] = snippets('js relay');
  const body = code.replace(/^import .*$/gm, '').replace('export const network =', 'return');
  const create = new Function('meros', 'Network', 'Observable', 'fetch', body);
  return create(meros, Network, Observable, (_: string, init: RequestInit) => fetch(uri, init)) as INetwork;
}

describe('Relay over HTTP', () => {
  it('relay-runtime shows the first payload of a deferred query, and then the deferred fields', async () => {
    const { createOperationDescriptor, Environment, RecordSource, Store } = await import('relay-runtime');
    const { uri, calls } = await serveIncremental();
    const network = await relayNetwork(uri);
    const environment = new Environment({ network, store: new Store(new RecordSource()) });
    const scalar = (name: string) => ({
      kind: 'ScalarField',
      name,
      alias: null,
      args: null,
      storageKey: null,
    });
    const selections = [
      scalar('hello'),
      { kind: 'Defer', if: null, label: 'Q$defer$slow', selections: [scalar('slow')] },
    ];
    const request = {
      kind: 'Request',
      fragment: {
        kind: 'Fragment',
        name: 'Q',
        type: 'Query',
        abstractKey: null,
        argumentDefinitions: [],
        metadata: null,
        selections,
      },
      operation: { kind: 'Operation', name: 'Q', argumentDefinitions: [], selections },
      params: {
        id: null,
        cacheID: 'q',
        name: 'Q',
        operationKind: 'query',
        metadata: {},
        text: 'query Q { hello ... @defer(label: "Q$defer$slow") { slow } }',
      },
    } as ConcreteRequest;
    const operation = createOperationDescriptor(request, {});
    const seen: unknown[] = [];
    const show = (): void => void seen.push({ ...(environment.lookup(operation.fragment).data as object) });
    let isComplete = false;
    environment.execute({ operation }).subscribe({
      next: show,
      error: (error: Error) => seen.push(error),
      complete: () => {
        isComplete = true;
      },
    });
    if (V17) await until(() => seen.length > 0);
    if (V17) expect(seen).toEqual([{ hello: 'world', slow: undefined }]);
    calls.release();
    await until(() => isComplete);
    // Relay ignores the deferred fields of a response that is not incremental.
    expect(seen.at(-1)).toEqual({ hello: 'world', slow: V17 ? 'slow' : undefined });
  });
});
