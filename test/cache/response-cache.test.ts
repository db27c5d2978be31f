/** @tags graphql */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import express from 'express';
import { type ExecutionArgs, type ExecutionResult, execute, GraphQLError } from 'graphql';
import request from 'supertest';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/index.ts';
import { DIRECTIVES, V17 } from '../graphql/incremental-schema.ts';
import { listen } from '../kit.ts';
import { until } from '../until.ts';
import { type Blog, createBlog, serveBlog } from './blog.ts';
import { ENGINES, get, schemaOf } from './service.ts';

const POST = '{ post(id: 1) { id title } }';

const post = (app: express.Express, body: object): request.Test => request(app).post('/graphql').send(body);

/** Sends a query until its result comes from the cache. */
async function store(app: express.Express, query: string): Promise<request.Response> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const response = await get(app, query);
    if (response.headers.age !== undefined) return response;
  }
  throw new Error(`not stored: ${query}`);
}

describe.each(ENGINES)('with the engine %s', (_name, engine) => {
  it('graphqlHTTP sends a stored result without an execution, with the same bytes and headers', async () => {
    const blog = createBlog();
    const { app } = serveBlog(blog, { engine });
    const first = await get(app, POST);
    const second = await get(app, POST);
    expect(blog.calls.post).toBe(1);
    expect(second.text).toBe(first.text);
    expect(first.headers.age).toBeUndefined();
    expect(second.headers.age).toBe('0');
    for (const name of ['cache-control', 'etag', 'vary', 'content-type'])
      expect([name, second.headers[name]]).toEqual([name, first.headers[name]]);
  });

  it('graphqlHTTP neither stores errors nor results without a lifetime', async () => {
    const blog = createBlog({
      Query: {
        unstable: () => {
          blog.calls.unstable = (blog.calls.unstable ?? 0) + 1;
          throw new Error('down');
        },
      },
    });
    const { app } = serveBlog(blog, { engine, onError: false });
    for (let count = 0; count < 3; count++) {
      expect((await get(app, '{ unstable }')).headers.age).toBeUndefined();
      expect((await get(app, '{ uncached }')).headers.age).toBeUndefined();
    }
    expect(blog.calls).toMatchObject({ unstable: 3, uncached: 3 });
  });

  it('graphqlHTTP does not store the results of mutations', async () => {
    const blog = createBlog();
    const { app } = serveBlog(blog, { engine });
    const query = 'mutation { addPost(author: "a", title: "t") { id } }';
    await post(app, { query });
    await post(app, { query });
    expect(blog.posts.size).toBe(5);
  });
});

