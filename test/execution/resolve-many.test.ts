/** @tags graphql */
import { makeExecutableSchema } from '@graphql-tools/schema';
import { type ExecutionArgs, execute, GraphQLError, type GraphQLSchema, versionInfo } from 'graphql';
import { type GraphQLOptions, graphqlHTTP, type ResolveMany } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { type Running, run } from '../graphql/server.ts';
import { ready } from '../live/client.ts';
import { until } from '../until.ts';

const V17 = versionInfo.major >= 17;

const ENGINES: readonly [string, GraphQLOptions['engine']][] = [
  ['compiled', 'compiled'],
  ['graphql-js', 'graphql-js'],
  ['function', (args: ExecutionArgs) => execute(args)],
];

const DEFER = 'directive @defer(if: Boolean! = true, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT';
const TYPES = `
  directive @cacheControl(maxAge: Int) on FIELD_DEFINITION
  directive @authenticated on FIELD_DEFINITION
  interface Node { id: ID }
  type Author implements Node { id: ID, articles(first: Int = 2): [Article] @cacheControl(maxAge: 5) }
  type Article implements Node {
    id: ID
    author: Author
    editor: Author!
    secret: String @authenticated
    views: Int
  }
  type Query { articles: [Article], nodes: [Node], count: Int }
  type Mutation { add(id: ID): Article }
  type Subscription { added: Article }
`;

interface Item {
  readonly __typename: string;
  readonly id: string;
}

const article = (id: string): Item => ({ __typename: 'Article', id });
const author = (id: string): Item => ({ __typename: 'Author', id });

/** What resolvers were called with, one entry for each call. */
let calls: { field: string; ids: string[]; args: object; context: unknown; path: string }[] = [];
let reports: unknown[] = [];
let running: Running | undefined;

/** A batch resolver that returns an author, articles, or the result of `value`, for each parent. */
const many =
  (field: string, value: (parent: Item, args: Record<string, unknown>) => unknown): ResolveMany<Item> =>
  async (parents, args, context, { path }) => {
    calls.push({ field, ids: parents.map(({ id }) => id), args, context, path: pathOf(path) });
    return parents.map((parent) => value(parent, args));
  };

type Path = Parameters<ResolveMany>[3]['path'];
const pathOf = (path: Path | undefined): string =>
  path === undefined ? '' : `${pathOf(path.prev)}/${path.key}`;

const manyAuthors = many('author', ({ id }) => (id === '3' ? null : author(`author of ${id}`)));

function schemaOf(
  fields: Record<string, ResolveMany<Item> | unknown> = {},
  more: object = {},
  directives = '',
): GraphQLSchema {
  const batched = (name: string, resolveMany: unknown) => ({
    [name]: { extensions: { resolveMany: name in fields ? fields[name] : resolveMany } },
  });
  const resolvers = {
    Query: {
      articles: () => [article('1'), null, article('2'), Promise.resolve(article('3'))],
      nodes: () => [article('1'), author('2'), article('3')],
    },
    Article: {
      ...batched('author', manyAuthors),
      ...batched('editor', manyAuthors),
      ...batched(
        'secret',
        many('secret', ({ id }) => `secret of ${id}`),
      ),
    },
    Author: batched(
      'articles',
      many('articles', ({ id }, { first }) =>
        Array.from({ length: first as number }, (_, index) => article(`${index} by ${id}`)),
      ),
    ),
    Mutation: batched(
      'add',
      many('add', (_root, { id }) => article(id as string)),
    ),
    Subscription: {
      added: {
        async *subscribe() {
          yield article('event 1');
          yield article('event 2');
        },
        extensions: { resolveMany: many('added', ({ id }) => article(`added by ${id}`)) },
      },
    },
    ...more,
  };
  return makeExecutableSchema({ typeDefs: `${directives} ${TYPES}`, resolvers });
}

type Body = { data?: Record<string, unknown> | null; errors?: { message: string; path: unknown }[] };

