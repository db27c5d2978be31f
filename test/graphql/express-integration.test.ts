/** @tags node graphql */
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, createServer as createHttp2 } from 'node:http2';
import type { ErrorRequestHandler, RequestHandler, Router } from 'express';
import {
  buildSchema,
  GraphQLError,
  GraphQLInt,
  GraphQLObjectType,
  type GraphQLResolveInfo,
  GraphQLSchema,
  GraphQLString,
  versionInfo,
} from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { ConnectRequest } from '../../types/connect.ts';
import type { GraphQLHandler, GraphQLOptions } from '../../types/graphql.ts';
import { eachExpress } from '../express.ts';
import { listen } from '../kit.ts';
import { post, run, wire } from './server.ts';

const schema = buildSchema(
  'type Query { hello: String secret: String own: String null: String! } type Mutation { add: Int }',
);
const rootValue = {
  hello: 'world',
  secret: () => {
    throw new Error('password is hunter2');
  },
  own: () => {
    throw new GraphQLError('not yours', {
      extensions: { code: 'FORBIDDEN', http: { status: 403, headers: { 'x-why': 'because' } } },
    });
  },
};
const bug = (): never => {
  throw new Error('a bug');
};

eachExpress((express) => {
  const failures: unknown[] = [];
  const remember: ErrorRequestHandler = (error, _req, res, _next) => {
    failures.push(error);
    res.status(500).send('handled by the application');
  };
  const serve = (options: GraphQLOptions = {}, source: Parameters<typeof graphqlHTTP>[0] = schema) =>
    express()
      .use('/graphql', graphqlHTTP(source, { graphiql: false, rootValue, ...options }))
      .use(remember);
  const sendRequest = (app: ReturnType<typeof serve>, query = '{ hello }') =>
    request(app).post('/graphql').send({ query });
  beforeEach(() => failures.splice(0));

  describe('a bug of the application', () => {
    it.each([
      ['in the context', { context: bug }],
      ['in an async context', { context: async () => bug() }],
      ['in the root value', { rootValue: bug }],
      ['in the introspection switch', { introspection: bug }],
      ['in formatError', { formatError: bug }],
      ['in the engine', { engine: bug }],
      ['in a validation rule', { validationRules: [bug] }],
    ] as [string, GraphQLOptions][])(
      'an error in %s is a masked error, and does not reach the error handlers',
      async (_where, options) => {
        const query =
          'introspection' in options
            ? '{ __schema { queryType { name } } }'
            : 'formatError' in options
              ? '{ secret }'
              : '{ hello }';
        const reports: unknown[] = [];
        const onError = (error: unknown) => reports.push(error);
        const { body } = await sendRequest(serve({ onError, ...options }), query);
        expect(body.errors).toEqual([expect.objectContaining({ message: 'Internal server error' })]);
        expect(reports).toContainEqual(expect.objectContaining({ message: 'a bug' }));
        expect(failures).toEqual([]);
      },
    );

    it('an error in the schema function is a masked error', async () => {
      const reports: unknown[] = [];
      const onError = (error: unknown) => reports.push(error);
      await sendRequest(serve({ onError }, bug)).expect(500);
      await sendRequest(serve({ onError }, async () => bug())).expect(500);
      await sendRequest(serve({ onError }, () => ({}) as GraphQLSchema)).expect(500);
      expect(failures).toEqual([]);
      expect(reports).toHaveLength(3);
      expect(reports[2]).toMatchObject({
        message: expect.stringMatching(/argument "schema" is {}; accepted: a GraphQLSchema/),
      });
    });
  });

  it('graphqlHTTP sends a GraphQLError of the context function to the client', async () => {
    const context = () => {
      throw new GraphQLError('Who are you?', {
        extensions: { http: { status: 401, headers: { 'www-authenticate': 'Bearer' } } },
      });
    };
    await sendRequest(serve({ context }))
      .expect(401, { errors: [{ message: 'Who are you?' }] })
      .expect('www-authenticate', 'Bearer');
    expect(failures).toEqual([]);
  });

  it('graphqlHTTP responds on its mount and passes on the paths below it', async () => {
    const app = express().use('/graphql', graphqlHTTP(schema, { rootValue }));
    app.use((_req, res) => void res.status(404).send('mine'));
    await request(app).get('/graphql?query={hello}').expect(200);
    await request(app).get('/graphql/?query={hello}').expect(200);
    await request(app).get('/graphql/other?query={hello}').expect(404, 'mine');
  });

  it('graphqlHTTP answers a request whose URL other middleware has rewritten', async () => {
    const app = express().use((req, _res, next) => {
      req.url = req.url.replace('/api/v1/', '/');
      next();
    });
    app.use(graphqlHTTP(schema, { rootValue }));
    await request(app).get('/api/v1/graphql?query={hello}').expect(200);
  });

  it('graphqlHTTP works on an exact route and in nested routers', async () => {
    const router = express.Router().use('/graphql', graphqlHTTP(schema, { rootValue }));
    const app = express().use('/api', router);
    app.all('/exact', graphqlHTTP(schema, { rootValue }));
    await request(app).get('/api/graphql?query={hello}').expect(200);
    await request(app).get('/exact?query={hello}').expect(200);
  });

  const routes: [string, (router: Router, handler: RequestHandler) => unknown][] = [
    ['a path', (router, handler) => router.all('/graphql', handler)],
    ['a path of several', (router, handler) => router.post(['/other', '/graphql'], handler)],
    ['a parameter', (router, handler) => router.post('/:name', handler)],
    ['a regular expression', (router, handler) => router.post(/^\/graphql\/?$/, handler)],
    [
      'a function around it',
      (router, handler) => router.post('/graphql', (req, res, next) => handler(req, res, next)),
    ],
  ];
  it.each(routes)('graphqlHTTP works on a route of a router below a prefix: %s', async (_how, mount) => {
    const router = express.Router();
    mount(router, graphqlHTTP(schema, { rootValue }));
    for (const app of [express().use('/api', router), express().use('/api', express().use(router))]) {
      await request(app).post('/api/graphql').send({ query: '{ hello }' }).expect(200);
      await request(app).post('/api/graphql/').send({ query: '{ hello }' }).expect(200);
    }
  });

  it('graphqlHTTP ignores a route that has passed the request on', async () => {
    const router = express.Router().all(['/graphql', /./], (_req, _res, next) => next());
    const app = express().use('/api', router.use('/graphql', graphqlHTTP(schema, { rootValue })));
    app.use((_req, res) => void res.status(404).send('mine'));
    await request(app).get('/api/graphql?query={hello}').expect(200);
    await request(app).get('/api/graphql/other?query={hello}').expect(404, 'mine');
  });

  it('graphqlHTTP accepts a request target in absolute form (RFC 9112 §3.2.2)', async () => {
    const { port } = await run(express().use('/graphql', graphqlHTTP(schema, { rootValue })));
    for (const [path, status] of [
      ['/graphql?query={hello}', 200],
      ['/graphql/?query={hello}', 200],
      ['/graphql/other?query={hello}', 404],
    ] as const) {
      const line = wire(port);
      line.write(`GET http://example.com${path} HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n`);
      expect(await line.closed()).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    }
  });

  it('graphqlHTTP does nothing if the response was already sent', async () => {
    const app = express();
    app.use((_req, res, next) => {
      res.send('early');
      next();
    });
    app.use('/graphql', graphqlHTTP(schema, { rootValue })).use(remember);
    await sendRequest(app).expect(200, 'early');
    await request(app).get('/graphql').set('accept', 'text/html').expect(200, 'early');
    expect(failures).toEqual([]);
  });

  it('graphqlHTTP passes an error to next and runs nothing if earlier middleware has begun the response', async () => {
    let calls = 0;
    const hello = (): number => ++calls;
    const begin: RequestHandler = (_req, res, next) => {
      res.write(' ');
      next();
    };
    const passed: unknown[] = [];
    const destroy: ErrorRequestHandler = (error, _req, res, _next) => {
      passed.push(error);
      res.destroy();
    };
    const app = express()
      .use(begin)
      .use('/graphql', graphqlHTTP(schema, { rootValue: { hello } }))
      .use(destroy);
    for (const send of [
      sendRequest(app),
      request(app).get('/graphql').query({ query: '{ hello }' }),
      request(app).get('/graphql').set('Accept', 'text/html'),
      request(app).delete('/graphql'),
    ])
      await expect(send).rejects.toThrow();
    expect(passed).toEqual(Array(4).fill(expect.objectContaining({ code: 'ERR_HTTP_HEADERS_SENT' })));
    expect(calls).toBe(0);
  });

  it('graphqlHTTP sends an error without the lifetime that other code has set for results', async () => {
    const cached: RequestHandler = (_req, res, next) => {
      res.set('Cache-Control', 'public, max-age=60').set('CDN-Cache-Control', 'max-age=60');
      res.set({ Expires: 'Fri, 01 Jan 2100 00:00:00 GMT', ETag: '"1"', 'Last-Modified': 'yesterday' });
      next();
    };
    const handler = graphqlHTTP(schema, {
      rootValue,
      onError: false,
      context: ({ headers }) => headers['x'] && bug(),
    });
    const app = express().use(cached).use('/graphql', handler);
    const get = (query: string) =>
      request(app).get('/graphql').set('GraphQL-Require-Preflight', '1').query({ query });
    const control = async (sent: ReturnType<typeof get>) => {
      const { status, headers } = await sent;
      const others = ['cdn-cache-control', 'expires', 'etag', 'last-modified'];
      const kept = others.filter((name) => name in headers).length;
      expect([status, kept]).toEqual([status, headers['cache-control'] === 'no-store' ? 0 : 4]);
      return [status, headers['cache-control']];
    };
    expect(await control(get('{ hello }'))).toEqual([200, 'public, max-age=60']);
    expect(await control(get('{ secret }'))).toEqual([200, 'no-store']);
    expect(await control(get('{ unknown }'))).toEqual([200, 'no-store']);
    expect(await control(get('{ own }'))).toEqual([403, 'no-store']);
    expect(await control(get('{ hello }').set('x', '1'))).toEqual([500, 'no-store']);
    expect(await control(request(app).delete('/graphql'))).toEqual([405, 'no-store']);
  });

  it('graphqlHTTP keeps the challenge that other code has set for a 401', async () => {
    const unauthorized = () => {
      throw new GraphQLError('Sign in', { extensions: { http: { status: 401 } } });
    };
    const handler = graphqlHTTP(schema, { context: unauthorized });
    const challenge: RequestHandler = (_req, res, next) => {
      res.set('WWW-Authenticate', 'Basic realm="shop"');
      next();
    };
    const challenged = express().use('/own', challenge, handler).use('/graphql', handler);
    const send = (path: string) => request(challenged).post(path).send({ query: '{ hello }' });
    expect((await send('/own').expect(401)).headers['www-authenticate']).toBe('Basic realm="shop"');
    expect((await send('/graphql').expect(401)).headers['www-authenticate']).toBe('Bearer');
  });

  it('graphqlHTTP sends no Content-Type and no Content-Language of earlier middleware with a 304', async () => {
    const describeBody: RequestHandler = (_req, res, next) => {
      res.type('json').set('Content-Language', 'en');
      next();
    };
    const handler = graphqlHTTP(schema, { rootValue, httpCache: { defaultMaxAge: 60 } });
    const app = express().use(describeBody).use('/graphql', handler);
    const get = () =>
      request(app).get('/graphql').set('GraphQL-Require-Preflight', '1').query({ query: '{ hello }' });
    const { headers } = await get().expect(200).expect('Content-Language', 'en');
    const unchanged = await get().set('If-None-Match', String(headers['etag'])).expect(304);
    expect(unchanged.headers).not.toHaveProperty('content-type');
    expect(unchanged.headers).not.toHaveProperty('content-language');
  });

  it('graphqlHTTP sends its response through a wrapped res.end', async () => {
    const seen: unknown[] = [];
    const app = express();
    app.use((_req, res, next) => {
      const end = res.end.bind(res) as (...args: unknown[]) => never;
      res.end = (...args: unknown[]) => {
        seen.push(args[0]);
        return end(...args);
      };
      next();
    });
    app.use('/graphql', graphqlHTTP(schema, { rootValue }));
    await sendRequest(app).expect(200, { data: { hello: 'world' } });
    expect(seen).toEqual(['{"data":{"hello":"world"}}']);
  });

  it('graphqlHTTP works twice in one process with different schemas', async () => {
    const app = express();
    for (const [path, value] of [
      ['/a', 'A'],
      ['/b', 'B'],
    ] as const)
      app.use(path, graphqlHTTP(schema, { rootValue: { hello: value } }));
    await request(app)
      .post('/a')
      .send({ query: '{ hello }' })
      .expect(200, { data: { hello: 'A' } });
    await request(app)
      .post('/b')
      .send({ query: '{ hello }' })
      .expect(200, { data: { hello: 'B' } });
  });

  describe('the context', () => {
    const user = new GraphQLSchema({
      query: new GraphQLObjectType({
        name: 'Query',
        fields: {
          user: { type: GraphQLString, resolve: (_source, _args, context) => context?.user ?? 'none' },
        },
      }),
    });
    const userOf = async (options: GraphQLOptions) => {
      const app = express();
      app.use((req, _res, next) => {
        Object.assign(req, { state: { user: 'from state' } });
        next();
      });
      app.use('/graphql', graphqlHTTP(user, options));
      return (await request(app).post('/graphql').set('x-user', 'Ada').send({ query: '{ user }' })).body.data
        .user;
    };

    it('the context of graphqlHTTP can be a value', async () =>
      expect(await userOf({ context: { user: 'fixed' } })).toBe('fixed'));
    it('the context of graphqlHTTP is undefined by default', async () =>
      expect(await userOf({})).toBe('none'));
    it('the context of graphqlHTTP can be a function of the request', async () =>
      expect(await userOf({ context: (req) => ({ user: req.headers['x-user'] }) })).toBe('Ada'));
    it('the context of graphqlHTTP can be an async function of the request', async () =>
      expect(await userOf({ context: async (req) => ({ user: req.headers['x-user'] }) })).toBe('Ada'));
    it('the context function can read req.state of earlier middleware', async () =>
      expect(await userOf({ context: (req) => ({ user: req.state['user'] }) })).toBe('from state'));
    it('the context function is not called for an invalid document', async () => {
      let made = 0;
      await sendRequest(serve({ context: () => ++made }), '{ nope }');
      expect(made).toBe(0);
    });
    it('the context function gets an empty req.state if no middleware has set it', async () => {
      const app = serve({
        context: (req) => Object.assign(req.state, { seen: true }),
        rootValue: (req) => ({ hello: JSON.stringify(req.state) }),
      });
      await sendRequest(app).expect(200, { data: { hello: '{"seen":true}' } });
    });

    const seen: unknown[] = [];
    /** Returns a function of an option that notes the state of its request. */
    const noting =
      <T>(value: T) =>
      ({ state }: ConnectRequest): T => {
        seen.push(state);
        return value;
      };
    it.each<[string, string, () => GraphQLHandler]>([
      ['the schema', 'application/json', () => graphqlHTTP(noting(user))],
      [
        'responseCache.key',
        'application/json',
        () => graphqlHTTP(user, { responseCache: { key: noting(null) } }),
      ],
      ['graphiql', 'text/html', () => graphqlHTTP(user, { graphiql: noting(true) })],
    ])(
      'the function of %s gets an empty req.state if no middleware has set it',
      async (_, accept, create) => {
        seen.length = 0;
        await request(create()).get('/').query({ query: '{ user }' }).set('accept', accept).expect(200);
        expect(seen).toEqual([{}]);
      },
    );

    it('graphqlHTTP sets no req.state if no function of the application gets the request', async () => {
      const handler = graphqlHTTP(user, { context: { user: 'fixed' }, responseCache: true });
      const server = createServer((req, res) => {
        handler(req, res);
        seen.push('state' in req);
      });
      seen.length = 0;
      await request(server).get('/').query({ query: '{ user }' }).expect(200);
      expect(seen).toEqual([false]);
    });
  });

  describe('errors', () => {
    it('graphqlHTTP masks errors of resolvers, except GraphQLErrors', async () => {
      const { body } = await sendRequest(serve(), '{ secret own }').expect(403).expect('x-why', 'because');
      expect(body.errors.map(({ message, extensions }: GraphQLError) => [message, extensions])).toEqual([
        ['Internal server error', { code: 'INTERNAL_SERVER_ERROR', debug: 'password is hunter2' }],
        ['not yours', { code: 'FORBIDDEN' }],
      ]);
      expect(body.errors[0]).toMatchObject({ path: ['secret'], locations: [{ line: 1, column: 3 }] });
      expect(body.data).toEqual({ secret: null, own: null });
    });

    it('formatError receives every error with its original, also those of refused requests', async () => {
      const seen: unknown[] = [];
      const app = serve({
        formatError: (formatted, error) => {
          seen.push(error.originalError?.message ?? error.message);
          return { ...formatted, extensions: { ...formatted.extensions, id: seen.length } };
        },
      });
      const { body } = await sendRequest(app, '{ secret }');
      expect(body.errors[0]).toMatchObject({ message: 'Internal server error', extensions: { id: 1 } });
      const malformed = await request(app)
        .post('/graphql')
        .set('content-type', 'application/json')
        .send('{')
        .expect(400);
      expect(malformed.body.errors[0].extensions).toEqual({ code: 'BAD_JSON', id: 2 });
      expect(seen).toEqual([
        'password is hunter2',
        'The request body is not valid JSON; send an object with a "query"',
      ]);
    });

    it('graphqlHTTP never sends a stack, for any NODE_ENV', async () => {
      for (const query of ['{ secret }', '{ null }', '{', '{ nope }']) {
        expect((await sendRequest(serve(), query)).text).not.toMatch(/ at |stack|\.ts/);
      }
    });

    it('graphqlHTTP suggests names in error messages only in development', async () => {
      const { NODE_ENV } = process.env;
      expect((await sendRequest(serve(), '{ helo }')).text).toMatch(/Did you mean/);
      expect((await sendRequest(serve({ introspection: false }), '{ helo }')).text).not.toMatch(
        /Did you mean/,
      );
      process.env['NODE_ENV'] = 'production';
      const production = serve();
      process.env['NODE_ENV'] = NODE_ENV;
      expect((await sendRequest(production, '{ helo }')).text).not.toMatch(/Did you mean/);
    });
  });

  it('graphqlHTTP refuses introspection for all or some requests', async () => {
    const query = '{ __schema { queryType { name } } }';
    const { body } = await sendRequest(serve({ introspection: false }), query);
    expect(body.errors[0].extensions.code).toBe('INTROSPECTION_OFF');
    await sendRequest(serve({ introspection: false }), '{ __typename }').expect(200, {
      data: { __typename: 'Query' },
    });
    const some = serve({ introspection: (req) => req.headers['x-staff'] === 'yes' });
    expect((await sendRequest(some, query)).body.data).toBeUndefined();
    expect((await sendRequest(some, query).set('x-staff', 'yes')).body.data).toBeDefined();
    expect((await sendRequest(some, query)).body.data).toBeUndefined();
  });

  it('graphqlHTTP uses the rules, resolvers and engine of the options', async () => {
    const rule: NonNullable<GraphQLOptions['validationRules']>[number] = (context) => ({
      Field: (node) => context.reportError(new GraphQLError(`no ${node.name.value} today`)),
    });
    expect((await sendRequest(serve({ validationRules: [rule] }))).body.errors[0].message).toBe(
      'no hello today',
    );
    const fieldResolver = (_source: unknown, _args: unknown, _context: unknown, info: GraphQLResolveInfo) =>
      info.fieldName;
    expect((await sendRequest(serve({ fieldResolver }))).body.data.hello).toBe('hello');
    const engine = async () => ({ data: { hello: 'engine' } });
    expect((await sendRequest(serve({ engine }))).body.data.hello).toBe('engine');
  });

  it.each([
    ['an iterator', async function* () {}, /an async iterable of results, which only sockets deliver/],
    ['an empty object', async () => ({}), /neither data nor/],
  ])('graphqlHTTP reports an engine that returns %s and does not send {}', async (_what, engine, message) => {
    const reports: unknown[] = [];
    const onError = (error: unknown) => reports.push(error);
    await sendRequest(serve({ engine: engine as never, onError })).expect(500);
    expect(reports).toEqual([expect.objectContaining({ message: expect.stringMatching(message) })]);
  });

  it('graphqlHTTP sends the extensions of an engine’s result', async () => {
    const engine = () => ({ data: { hello: 'x' }, extensions: { took: 1 } });
    await sendRequest(serve({ engine })).expect(200, { data: { hello: 'x' }, extensions: { took: 1 } });
  });

  it('graphqlHTTP calls the schema function once per request and sends a GraphQLError that it throws or rejects with', async () => {
    const requested: unknown[] = [];
    const source = (req: unknown) => {
      requested.push(req);
      return schema;
    };
    await sendRequest(serve({}, source)).expect(200);
    expect(requested).toHaveLength(1);
    const refuse = (): never => {
      throw new GraphQLError('not for you', { extensions: { http: { status: 403 } } });
    };
    for (const source of [refuse, async () => refuse()]) {
      await sendRequest(serve({}, source)).expect(403, { errors: [{ message: 'not for you' }] });
    }
    expect(failures).toEqual([]);
  });

  it('graphqlHTTP accepts a schema function that returns a promise of another library', async () => {
    const then = Promise.prototype.then.bind(Promise.resolve(schema));
    const source = () => Object.fromEntries([['then', then]]) as never;
    await sendRequest(serve({}, source)).expect(200);
  });

  it('graphqlHTTP accepts thenables whose then returns nothing from the functions of its options', async () => {
    let calls = 0;
    const lazy = <T>(value: T, times = 1) => {
      const then = (resolve: (value: T) => void): void => {
        calls += 1;
        setImmediate(() => {
          for (let time = 0; time < times; time++) resolve(value);
        });
      };
      return Object.fromEntries([['then', then]]) as never;
    };
    const counted: GraphQLOptions[] = [
      { context: () => lazy({}, 2) },
      { onOperation: () => lazy(undefined, 2) },
      { budget: { limit: 100, key: () => lazy('key', 2) } },
      { engine: () => lazy({ data: { hello: 'x' } }, 2) },
    ];
    for (const options of counted) {
      calls = 0;
      let resolved = 0;
      const hello = (): string => {
        resolved += 1;
        return 'x';
      };
      await sendRequest(serve({ rootValue: { hello }, ...options })).expect(200, { data: { hello: 'x' } });
      expect([calls, resolved]).toEqual([1, options.engine === undefined ? 1 : 0]);
    }
    expect(failures).toEqual([]);
  });

  it('graphqlHTTP sends 500 if a thenable of another library rejects', async () => {
    const then = (_: unknown, reject: (reason: Error) => void): void =>
      void setImmediate(() => reject(new Error('lost')));
    const lazy = () => Object.fromEntries([['then', then]]) as never;
    const rejecting: GraphQLOptions[] = [
      { context: lazy },
      { onOperation: lazy },
      { budget: { limit: 100, key: lazy } },
      { engine: lazy },
    ];
    for (const options of rejecting) await sendRequest(serve(options)).expect(500);
  });

  it('graphqlHTTP accepts a schema function of the request', async () => {
    const other = buildSchema('type Query { other: String }');
    const app = serve({ rootValue: { hello: 'a', other: 'b' } }, async (req) =>
      req.headers['x-other'] ? other : schema,
    );
    await sendRequest(app).expect(200, { data: { hello: 'a' } });
    await sendRequest(app, '{ other }')
      .set('x-other', '1')
      .expect(200, { data: { other: 'b' } });
    expect((await sendRequest(app, '{ other }')).body.errors).toHaveLength(1);
  });
});