describe('the key of a stored result', () => {
  let blog: Blog;
  let app: express.Express;
  beforeEach(() => {
    blog = createBlog();
    app = serveBlog(blog, { context: (req) => ({ language: req.headers['accept-language'] }) }).app;
  });

  it('GET and POST share results, also for variables in another order', async () => {
    const query =
      'query ($id: ID!, $other: ID = 2) { post(id: $id) { id } again: post(id: $other) { title } }';
    await get(app, query, { id: '1', other: '3' });
    const second = await post(app, { query, variables: { other: '3', id: '1' } });
    expect(second.headers.age).toBe('0');
    expect(second.body.data.again).toEqual({ title: 'title 3' });
    expect(blog.calls.post).toBe(2);
  });

  it('the response cache ignores the order of members in input objects, and undeclared variables', async () => {
    const query = 'query ($filter: Filter) { search(filter: $filter) { id } }';
    await post(app, { query, variables: { filter: { text: 'a', first: 1, tags: ['x', 'y'] } } });
    await post(app, { query, variables: { filter: { tags: ['x', 'y'], first: 1, text: 'a' }, more: 1 } });
    expect(blog.calls.search).toBe(1);
    await post(app, { query, variables: { filter: { tags: ['y', 'x'], first: 1, text: 'a' } } });
    await post(app, { query, variables: { filter: { text: 'a', first: 1 } } });
    await post(app, { query, variables: { filter: null } });
    await post(app, { query });
    expect(blog.calls.search).toBe(5);
  });

  it('the response cache separates results by variables, operation name and document', async () => {
    const query =
      'query A($id: ID!) { post(id: $id) { id } } query B($id: ID!) { post(id: $id) { id title } }';
    const send = (id: string, operationName: string) =>
      post(app, { query, variables: { id }, operationName });
    for (let round = 0; round < 2; round++) {
      expect((await send('1', 'A')).body.data.post).toEqual({ id: '1' });
      expect((await send('2', 'A')).body.data.post).toEqual({ id: '2' });
      expect((await send('1', 'B')).body.data.post).toEqual({ id: '1', title: 'title 1' });
    }
    expect(blog.calls.post).toBe(3);
  });

  it('the response cache separates results by media type', async () => {
    const types = ['application/json', 'application/graphql-response+json'];
    for (const type of [...types, ...types]) {
      const response = await get(app, POST).set('accept', type);
      expect(response.headers['content-type']).toBe(`${type}; charset=utf-8`);
    }
    expect(blog.calls.post).toBe(2);
  });

  it('the response cache separates results by the values of the headers in "vary"', async () => {
    const languages = ['de', 'en', 'de', 'en', 'de', 'en'];
    for (const language of languages) {
      const { body } = await get(app, '{ greeting }').set('accept-language', language);
      expect(body.data.greeting).toBe(`hello in ${language}`);
    }
    // The first result shows that the header matters, so it is not stored.
    expect(blog.calls.greeting).toBe(3);
  });

  it('the response cache separates results by the headers in "vary" while operations are observed', async () => {
    const subscriber = (): void => undefined;
    subscribe('espalier:graphql:operation', subscriber);
    try {
      for (const language of ['de', 'en', 'de', 'en']) {
        const { body } = await get(app, '{ greeting }').set('accept-language', language);
        expect(body.data.greeting).toBe(`hello in ${language}`);
      }
      expect(blog.calls.greeting).toBe(3);
    } finally {
      unsubscribe('espalier:graphql:operation', subscriber);
    }
  });

  it('results whose headers in "vary" were unknown when their execution began are not stored or shared', async () => {
    const finish: (() => void)[] = [];
    const schema = schemaOf(
      'type Query { text(id: Int!): String @cacheControl(maxAge: 60, vary: ["Accept-Language"]) }',
      {
        Query: {
          text: async (_: unknown, { id }: { id: number }, { language }: { language: string }) => {
            await new Promise<void>((resolve) => finish.push(resolve));
            return `${id} in ${language}`;
          },
        },
      },
    );
    const context = (req: { headers: NodeJS.Dict<string | string[]> }) => ({
      language: req.headers['accept-language'],
    });
    let operations = 0;
    const onOperation = (): void => void operations++;
    app = express().use('/graphql', graphqlHTTP(schema, { responseCache: true, context, onOperation }));
    const query = 'query ($id: Int!) { text(id: $id) }';
    const send = (id: number, language: string): Promise<string> =>
      get(app, query, { id })
        .set('accept-language', language)
        .then(({ body }) => body.data.text);
    const first = send(1, 'en');
    const second = send(2, 'en');
    await until(() => finish.length === 2);
    // Has the same key as the second request, and waits for it.
    const third = send(2, 'de');
    await until(() => operations === 3);
    await new Promise(setImmediate);
    finish[0]?.();
    expect(await first).toBe('1 in en');
    finish[1]?.();
    expect(await second).toBe('2 in en');
    await until(() => finish.length === 3);
    finish[2]?.();
    expect(await third).toBe('2 in de');
  });

  it('the response cache separates schemas of a function that differ only in their resolvers', async () => {
    const [first, second] = ['a', 'b'].map((name) =>
      schemaOf('type Query { name: String @cacheControl(maxAge: 60) }', { Query: { name: () => name } }),
    );
    if (first === undefined || second === undefined) throw new Error('no schemas');
    app = express().use(
      '/graphql',
      graphqlHTTP((req) => (req.headers['x-tenant'] === 'b' ? second : first), { responseCache: true }),
    );
    for (const age of [undefined, '0']) {
      for (const tenant of ['a', 'b']) {
        const { body, headers } = await get(app, '{ name }').set('x-tenant', tenant);
        expect([body.data.name, headers.age]).toEqual([tenant, age]);
      }
    }
  });

  it('the response cache separates results by schema if a function returns the schema', async () => {
    const schemas = ['a', 'b'].map((name) =>
      schemaOf('type Query { name: String @cacheControl(maxAge: 60) other: Int }', {
        Query: { name: () => name },
      }),
    );
    const other = schemaOf('type Query { name: String @cacheControl(maxAge: 60) }', {
      Query: { name: () => 'c' },
    });
    app = express().use(
      '/graphql',
      graphqlHTTP((req) => (req.headers['x-schema'] === 'c' ? other : schemas[0]) ?? other, {
        responseCache: true,
      }),
    );
    for (let round = 0; round < 2; round++) {
      expect((await get(app, '{ name }')).body.data.name).toBe('a');
      expect((await get(app, '{ name }').set('x-schema', 'c')).body.data.name).toBe('c');
    }
  });

  it('the response cache separates results by host and path, because tenants may have their own', async () => {
    const tenants = schemaOf('type Query { tenant: String @cacheControl(maxAge: 60) }', {
      Query: { tenant: (_: unknown, __: unknown, { tenant }: { tenant: string }) => tenant },
    });
    const context = (req: { headers: NodeJS.Dict<string | string[]>; originalUrl?: string }) => ({
      tenant: `${String(req.headers.host)}${req.originalUrl?.split('?')[0]}`,
    });
    const handler = graphqlHTTP(tenants, { responseCache: true, context });
    const shared = express().use('/:tenant/graphql', handler);
    for (let round = 0; round < 2; round++) {
      for (const host of ['a.test', 'b.test']) {
        for (const path of ['/one/graphql', '/two/graphql']) {
          const { body } = await request(shared).get(path).query({ query: '{ tenant }' }).set('host', host);
          expect(body.data.tenant).toBe(`${host}${path}`);
        }
      }
    }
  });

  it('the response cache separates results by the parameters of the URL that are not part of the operation', async () => {
    const tenants = schemaOf('type Query { tenant: String @cacheControl(maxAge: 60) }', {
      Query: { tenant: (_: unknown, __: unknown, { tenant }: { tenant: unknown }) => tenant },
    });
    const context = ({ url = '' }: { url?: string | undefined }) => ({
      tenant: new URLSearchParams(url.split('?')[1]).get('tenant') ?? 'none',
    });
    app = express().use('/graphql', graphqlHTTP(tenants, { responseCache: true, context }));
    const query = '{ tenant }';
    for (const age of [undefined, '0']) {
      for (const tenant of ['a', 'b']) {
        const overGet = await request(app).get('/graphql').query({ query, tenant });
        expect([overGet.body.data.tenant, overGet.headers.age]).toEqual([tenant, age]);
        const overPost = await request(app).post(`/graphql?tenant=${tenant}`).send({ query });
        expect([overPost.body.data.tenant, overPost.headers.age]).toEqual([tenant, '0']);
      }
    }
    // A parameter of the operation is not part of it.
    const { body, headers } = await request(app).get('/graphql?%71uery={tenant}&variables={}');
    expect([body.data.tenant, headers.age]).toEqual(['none', undefined]);
    expect((await post(app, { query: '{tenant}' })).headers.age).toBe('0');
  });

  it('the response cache separates results by the header Vary that earlier middleware has set', async () => {
    const schema = schemaOf('type Query { language: String @cacheControl(maxAge: 60) }', {
      Query: { language: (_: unknown, __: unknown, { language }: { language: unknown }) => language },
    });
    const context = ({ headers }: { headers: NodeJS.Dict<string | string[]> }) => ({
      language: headers['accept-language'],
    });
    app = express()
      .use((req, res, next) => {
        res.vary(req.headers['x-any'] === undefined ? 'Accept-Language' : '*');
        next();
      })
      .use('/graphql', graphqlHTTP(schema, { responseCache: true, context }));
    for (const age of [undefined, '0']) {
      for (const language of ['de', 'fr']) {
        const { body, headers } = await get(app, '{ language }').set('accept-language', language);
        expect([body.data.language, headers.age]).toEqual([language, age]);
      }
      const { headers } = await get(app, '{ language }').set('x-any', '1');
      expect(headers.age).toBeUndefined();
    }
  });

  it('a Host with a slash is not another host with a longer path', async () => {
    const schema = schemaOf('type Query { host: String @cacheControl(maxAge: 60) }', {
      Query: { host: (_: unknown, __: unknown, { host }: { host: string }) => host },
    });
    const handler = graphqlHTTP(schema, {
      responseCache: true,
      context: ({ headers }) => ({ host: headers.host }),
    });
    app = express().use(['/tenant/graphql', '/graphql'], handler);
    for (const [host, path] of [
      ['a.test/tenant', '/graphql'],
      ['a.test', '/tenant/graphql'],
    ] as const) {
      const { body } = await request(app).get(path).query({ query: '{ host }' }).set('host', host);
      expect(body.data.host).toBe(host);
    }
  });

  it('the response cache hashes long variables, so that keys stay short', async () => {
    const query = 'query ($id: ID!) { post(id: $id) { id } }';
    const id = 'x'.repeat(50_000);
    for (let count = 0; count < 2; count++) await post(app, { query, variables: { id } });
    expect(blog.calls.post).toBe(1);
  });

  it('the response cache does not store results of deeply nested variables', async () => {
    const text = `{"query":"query ($filter: Filter) { search(filter: $filter) { id } }","variables":{"filter":${'['.repeat(9000)}${']'.repeat(9000)}}}`;
    const response = await request(app).post('/graphql').set('content-type', 'application/json').send(text);
    expect(response.status).toBeLessThan(500);
  });
});