async function serve(schema: Parameters<typeof graphqlHTTP>[0], options: GraphQLOptions = {}) {
  const handler = graphqlHTTP(schema, { auth: false, onError: (error) => reports.push(error), ...options });
  running = await run((req, res) => void handler(req, res));
  attachSubscriptions(running.server, handler, { path: '/graphql' });
  const { url } = running;
  const send = (query: string, headers: object = {}, signal: AbortSignal | null = null): Promise<Response> =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query }),
      signal,
    });
  const ask = async (query: string): Promise<Body> => (await send(query)).json();
  return { handler, url, send, ask };
}

const messages = ({ errors = [] }: Body) =>
  errors.map(({ message, path }) => [message, (path as []).join('.')]);

beforeEach(() => {
  calls = [];
  reports = [];
});

afterEach(async () => {
  await running?.close();
  running = undefined;
});

describe.each(ENGINES)('resolveMany in the engine %s', (_name, engine) => {
  it('is called once for the objects of each level of lists, without nulls', async () => {
    const { ask } = await serve(schemaOf(), { engine, context: { user: 'me' } });
    const { data, errors } = await ask('{ articles { author { id articles(first: 1) { id } } } }');
    expect(errors).toBeUndefined();
    const expected = (id: string) => ({
      author: { id: `author of ${id}`, articles: [{ id: `0 by author of ${id}` }] },
    });
    expect(data).toEqual({ articles: [expected('1'), null, expected('2'), { author: null }] });
    const { context } = calls[0] as (typeof calls)[0];
    expect(context).toEqual({ user: 'me' });
    expect(calls).toEqual([
      { field: 'author', ids: ['1', '2', '3'], args: {}, context, path: '/articles/0/author' },
      {
        field: 'articles',
        ids: ['author of 1', 'author of 2'],
        args: { first: 1 },
        context,
        path: '/articles/0/author/articles',
      },
    ]);
  });

  it('is called for each use of a field, which has its own arguments', async () => {
    const { ask } = await serve(schemaOf(), { engine });
    await ask('{ articles { a: author { articles { id } } b: author { articles(first: 0) { id } } } }');
    expect(calls.map(({ field, args, path }) => [field, { ...args }, path])).toEqual([
      ['author', {}, '/articles/0/a'],
      ['author', {}, '/articles/0/b'],
      ['articles', { first: 2 }, '/articles/0/a/articles'],
      ['articles', { first: 0 }, '/articles/0/b/articles'],
    ]);
  });

  it('is called for the objects of one type of an interface', async () => {
    const { ask } = await serve(schemaOf(), { engine });
    const query = '{ nodes { id ... on Article { author { id } } ... on Author { articles { id } } } }';
    expect((await ask(query)).errors).toBeUndefined();
    expect(calls.map(({ field, ids }) => [field, ids])).toEqual([
      ['author', ['1', '3']],
      ['articles', ['2']],
    ]);
  });

  it('is called for each execution, also of the same document at the same time', async () => {
    let user = 0;
    const { send } = await serve(schemaOf(), { engine, batching: true, context: () => ({ user: ++user }) });
    const query = '{ articles { author { id } } }';
    const response = await fetch(running?.url ?? '', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(Array.from({ length: 3 }, () => ({ query }))),
    });
    expect(await response.json()).toHaveLength(3);
    await Promise.all([send(query), send(query)]);
    expect(calls.map(({ ids, context }) => [ids.length, context])).toEqual(
      [1, 2, 3, 4, 5].map((each) => [3, { user: each }]),
    );
  });

  it('makes an error of an item the error of its parent, reported once', async () => {
    const failing = many('author', ({ id }) => {
      if (id === '1') return new Error('database');
      return id === '2' ? new GraphQLError('Not found') : Promise.reject(new GraphQLError('Late'));
    });
    const { ask } = await serve(schemaOf({ author: failing, editor: failing }), { engine });
    const body = await ask('{ articles { id author { id } } }');
    expect(body.data).toEqual({
      articles: [{ id: '1', author: null }, null, { id: '2', author: null }, { id: '3', author: null }],
    });
    expect(messages(body).sort()).toEqual([
      ['Internal server error', 'articles.0.author'],
      ['Late', 'articles.3.author'],
      ['Not found', 'articles.2.author'],
    ]);
    expect(reports.map(String)).toEqual([expect.stringContaining('database')]);
    const required = await ask('{ articles { id editor { id } } }');
    expect(required.data).toEqual({ articles: [null, null, null, null] });
  });

  it('makes null an error where the type requires a value', async () => {
    const { ask } = await serve(schemaOf(), { engine });
    const body = await ask('{ articles { editor { id } } }');
    expect(body.data).toMatchObject({ articles: [{}, null, {}, null] });
    expect(messages(body)).toEqual([[expect.any(String), 'articles.3.editor']]);
  });

  it.each<[string, ResolveMany<Item>]>([
    ['a rejection', () => Promise.reject(new Error('no connection'))],
    [
      'an exception',
      () => {
        throw new Error('no connection');
      },
    ],
  ])('makes %s the error of each parent', async (_what, author) => {
    const { ask } = await serve(schemaOf({ author }), { engine });
    const body = await ask('{ count articles { id author { id } } }');
    expect(body.data?.['count']).toBeNull();
    expect(messages(body)).toEqual(
      [0, 2, 3].map((index) => ['Internal server error', `articles.${index}.author`]),
    );
    expect(reports.map(String)).toEqual([1, 2, 3].map(() => expect.stringContaining('no connection')));
  });

  it.each([
    ['too few values', () => [null], 'an array of 1 for 3 parents'],
    ['too many values', () => [1, 2, 3, Promise.reject(new Error('unused'))], 'an array of 4 for 3 parents'],
    ['no array', () => ({ length: 3 }), 'no array for 3 parents'],
    ['nothing', () => undefined, 'no array for 3 parents'],
  ])('explains %s in the error of each parent', async (_what, author, expected) => {
    const { ask } = await serve(schemaOf({ author }), { engine });
    const body = await ask('{ articles { author { id } } }');
    expect(messages(body)).toEqual(
      [0, 2, 3].map((index) => ['Internal server error', `articles.${index}.author`]),
    );
    expect(reports).toHaveLength(3);
    for (const report of reports) {
      expect(String(report)).toContain(`resolveMany of Article.author returned ${expected}`);
    }
  });

  it('has one parent in mutations and in the events of subscriptions', async () => {
    const { ask, url } = await serve(schemaOf(), { engine, rootValue: { id: 'root' } });
    const { data } = await ask('mutation { a: add(id: "A") { author { id } } b: add(id: "B") { id } }');
    expect(data).toEqual({ a: { author: { id: 'author of A' } }, b: { id: 'B' } });
    expect(calls.map(({ field, ids }) => [field, ids])).toEqual([
      ['add', ['root']],
      ['author', ['A']],
      ['add', ['root']],
    ]);
    const client = await ready(url);
    client.send({
      id: '1',
      type: 'subscribe',
      payload: { query: 'subscription { added { id author { id } } }' },
    });
    const added = (event: string) => ({
      added: { id: `added by ${event}`, author: { id: `author of added by ${event}` } },
    });
    for (const event of ['event 1', 'event 2']) {
      expect(await client.next()).toMatchObject({ payload: { data: added(event) } });
    }
    await client.close();
  });

  it('is not called for a field that the caller may not see', async () => {
    const { send } = await serve(schemaOf(), {
      engine,
      auth: { mode: 'null', scopes: ({ headers }) => (headers['x-user'] === undefined ? null : []) },
    });
    const refused: Body = await (await send('{ articles { secret } }')).json();
    expect(messages(refused)).toHaveLength(3);
    expect(calls).toEqual([]);
    const seen: Body = await (await send('{ articles { secret } }', { 'x-user': 'me' })).json();
    expect(seen.errors).toBeUndefined();
    expect(calls).toHaveLength(1);
  });

  it('sets the cache hint of all its objects', async () => {
    const hinting: ResolveMany<Item> = (parents, _args, _context, info) => {
      (info as { cacheControl?: { setCacheHint(hint: object): void } }).cacheControl?.setCacheHint({
        maxAge: 60,
      });
      return parents.map(() => []);
    };
    const { url } = await serve(
      schemaOf({ articles: hinting }, { Query: { nodes: () => [author('1'), author('2')] } }),
      { engine, httpCache: { defaultMaxAge: 90 } },
    );
    const query = '{ nodes { ... on Author { articles { id } } } }';
    const { headers } = await fetch(`${url}?query=${encodeURIComponent(query)}`, {
      headers: { 'apollo-require-preflight': '1' },
    });
    expect(headers.get('cache-control')).toContain('max-age=60');
  });

  it('leaves no rejection unhandled if the client has gone', async () => {
    let fail: (reason: Error) => void = () => undefined;
    const pending: ResolveMany<Item> = () => new Promise((_, reject) => (fail = reject));
    const { send, ask } = await serve(schemaOf({ author: pending }), { engine });
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const controller = new AbortController();
    const sent = send('{ articles { author { id } } }', {}, controller.signal).catch(() => 'aborted');
    await until(() => fail.length === 1);
    controller.abort();
    expect(await sent).toBe('aborted');
    fail(new Error('late'));
    expect((await ask('{ count }')).data).toEqual({ count: null });
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});

// Only graphql 17 has incremental delivery.
const INCREMENTAL = V17 ? (['compiled', 'graphql-js'] as const) : [];
for (const engine of INCREMENTAL) {
  it(`resolveMany is called once for the deferred parts of a list in the engine ${engine}`, async () => {
    const { send } = await serve(schemaOf({}, {}, DEFER), { engine });
    const query = '{ articles { id ... @defer { author { id } } } }';
    const text = await (await send(query, { accept: 'multipart/mixed' })).text();
    for (const id of ['1', '2']) expect(text).toContain(`{"id":"author of ${id}"}`);
    expect(calls.map(({ ids }) => ids)).toEqual([['1', '2', '3']]);
  });
}

describe('a wrong resolveMany', () => {
  const both = schemaOf(
    {},
    { Article: { author: { resolve: () => null, extensions: { resolveMany: manyAuthors } } } },
  );

  it.each([
    [
      'that is no function',
      schemaOf({ author: 'authors' }),
      /that of Article\.author is "authors"; accepted: a function/,
    ],
    [
      'on a field of an interface',
      schemaOf(
        {},
        { Node: { __resolveType: () => 'Author', id: { extensions: { resolveMany: manyAuthors } } } },
      ),
      /Node\.id is a field of an interface.* such as A\w+\.id/,
    ],
    ['beside "resolve"', both, /Article\.author has "resolve" too; remove one of them/],
  ])(
    '%s is refused when the handler is created, and when the schema is replaced',
    async (_what, schema, message) => {
      const wrong = { code: 'ERR_OPTION', message: expect.stringMatching(message) };
      expect(() => graphqlHTTP(schema)).toThrow(expect.objectContaining(wrong));
      await expect(graphqlHTTP(schemaOf(), { auth: false }).replace(schema)).rejects.toMatchObject(wrong);
    },
  );

  it.each(['compiled', 'graphql-js'] as const)(
    'is an error of its field if the schema depends on the request (%s)',
    async (engine) => {
      const { ask } = await serve(() => both, { engine });
      const body = await ask('{ articles { id author { id } } }');
      expect(body.data).toMatchObject({ articles: [{ id: '1', author: null }, null, {}, {}] });
      expect(reports).toHaveLength(3);
      expect(String(reports[0])).toContain('Article.author has "resolve" too');
      expect(calls).toEqual([]);
    },
  );
});

it.each(['compiled', 'graphql-js'] as const)(
  'resolveMany: false keeps the resolver of a field (%s)',
  async (engine) => {
    const Article = { author: { resolve: () => author('own'), extensions: { resolveMany: false } } };
    const { ask } = await serve(schemaOf({}, { Article }), { engine });
    expect((await ask('{ articles { author { id } } }')).data).toMatchObject({
      articles: [{ author: { id: 'own' } }, null, {}, {}],
    });
  },
);