describe('without Express', () => {
  it('graphqlHTTP sends a masked 500 for an unexpected error on a bare server', async () => {
    const { url } = await run(graphqlHTTP(schema, { context: bug }));
    const response = await fetch(`${url}?query={hello}`);
    expect([response.status, await response.json()]).toEqual([
      500,
      {
        errors: [
          {
            message: 'Internal server error',
            extensions: { code: 'INTERNAL_SERVER_ERROR', debug: expect.any(String) },
          },
        ],
      },
    ]);
  });

  it('graphqlHTTP works with the compatibility API of HTTP/2', async () => {
    const handler = graphqlHTTP(schema, { rootValue });
    const { url } = await listen(createHttp2((req, res) => handler(req as never, res as never)));
    const client = connect(url);
    const sendRequest = async (headers: Record<string, string>, body?: string) => {
      const stream = client.request(headers);
      stream.end(body);
      let text = '';
      const [head] = await once(stream, 'response');
      for await (const chunk of stream) text += chunk;
      return [head[':status'], JSON.parse(text)];
    };
    const json = { ':method': 'POST', ':path': '/graphql', 'content-type': 'application/json' };
    expect(await sendRequest(json, '{"query":"{ hello }"}')).toEqual([200, { data: { hello: 'world' } }]);
    expect(await sendRequest({ ':path': '/graphql?query={hello}' })).toEqual([
      200,
      { data: { hello: 'world' } },
    ]);
    expect(await sendRequest({ ...json }, '{"query":"{ long: hello }"}')).toEqual([
      200,
      { data: { long: 'world' } },
    ]);
    expect(await sendRequest({ ...json, 'content-type': 'text/plain' }, 'x')).toEqual([
      415,
      expect.anything(),
    ]);
    expect(await sendRequest({ ':path': '/graphql?query=mutation{add}', cookie: 'a=b' })).toEqual([
      403,
      expect.anything(),
    ]);
    client.close();
  });

  it('graphqlHTTP responds to pipelined requests completely and in order', async () => {
    const waiting = deferred<string>();
    const handler = graphqlHTTP(schema, { rootValue: { hello: 'world', own: () => waiting.promise } });
    const { port } = await run(handler);
    const client = wire(port);
    const queries = ['{ hello }', '{ own }', '{ hello }', '{ b: own }'];
    client.write(Buffer.concat(queries.map((query) => post(JSON.stringify({ query })))));
    await client.until(/"hello":"world"/);
    waiting.resolve('late');
    const text = await client.until(/"b":"late"\}\}$/);
    expect(text.match(/\{"data".*?\}\}/g)).toEqual([
      '{"data":{"hello":"world"}}',
      '{"data":{"own":"late"}}',
      '{"data":{"hello":"world"}}',
      '{"data":{"b":"late"}}',
    ]);
    client.socket.destroy();
  });

  it('graphqlHTTP keeps the AsyncLocalStorage of its caller', async () => {
    const storage = new AsyncLocalStorage<string>();
    const handler = graphqlHTTP(schema, { rootValue: { hello: () => storage.getStore() } });
    const { port } = await run((req, res) => storage.run('kept', () => handler(req, res)));
    const client = wire(port);
    client.write(post('{"query":"{ hello }"}').subarray(0, -3));
    client.write('}"}');
    await client.until(/"hello":"kept"/);
    client.socket.destroy();
  });
});