describe('the option "key"', () => {
  it('graphqlHTTP keeps the results of users apart', async () => {
    const blog = createBlog();
    const context = (req: { headers: NodeJS.Dict<string | string[]> }) => ({ user: req.headers['x-user'] });
    const { app } = serveBlog(blog, {
      context,
      responseCache: { key: (_req, value) => (value as { user?: string }).user ?? null },
    });
    for (const user of ['a', 'b', 'a', 'b']) {
      const { body } = await get(app, '{ me { id name } }').set('x-user', user).set('cookie', 'session=1');
      expect(body.data.me).toEqual({ id: user, name: `name of ${user}` });
    }
    expect(blog.calls.me).toBe(2);
    // `null`: not stored.
    for (let count = 0; count < 2; count++) await get(app, '{ me { id } }');
    expect(blog.calls.me).toBe(4);
  });

  it('without the option "key", results with the scope PRIVATE and requests with credentials are not stored', async () => {
    const blog = createBlog();
    const { app } = serveBlog(blog);
    for (let count = 0; count < 2; count++) {
      await get(app, '{ me { id } }');
      await get(app, POST).set('cookie', 'session=1');
      await get(app, POST).set('authorization', 'Bearer 1');
    }
    expect(blog.calls).toMatchObject({ me: 2, post: 4 });
  });

  it('without the option "key", a result is not stored if a resolver sets a cookie or identifies the user', async () => {
    let calls = 0;
    const schema = schemaOf('type Query { visit(member: Boolean): Int @cacheControl(maxAge: 60) }', {
      Query: {
        visit: (
          _: unknown,
          { member }: { member?: boolean },
          { req, res }: { req: object; res: express.Response },
        ) => {
          if (member === true) Object.assign(req, { user: 'a' });
          else res.cookie('visit', '1');
          return ++calls;
        },
      },
    });
    const context = (req: object) => ({ req, res: Reflect.get(req, 'res') });
    const app = express().use('/graphql', graphqlHTTP(schema, { responseCache: true, context }));
    for (const query of ['{ visit }', '{ visit(member: true) }']) {
      const results = [await get(app, query), await get(app, query)];
      expect(new Set(results.map(({ body }) => body.data.visit)).size).toBe(2);
    }
  });

  it.each(['access_token', 'api_key', 'session', '%74oken', 'X-Amz-Signature', 'user'])(
    'without the option "key", a request with the parameter "%s" in its URL does not use the cache',
    async (name) => {
      const blog = createBlog();
      const { app } = serveBlog(blog);
      for (const token of ['a', 'a', 'b']) {
        const query = encodeURIComponent(POST);
        const { headers } = await request(app).get(`/graphql?query=${query}&${name}=${token}`);
        expect([headers['age'], headers['cache-control']]).toEqual([undefined, 'private, max-age=60']);
      }
      expect(blog.calls.post).toBe(3);
    },
  );

  it.each([
    'x-forwarded-client-cert',
    'ssl-client-cert',
    'x-ssl-client-s-dn',
    'x-amzn-oidc-data',
    'dpop',
    'signature',
    'x-client-secret',
    'x-access-key',
    'x-account-id',
    'x-customer-id',
  ])('without the option "key", a request with the header "%s" does not use the cache', async (name) => {
    const blog = createBlog();
    const { app } = serveBlog(blog);
    for (const value of ['a', 'a', 'b']) {
      const { headers } = await get(app, POST).set(name, value);
      expect([headers['age'], headers['cache-control']]).toEqual([undefined, 'private, max-age=60']);
    }
    expect(blog.calls.post).toBe(3);
  });

  it('the result of a user is private also for a client that accepts deferred parts', async () => {
    const schema = schemaOf(`${V17 ? DIRECTIVES : ''} type Query { me: String @cacheControl(maxAge: 60) }`, {
      Query: { me: () => 'a' },
    });
    const key = ({ headers }: { headers: object }): string => Reflect.get(headers, 'x-shop');
    const app = express().use('/graphql', graphqlHTTP(schema, { responseCache: { key }, httpCache: true }));
    // graphql 16 has no @defer. The disabled directive makes the response an ordinary one.
    const query = `{ me ${V17 ? '... @defer(if: false) { me }' : ''} }`;
    for (const accept of ['application/json', 'multipart/mixed, application/json']) {
      const { headers } = await get(app, query).set('x-shop', 'a').set('accept', accept);
      expect([accept, headers['cache-control']]).toEqual([accept, 'private, max-age=60']);
    }
  });

  it.each([[() => 7], [() => Promise.resolve('a')], [() => ({})]])(
    'a return value of "key" that is not a string fails the request: %s',
    async (key) => {
      const errors: string[] = [];
      const { app } = serveBlog(createBlog(), {
        responseCache: { key: key as () => string },
        onError: (error) => void errors.push(String(error)),
      });
      app.use((_error: unknown, _req: unknown, res: express.Response, _next: unknown) => {
        res.status(500).end();
      });
      expect((await get(app, POST)).status).toBe(500);
      expect(errors).toEqual([expect.stringContaining('option "responseCache.key" returned')]);
    },
  );
});

