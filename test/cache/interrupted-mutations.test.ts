/** @tags once slow */
import * as http from 'node:http';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { attachSubscriptions, graphqlHTTP, type Subscriptions } from '../../middleware/index.ts';
import type { CacheStore } from '../../types/response-cache.ts';
import { DIRECTIVES, V17 } from '../graphql/incremental-schema.ts';
import { atEnd, listen } from '../kit.ts';
import { until } from '../until.ts';
import { TAG_DIRECTIVE } from './blog.ts';
import { ENGINES, schemaOf } from './service.ts';

interface Service {
  readonly server: http.Server;
  readonly url: string;
  readonly sockets: Subscriptions;
  /** Finishes the call of the slow resolver that waits. */
  finish(): void;
  readonly waiting: number;
  /** The name of the post, and whether the result was stored. */
  read(): Promise<{ name: string; isStored: boolean }>;
}

type Engine = (typeof ENGINES)[number][1];

/** Whether the engine executes `@defer`. */
const defers = (engine: Engine): boolean => V17 && typeof engine !== 'function';

async function serve(engine: Engine): Promise<Service> {
  let name = 'old';
  const waiting: (() => void)[] = [];
  const slowly = (): Promise<void> => new Promise((resolve) => waiting.push(resolve));
  const schema = schemaOf(
    `${defers(engine) ? DIRECTIVES : ''} ${TAG_DIRECTIVE}
    type Query { post: Post @cacheControl(maxAge: 60) }
    type Mutation { edit(name: String!): Post, slow: Int }
    type Post @cacheTag(format: "post-{$key.id}") { id: ID!, name: String @cacheControl(maxAge: 60) }`,
    {
      Query: { post: () => ({ id: 1, name }) },
      Mutation: {
        async edit(_: unknown, args: { name: string }) {
          await slowly();
          name = args.name;
          return { id: 1, name };
        },
        slow: () => slowly().then(() => 1),
      },
    },
  );
  const handler = graphqlHTTP(schema, { responseCache: true, engine });
  const { server, url } = await listen((req, res) => handler(req, res), '/graphql');
  const sockets = attachSubscriptions(server, handler);
  atEnd(() => sockets.close());
  const service = {
    server,
    url,
    sockets,
    finish: () => waiting.shift()?.(),
    get waiting() {
      return waiting.length;
    },
    async read() {
      const response = await send(url, '{ post { name } }');
      const { data } = (await response.json()) as { data: { post: { name: string } } };
      return { name: data.post.name, isStored: response.headers.has('age') };
    },
  };
  await service.read();
  expect(await service.read()).toEqual({ name: 'old', isStored: true });
  return service;
}

const send = (url: string, query: string, init: RequestInit = {}): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    body: JSON.stringify({ query }),
    ...init,
    headers: { 'content-type': 'application/json', ...init.headers },
  });

/** Finishes the resolvers of a mutation whose client has disconnected, and waits until its result is invalidated. */
async function finishWithoutClient({ finish, read }: Service): Promise<void> {
  do {
    finish();
    await new Promise((resolve) => setTimeout(resolve, 5));
  } while ((await read()).name !== 'new');
}