/** A promise that a test resolves. */
function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

describe('a client that disconnects', () => {
  const slow = new GraphQLSchema({
    query: new GraphQLObjectType({
      name: 'Query',
      fields: { slow: { type: GraphQLInt, resolve: (_source, _args, context) => context.wait() } },
    }),
  });

  it('graphqlHTTP aborts the execution when the client disconnects and reports no error', async () => {
    const errors: unknown[] = [];
    const started = deferred<AbortSignal | undefined>();
    const release = deferred<number>();
    const engine: NonNullable<GraphQLOptions['engine']> = async (args) => {
      started.resolve((args as { abortSignal?: AbortSignal }).abortSignal);
      return { data: { slow: await release.promise } };
    };
    const handler = graphqlHTTP(slow, { engine });
    const { port, close } = await run((req, res) => handler(req, res, (error) => errors.push(error)));
    const client = wire(port);
    client.write(post('{"query":"{ slow }"}'));
    const signal = await started.promise;
    client.socket.resetAndDestroy();
    if (versionInfo.major >= 17) {
      if (!signal?.aborted) await once(signal as AbortSignal, 'abort');
      expect(signal?.aborted).toBe(true);
    }
    release.resolve(1);
    await close();
    expect(errors).toEqual([]);
  });
});

describe.each([
  ['ASCII', 'x'.repeat(100_000)],
  ['Latin-1', 'é'.repeat(100_000)],
  ['emoji', '🐙é'.repeat(50_000)],
])('a long response of %s', (_what, hello) => {
  const handler = graphqlHTTP(schema, { rootValue: { hello } });

  it('a long response arrives completely over HTTP/1, with GET and HEAD', async () => {
    const { url } = await run(handler);
    const response = await fetch(`${url}?query={hello}`);
    const bytes = await response.arrayBuffer();
    expect(response.headers.get('content-length')).toBe(String(bytes.byteLength));
    expect(JSON.parse(new TextDecoder().decode(bytes))).toEqual({ data: { hello } });
    const head = await fetch(`${url}?query={hello}`, { method: 'HEAD' });
    expect(head.headers.get('content-length')).toBe(String(bytes.byteLength));
  });

  it('a long response arrives completely over HTTP/2', async () => {
    const { url } = await listen(createHttp2((req, res) => handler(req as never, res as never)));
    const client = connect(url);
    const stream = client.request({ ':path': '/graphql?query={hello}' }).setEncoding('utf8');
    let text = '';
    for await (const chunk of stream) text += chunk;
    expect(JSON.parse(text)).toEqual({ data: { hello } });
    client.close();
  });
});

it('graphqlHTTP works as the only listener of a node:http server', async () => {
  const server = createServer(graphqlHTTP(schema, { rootValue }));
  await request(server).get('/?query={hello}').expect(200);
  await request(server).get('/any/path?query={hello}').expect(200);
});

it('graphqlHTTP without a next function ends a response that was begun before', async () => {
  const handler = graphqlHTTP(schema, { rootValue });
  const { url } = await run((req, res) => {
    res.write(' ');
    handler(req, res);
  });
  await expect(fetch(`${url}?query={hello}`).then((response) => response.text())).rejects.toThrow();
});