describe('single flight', () => {
  it('concurrent requests for one result share an execution', async () => {
    let finish: (value: unknown) => void = () => undefined;
    const blog = createBlog({
      Query: {
        slow(_: unknown, { id }: { id: string }) {
          blog.calls.slow = (blog.calls.slow ?? 0) + 1;
          return new Promise((resolve) => {
            finish = () => resolve(blog.posts.get(id));
          });
        },
      },
    });
    let operations = 0;
    const { app } = serveBlog(blog, { onOperation: () => void operations++ });
    // The memory store is ready.
    await get(app, POST);
    const query = '{ slow(id: 1) { title } }';
    const first = get(app, query).then((response) => response);
    await until(() => blog.calls.slow === 1);
    const others = Array.from({ length: 10 }, () => get(app, query).then((response) => response));
    // The lookup follows `onOperation`.
    await until(() => operations === 12);
    await new Promise(setImmediate);
    expect(blog.calls.slow).toBe(1);
    finish(undefined);
    const responses = await Promise.all([first, ...others]);
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
    expect(blog.calls.slow).toBe(1);
  });

  it('one of the waiting requests executes if the client of the execution disconnects', async () => {
    const finish: (() => void)[] = [];
    const schema = schemaOf('type Query { slow: Int @cacheControl(maxAge: 60) }', {
      Query: { slow: () => new Promise((resolve) => finish.push(() => resolve(finish.length))) },
    });
    let operations = 0;
    const handler = graphqlHTTP(schema, { responseCache: true, onOperation: () => void operations++ });
    const { server, url } = await listen(express().use('/graphql', handler), '/graphql?query={slow}');
    const client = new AbortController();
    const aborted = fetch(url, { signal: client.signal }).catch(() => undefined);
    await until(() => finish.length === 1);
    const others = Array.from({ length: 10 }, () => fetch(url).then((response) => response.json()));
    await until(() => operations === 11);
    await new Promise(setImmediate);
    client.abort();
    await aborted;
    // graphql 16 ignores the abort.
    if (V17) await until(() => finish.length === 2);
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const each of finish) each();
    await Promise.all(others);
    expect(finish).toHaveLength(V17 ? 2 : 1);
    server.close();
    server.closeAllConnections();
  });

  it('concurrent requests do not share a failed execution', async () => {
    let calls = 0;
    let operations = 0;
    const blog = createBlog({
      Query: {
        async slow() {
          const isFirst = ++calls === 1;
          await until(() => operations === 4);
          await new Promise(setImmediate);
          if (isFirst) throw new Error('first');
          return blog.posts.get('1');
        },
      },
    });
    const { app } = serveBlog(blog, { onError: false, onOperation: () => void operations++ });
    await get(app, POST);
    const responses = await Promise.all([1, 2, 3].map(() => get(app, '{ slow(id: 1) { title } }')));
    expect(responses.filter(({ body }) => body.errors !== undefined)).toHaveLength(1);
    expect(calls).toBe(3);
  });

  it('requests wait at most 5 seconds for an execution that does not end', async () => {
    let calls = 0;
    const schema = schemaOf('type Query { slow: Int @cacheControl(maxAge: 60) }', {
      Query: { slow: () => (++calls === 1 ? new Promise(() => undefined) : calls) },
    });
    // The end of the execution, in another test, would be observed there.
    const handler = graphqlHTTP(schema, { responseCache: true, timeout: false });
    const { server, url } = await listen(express().use('/graphql', handler), '/graphql?query={slow}');
    const controller = new AbortController();
    const hanging = fetch(url, { signal: controller.signal }).catch((error: Error) => error.name);
    await until(() => calls === 1);
    const waiting = await fetch(url);
    expect((await waiting.json()).data.slow).toBe(2);
    const later = await fetch(url);
    expect([(await later.json()).data.slow, later.headers.get('age')]).toEqual([2, '0']);
    controller.abort();
    expect(await hanging).toBe('AbortError');
    server.close();
    server.closeAllConnections();
  });
});