describe.each(ENGINES)('with the engine %s', (_name, engine) => {
  it.each(['mutation { edit(name: "new") { id } }', 'mutation { edit(name: "new") { id } slow }'])(
    'a mutation whose client disconnects continues and invalidates its tags: %s',
    async (query) => {
      const service = await serve(engine);
      const client = new AbortController();
      const sent = send(service.url, query, { signal: client.signal }).catch(() => undefined);
      await until(() => service.waiting === 1);
      client.abort();
      await sent;
      await new Promise((resolve) => service.server.getConnections(resolve));
      await finishWithoutClient(service);
    },
  );

  it('a mutation over a socket whose client disconnects continues and invalidates its tags', async () => {
    const service = await serve(engine);
    const url = service.url.replace('http', 'ws');
    const client = createClient({ url, webSocketImpl: WebSocket });
    const sink = { next: () => undefined, error: () => undefined, complete: () => undefined };
    client.subscribe({ query: 'mutation { edit(name: "new") { id } }' }, sink);
    await until(() => service.waiting === 1);
    client.terminate();
    await until(() => service.sockets.stats().connections === 0);
    await finishWithoutClient(service);
    await client.dispose();
  });

  it('a mutation whose errors cannot be formatted invalidates its tags', async () => {
    let name = 'old';
    const schema = schemaOf(
      `${TAG_DIRECTIVE}
      type Query { post: String @cacheControl(maxAge: 60) @cacheTag(format: "post") }
      type Mutation { edit(name: String!): Int @cacheTag(format: "post"), fail: Int }`,
      {
        Query: { post: () => name },
        Mutation: {
          edit: (_: unknown, args: { name: string }) => {
            name = args.name;
          },
          fail() {
            throw new Error('down');
          },
        },
      },
    );
    const formatError = (): never => {
      throw new Error('wrong formatError');
    };
    const handler = graphqlHTTP(schema, { responseCache: true, engine, formatError, onError: false });
    const server = http.createServer((req, res) => handler(req, res));
    const { url } = await listen(server, '/graphql');
    const sockets = attachSubscriptions(server, handler);
    const read = async (): Promise<unknown> => (await send(url, '{ post }')).text();
    for (let count = 0; count < 2; count++) expect(await read()).toBe('{"data":{"post":"old"}}');
    expect((await send(url, 'mutation { edit(name: "new") fail }')).status).toBe(200);
    for (let count = 0; count < 2; count++) expect(await read()).toBe('{"data":{"post":"new"}}');
    const client = createClient({ url: url.replace('http', 'ws'), webSocketImpl: WebSocket });
    await new Promise((resolve) =>
      client.subscribe(
        { query: 'mutation { edit(name: "newest") fail }' },
        { next: resolve, error: resolve, complete: () => undefined },
      ),
    );
    expect(await read()).toBe('{"data":{"post":"newest"}}');
    await client.dispose();
    await sockets.close();
  });

  it('a mutation with @defer invalidates the tags of its deferred parts', async () => {
    const query = `mutation { edit(name: "new") { ${defers(engine) ? '... @defer { id }' : 'id'} } }`;
    const service = await serve(engine);
    const sent = send(service.url, query, { headers: { accept: 'multipart/mixed, application/json' } });
    await until(() => service.waiting === 1);
    service.finish();
    await (await sent).text();
    expect(await service.read()).toEqual({ name: 'new', isStored: false });

    const client = createClient({ url: service.url.replace('http', 'ws'), webSocketImpl: WebSocket });
    const completed = new Promise<void>((resolve, reject) =>
      client.subscribe(
        { query: query.replace('new', 'newest') },
        { next: () => undefined, error: reject, complete: resolve },
      ),
    );
    await until(() => service.waiting === 1);
    service.finish();
    await completed;
    expect(await service.read()).toEqual({ name: 'newest', isStored: false });
    await client.dispose();
  });
});

it.each([
  ['asynchronous', async () => 1],
  ['synchronous', () => 1],
])('the response to a mutation whose errors cannot be formatted waits for the store: %s', async (_, edit) => {
  let isInvalidated = false;
  const store: CacheStore = {
    get: () => ({ entry: undefined, version: 1 }),
    set: () => false,
    async invalidate() {
      await new Promise((resolve) => setTimeout(resolve, 10));
      isInvalidated = true;
    },
  };
  const fail = (): never => {
    throw new Error('failed');
  };
  const schema = schemaOf(
    `${TAG_DIRECTIVE} type Query { a: Int } type Mutation { edit: Int @cacheTag(format: "a"), fail: Int }`,
    { Mutation: { edit, fail } },
  );
  const handler = graphqlHTTP(schema, { responseCache: { store }, onError: false, formatError: fail });
  const server = http.createServer((req, res) => handler(req, res));
  const { url } = await listen(server, '/graphql');
  const sockets = attachSubscriptions(server, handler);
  expect((await send(url, 'mutation { edit fail }')).status).toBe(200);
  expect(isInvalidated).toBe(true);

  isInvalidated = false;
  const client = createClient({ url: url.replace('http', 'ws'), webSocketImpl: WebSocket });
  await new Promise((resolve) =>
    client.subscribe(
      { query: 'mutation { edit fail }' },
      { next: resolve, error: resolve, complete: () => undefined },
    ),
  );
  expect(isInvalidated).toBe(true);
  await client.dispose();
  await sockets.close();
});
