/** @tags graphql */
import express from 'express';
import { createClient } from 'graphql-ws';
import request from 'supertest';
import WebSocket from 'ws';
import { attachSubscriptions, type GraphQLOptions, graphqlHTTP } from '../../middleware/index.ts';
import { createPubSub } from '../../middleware/pubsub.ts';
import { listen } from '../kit.ts';
import { until } from '../until.ts';
import { createBlog, serveBlog, TAG_DIRECTIVE } from './blog.ts';
import { appOf, ENGINES, get, schemaOf } from './service.ts';

const send = (app: express.Express, query: string, variables?: object): request.Test =>
  request(app).post('/graphql').send({ query, variables });

/** Whether the result of a query is in the cache. Stores it otherwise. */
const isStored = async (app: express.Express, query: string): Promise<boolean> =>
  (await get(app, query)).headers.age !== undefined;

describe.each(ENGINES)('with the engine %s', (_name, engine) => {
  /** The tags of a query, read from the header for CDNs. */
  const tagsOf = async (
    query: string,
    variables?: object,
    options: GraphQLOptions = {},
  ): Promise<string[]> => {
    const { app } = serveBlog(createBlog(), { engine, httpCache: { tags: 'Cache-Tag' }, ...options });
    const { headers } = await get(app, query, variables);
    return (headers['cache-tag'] ?? '').split(',').filter(Boolean).sort();
  };

  it.each<[string, object | undefined, string[]]>([
    ['{ post(id: 1) { title } }', undefined, ['post-1']],
    ['query ($id: ID!) { post(id: $id) { title } }', { id: 'a b,c"' }, ['post-a%20b%2Cc%22']],
    ['query ($id: ID! = 2) { post(id: $id) { title } }', undefined, ['post-2']],
    ['query ($id: ID! = 2) { post(id: $id) { title } }', { id: 3 }, ['post-3']],
    ['{ posts { title } }', undefined, ['post-1', 'post-2', 'post-3', 'posts']],
    ['{ posts(author: "b") { author { name } } }', undefined, ['post-3', 'posts', 'user-b']],
    [
      '{ a: post(id: 1) { id } ...F } fragment F on Query { post(id: 9) { id } }',
      undefined,
      ['post-1', 'post-9'],
    ],
  ])('@cacheTag adds the tags of fields and objects: %s', async (query, variables, tags) => {
    expect(await tagsOf(query, variables)).toEqual(tags);
  });

  it.each([
    ['{ hit { ... on Book { title } } }', ['authors', 'books', 'items']],
    ['{ hit { __typename } }', ['authors', 'books', 'items']],
    ['{ item { id } }', ['books', 'items']],
    ['{ items { id } }', ['books', 'items']],
  ])('a field has the tags of all object types that its values may have: %s', async (query, tags) => {
    const schema = schemaOf(
      `${TAG_DIRECTIVE}
      type Query { hit: Hit @cacheControl(maxAge: 60) item: Item @cacheControl(maxAge: 60) items: [Item] @cacheControl(maxAge: 60) }
      union Hit = Book | Author
      interface Item @cacheTag(format: "items") { id: ID }
      type Book implements Item @cacheTag(format: "books") { id: ID title: String }
      type Author @cacheTag(format: "authors") { name: String }`,
    );
    const book = { __typename: 'Book', id: 1, title: 'title' };
    const rootValue = { hit: book, item: book, items: [] };
    const app = appOf(schema, {
      engine,
      rootValue,
      responseCache: true,
      httpCache: { tags: 'Cache-Tag' },
    });
    const { headers, body } = await get(app, query);
    expect(body.errors).toBeUndefined();
    expect(headers['cache-tag']?.split(',').sort()).toEqual(tags);
  });

  it.each([
    ['{ node(id: 1) { id } }', ['node-1']],
    ['{ node(id: 1) { label(text: "a") } }', ['label-a', 'labels']],
    ['{ post { label id } }', ['label-none', 'labels', 'node-1']],
  ])('a field has the tags of the same field in the interfaces of its type: %s', async (query, tags) => {
    const schema = schemaOf(
      `${TAG_DIRECTIVE}
      type Query { node(id: ID): Node @cacheControl(maxAge: 60) post: Post @cacheControl(maxAge: 60) }
      interface Node {
        id: ID @cacheTag(format: "node-{$key.id}")
        label(text: String): Int @cacheTag(format: "label-{$args.text}") @cacheTag(format: "labels")
      }
      type Post implements Node { id: ID label(text: String = "none"): Int }`,
    );
    const post = { __typename: 'Post', id: 1, label: 2 };
    const rootValue = { node: post, post };
    const app = appOf(schema, {
      engine,
      rootValue,
      responseCache: true,
      httpCache: { tags: 'Cache-Tag' },
    });
    const { headers } = await get(app, query);
    expect(headers['cache-tag']?.split(',').sort()).toEqual(tags);
  });

  it('info.cacheControl.tag adds tags', async () => {
    const { app } = serveBlog(
      createBlog({
        Query: {
          post(_: unknown, __: unknown, ___: unknown, info: { cacheControl: { tag(tag: string): void } }) {
            info.cacheControl.tag('dynamic');
            return { id: 1 };
          },
        },
      }),
      { engine },
    );
    const isHit = async (): Promise<boolean> =>
      (await get(app, '{ post(id: 1) { id } }').set('x-tenant', 'a')).headers.age !== undefined;
    expect([await isHit(), await isHit()]).toEqual([false, true]);
  });

  it('handler.invalidate removes the results with a tag, and no others', async () => {
    const { app, handler } = serveBlog(createBlog(), { engine });
    const queries = ['{ post(id: 1) { id } }', '{ post(id: 2) { id } }', '{ posts { id } }'];
    for (const query of queries) await isStored(app, query);
    await handler.invalidate('post-1');
    const stored = [];
    for (const query of queries) stored.push(await isStored(app, query));
    expect(stored).toEqual([false, true, false]);
    await handler.invalidate(['post-2', 'unknown']);
    expect(await isStored(app, queries[1] as string)).toBe(false);
    await handler.invalidate('*');
    for (const query of queries) expect(await isStored(app, query)).toBe(false);
    for (const query of queries) expect(await isStored(app, query)).toBe(true);
  });

  it('a mutation invalidates its tags before its response is sent', async () => {
    const { app } = serveBlog(createBlog(), { engine });
    const query = '{ posts { id title } }';
    for (let round = 0; round < 3; round++) {
      await isStored(app, query);
      expect(await isStored(app, query)).toBe(true);
      const title = `round ${round}`;
      await send(app, 'mutation ($title: String!) { editPost(id: 1, title: $title) { title } }', { title });
      expect((await get(app, query)).body.data.posts[0].title).toBe(title);
    }
    await send(app, 'mutation { addPost(author: "a", title: "new") { title } }');
    expect((await get(app, query)).body.data.posts).toHaveLength(4);
  });

  it('a result whose execution began before an invalidation is not stored', async () => {
    const finish: (() => void)[] = [];
    const blog = createBlog({
      Query: {
        slow(_: unknown, { id }: { id: string }) {
          const post = { ...blog.posts.get(id) };
          return new Promise((resolve) => finish.push(() => resolve(post)));
        },
      },
    });
    let operations = 0;
    const { app, handler } = serveBlog(blog, { engine, onOperation: () => void operations++ });
    await get(app, '{ post(id: 2) { id } }');
    const query = '{ slow(id: 1) { title } }';
    const early = get(app, query).then(({ body }) => body.data.slow.title);
    await until(() => finish.length === 1);
    (blog.posts.get('1') as { title: string }).title = 'new';
    await handler.invalidate('post-1');
    // Waits for the execution in progress, and does not take its old result.
    const late = get(app, query).then(({ body }) => body.data.slow.title);
    // The lookup follows `onOperation`.
    await until(() => operations === 3);
    await new Promise(setImmediate);
    expect(finish).toHaveLength(1);
    finish[0]?.();
    expect(await early).toBe('title 1');
    await until(() => finish.length === 2);
    finish[1]?.();
    expect(await late).toBe('new');
    const last = await get(app, query);
    expect(last.body.data.slow.title).toBe('new');
  });

  it('a mutation over a WebSocket invalidates its tags before its result is sent', async () => {
    const { app, handler } = serveBlog(createBlog(), { engine });
    const { server, socketUrl: url } = await listen(app, '/graphql');
    const sockets = attachSubscriptions(server, handler);
    const client = createClient({
      url,
      webSocketImpl: WebSocket,
    });
    const query = '{ post(id: 1) { title } }';
    await isStored(app, query);
    const title = await new Promise((resolve, reject) => {
      client.subscribe(
        { query: 'mutation { editPost(id: 1, title: "by socket") { title } }' },
        {
          next: () => resolve(get(app, query).then(({ body }) => body.data.post.title)),
          error: reject,
          complete: () => undefined,
        },
      );
    });
    expect(title).toBe('by socket');
    await client.dispose();
    await sockets.close();
  });

  it('an event of a subscription invalidates its tags before it is sent', async () => {
    const events = createPubSub<{ edited: { id: string } }>();
    const blog = createBlog();
    const field = blog.schema.getSubscriptionType()?.getFields().postEdited;
    if (field === undefined) throw new Error('no field');
    field.subscribe = () => events.subscribe('edited');
    field.resolve = (event) => blog.posts.get((event as { id: string }).id);
    const { app, handler } = serveBlog(blog, { engine });
    const { server, socketUrl: url } = await listen(app, '/graphql');
    const sockets = attachSubscriptions(server, handler, { share: () => 'all' });
    const client = createClient({
      url,
      webSocketImpl: WebSocket,
    });
    const query = '{ posts { title } }';
    await isStored(app, query);
    expect(await isStored(app, query)).toBe(true);
    const title = new Promise((resolve, reject) => {
      client.subscribe(
        { query: 'subscription { postEdited { id } }' },
        {
          next: () => resolve(get(app, query).then(({ body }) => body.data.posts[1].title)),
          error: reject,
          complete: () => undefined,
        },
      );
    });
    while ((await events.stats()).streams === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    (blog.posts.get('2') as { title: string }).title = 'edited';
    await events.publish('edited', { id: '2' });
    expect(await title).toBe('edited');
    await client.dispose();
    await sockets.close();
    await events.close();
  });
});

describe('the headers of tags', () => {
  it.each([
    ['Cache-Tag', 'post-1,post-2'],
    ['Surrogate-Key', 'post-1 post-2'],
    ['xkey', 'post-1 post-2'],
  ] as const)('the header %s lists the tags for CDNs, also of stored results', async (tags, expected) => {
    const { app } = serveBlog(createBlog(), { httpCache: { tags } });
    for (let count = 0; count < 2; count++) {
      const { headers } = await get(app, '{ post(id: 1) { id } again: post(id: 2) { id } }');
      expect(headers[tags.toLowerCase()]).toBe(expected);
    }
  });
});

describe('wrong tags', () => {
  it('a result is not stored if an object has no value for its tag', async () => {
    let calls = 0;
    const schema = schemaOf(
      `${TAG_DIRECTIVE}
      type Query { post: Post @cacheControl(maxAge: 60) }
      type Post @cacheTag(format: "post-{$key.id}") { title: String }`,
      { Query: { post: () => ({ title: `${++calls}` }) } },
    );
    const app = express().use('/graphql', graphqlHTTP(schema, { responseCache: true }));
    for (let count = 0; count < 3; count++) await get(app, '{ post { title } }');
    expect(calls).toBe(3);
  });
});