describe('expired results', () => {
  const age = (milliseconds: number): void => {
    const now = Date.now();
    jest.spyOn(Date, 'now').mockImplementation(() => now + milliseconds);
  };
  afterEach(() => jest.restoreAllMocks());

  it('graphqlHTTP executes again when the lifetime has passed', async () => {
    const blog = createBlog();
    const { app } = serveBlog(blog);
    await store(app, '{ brief }');
    age(1100);
    expect((await get(app, '{ brief }')).body.data.brief).toBe(2);
  });

  it('the header Age has the seconds since the result was stored', async () => {
    const { app } = serveBlog(createBlog());
    await store(app, POST);
    age(42_500);
    expect((await get(app, POST)).headers.age).toBe('42');
  });

  it('with "staleWhileRevalidate" the expired result is sent and replaced in the background', async () => {
    const blog = createBlog();
    const { app } = serveBlog(blog, { responseCache: { staleWhileRevalidate: '10s' } });
    await store(app, '{ brief }');
    age(5000);
    const responses = await Promise.all([1, 2, 3].map(() => get(app, '{ brief }')));
    expect(responses.map(({ body }) => body.data.brief)).toContain(1);
    await until(() => blog.calls.brief === 2);
    expect((await get(app, '{ brief }')).body.data.brief).toBe(2);
    age(30_000);
    expect((await get(app, '{ brief }')).body.data.brief).toBe(3);
  });

  it('with "staleWhileRevalidate" an execution in the background that never ends is repeated after 5 seconds', async () => {
    let calls = 0;
    const schema = schemaOf('type Query { slow: Int @cacheControl(maxAge: 1) }', {
      Query: { slow: () => (++calls === 2 ? new Promise(() => undefined) : calls) },
    });
    const handler = graphqlHTTP(schema, { responseCache: { staleWhileRevalidate: '60s' }, timeout: false });
    const app = express().use('/graphql', handler);
    await store(app, '{ slow }');
    age(2000);
    await get(app, '{ slow }');
    await until(() => calls === 2);
    await get(app, '{ slow }');
    for (let second = 0; calls === 2 && second < 10; second++) {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      await get(app, '{ slow }');
    }
    await until(() => calls === 3);
    expect((await get(app, '{ slow }')).body.data.slow).toBe(3);
  });

  it.each([
    ['an unexpected error', new Error('down'), 1],
    ['an error that is meant for the client', new GraphQLError('forbidden'), undefined],
  ])('"staleIfError": an expired result and %s', async (_name, error, expected) => {
    let fails = false;
    const blog = createBlog({
      Query: {
        unstable() {
          if (fails) throw error;
          return 1;
        },
      },
    });
    const { app } = serveBlog(blog, { responseCache: { staleIfError: '60s' }, onError: false });
    await store(app, '{ unstable }');
    fails = true;
    age(5000);
    const { body, headers } = await get(app, '{ unstable }');
    expect([body.data.unstable, headers.age]).toEqual(expected === undefined ? [null, undefined] : [1, '5']);
    age(120_000);
    expect((await get(app, '{ unstable }')).body.errors).toHaveLength(1);
  });
});

describe('other options', () => {
  it('onOperation runs before a stored result is sent, and may refuse it', async () => {
    const blog = createBlog();
    let refuses = false;
    const onOperation: GraphQLOptions['onOperation'] = () =>
      refuses ? { errors: [new GraphQLError('no')] } : { extensions: { number: 1 } };
    const { app } = serveBlog(blog, { onOperation });
    const first = await get(app, POST);
    const second = await get(app, POST);
    expect(second.body.extensions).toEqual({ number: 1 });
    expect(second.text).toBe(first.text);
    expect(blog.calls.post).toBe(1);
    refuses = true;
    expect((await get(app, POST)).body).toEqual({ errors: [{ message: 'no' }] });
  });

  it('the extensions of onOperation and of an engine function are merged in stored results', async () => {
    const engine = async (args: ExecutionArgs) => ({
      ...((await execute(args)) as ExecutionResult),
      extensions: { engine: 1, both: 'engine' },
    });
    const onOperation = () => ({ extensions: { hook: 2, both: 'hook' } });
    const { app } = serveBlog(createBlog(), { engine, onOperation });
    const first = await get(app, POST);
    const second = await store(app, POST);
    expect(first.body.extensions).toEqual({ engine: 1, hook: 2, both: 'hook' });
    expect(second.text).toBe(first.text);
  });

  it('the operations of a batch share results with single requests', async () => {
    const blog = createBlog();
    const { app } = serveBlog(blog, { batching: true });
    await get(app, POST);
    const { body } = await request(app)
      .post('/graphql')
      .send([{ query: POST }, { query: '{ posts { id } }' }]);
    expect(body[0].data.post).toEqual({ id: '1', title: 'title 1' });
    expect(blog.calls).toMatchObject({ post: 1, posts: 1 });
    await get(app, '{ posts { id } }');
    expect(blog.calls.posts).toBe(1);
  });

  it('HEAD and If-None-Match work with stored results', async () => {
    const { app } = serveBlog(createBlog());
    const { headers } = await store(app, POST);
    const head = await request(app).head('/graphql').query({ query: POST });
    expect([head.headers['content-length'], head.headers.etag]).toEqual([
      headers['content-length'],
      headers.etag,
    ]);
    const unchanged = await get(app, POST).set('if-none-match', String(headers.etag));
    expect([unchanged.status, unchanged.headers.age, unchanged.text]).toEqual([304, '0', '']);
  });

  it('"cache" works without "cacheControl": results are stored here and nowhere else', async () => {
    const blog = createBlog();
    const { app } = serveBlog(blog, { httpCache: false });
    await get(app, POST);
    const { headers } = await get(app, POST);
    expect(blog.calls.post).toBe(1);
    expect(headers['cache-control']).toBe('no-store');
    expect(headers.etag).toBeUndefined();
  });
});
