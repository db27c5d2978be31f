/** @tags node graphql */
import { buildSchema, GraphQLError } from 'graphql';
import request from 'supertest';
import { graphqlHTTP, Method } from '../../middleware/graphql.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import { eachExpress } from '../express.ts';

const schema = buildSchema(`
  type Query { hello(name: String, count: Int): String fail: String must: String! }
  type Mutation { add: Int }
  type Subscription { ticks: Int }
`);
const rootValue = {
  hello: ({ name }: { name?: string }) => `Hello ${name ?? 'world'}`,
  add: () => 1,
  fail: () => {
    throw new GraphQLError('on purpose');
  },
  must: () => null,
};
const JSON_TYPE = 'application/json';
const GRAPHQL_TYPE = 'application/graphql-response+json';

eachExpress((express) => {
  const serve = (options: GraphQLOptions = {}) =>
    express().use('/graphql', graphqlHTTP(schema, { graphiql: false, rootValue, ...options }));
  const app = serve();
  const post = (body: unknown, accept = JSON_TYPE, on = app) =>
    request(on)
      .post('/graphql')
      .set('accept', accept)
      .set('content-type', JSON_TYPE)
      .send(typeof body === 'string' ? body : JSON.stringify(body));

  describe('Accept', () => {
    it.each([
      [undefined, JSON_TYPE],
      ['', JSON_TYPE],
      ['*/*', JSON_TYPE],
      ['application/*', JSON_TYPE],
      [JSON_TYPE, JSON_TYPE],
      [GRAPHQL_TYPE, GRAPHQL_TYPE],
      [`${GRAPHQL_TYPE}, ${JSON_TYPE}`, GRAPHQL_TYPE],
      [`${JSON_TYPE}, ${GRAPHQL_TYPE}`, JSON_TYPE],
      [`${JSON_TYPE};q=0.5, ${GRAPHQL_TYPE};q=0.9`, GRAPHQL_TYPE],
      [`${GRAPHQL_TYPE};q=0, ${JSON_TYPE}`, JSON_TYPE],
      [`${GRAPHQL_TYPE};q=0.1, */*`, JSON_TYPE],
      ['APPLICATION/JSON', JSON_TYPE],
      [`${JSON_TYPE}; charset=utf-8`, JSON_TYPE],
      [`${GRAPHQL_TYPE}; charset="UTF-8"; q=1`, GRAPHQL_TYPE],
      [`${JSON_TYPE}; charset=latin1, ${GRAPHQL_TYPE};q=0.1`, GRAPHQL_TYPE],
      ['text/html, */*;q=0.8', JSON_TYPE],
      [`application/xml, ${GRAPHQL_TYPE};q=0.001`, GRAPHQL_TYPE],
      [`${Array(20).fill('a/b').join(',')}, ${GRAPHQL_TYPE}`, GRAPHQL_TYPE],
    ])('graphqlHTTP responds to Accept: %s with %s', async (accept, type) => {
      const get = request(app).get('/graphql?query={hello}');
      if (accept !== undefined) get.set('accept', accept);
      await get
        .expect(200)
        .expect('content-type', `${type}; charset=utf-8`)
        .expect('vary', /Accept/);
    });

    it.each([
      'text/html',
      'image/*',
      `${JSON_TYPE};q=0`,
      `${JSON_TYPE}; charset=utf-16`,
      '*/*;q=0',
      `${JSON_TYPE};q=2`,
    ])('graphqlHTTP sends 406 for Accept: %s', async (accept) => {
      const { body } = await request(app).get('/graphql?query={hello}').set('accept', accept).expect(406);
      expect(body.errors[0].message).toContain(GRAPHQL_TYPE);
    });
  });

  describe('statuses', () => {
    const cases: [string, unknown, number, number, number][] = [
      // title, body, application/json, graphql-response+json, draft
      ['data', { query: '{ hello }' }, 200, 200, 200],
      ['partial data', { query: '{ hello fail }' }, 200, 200, 294],
      ['null for all data', { query: '{ must }' }, 200, 200, 294],
      ['a syntax error', { query: '{' }, 200, 400, 400],
      ['a validation error', { query: '{ nope }' }, 200, 400, 422],
      ['an unknown operation', { query: '{ hello }', operationName: 'constructor' }, 200, 400, 422],
      ['two operations and no name', { query: 'query A { hello } query B { hello }' }, 200, 400, 422],
      ['type definitions', { query: 'type A { b: Int }' }, 200, 400, 422],
      [
        'a wrong variable',
        { query: 'query ($c: Int) { hello(count: $c) }', variables: { c: 'x' } },
        200,
        400,
        422,
      ],
      ['a missing variable', { query: 'query ($c: Int!) { hello(count: $c) }' }, 200, 400, 422],
      ['a text that is not JSON', 'UNKNOWN', 400, 400, 400],
      ['unfinished JSON', '{"query":', 400, 400, 400],
      ['an empty body', '', 400, 400, 400],
      ['null', 'null', 400, 400, 422],
      ['a number', '1', 400, 400, 422],
      ['a string', '"{ hello }"', 400, 400, 422],
      ['true', 'true', 400, 400, 422],
      ['a list', '[]', 400, 400, 400],
      ['an object without a query', { qeury: '{ hello }' }, 400, 400, 422],
      ['an empty query', { query: '' }, 400, 400, 422],
      ['a query of the wrong type', { query: 7 }, 400, 400, 422],
      ['an operationName of the wrong type', { query: '{ hello }', operationName: 7 }, 400, 400, 422],
      ['variables as a list', { query: '{ hello }', variables: [7] }, 400, 400, 422],
      ['variables as text', { query: '{ hello }', variables: '{}' }, 400, 400, 422],
      ['extensions of the wrong type', { query: '{ hello }', extensions: 'x' }, 400, 400, 422],
      ['a subscription', { query: 'subscription { ticks }' }, 400, 400, 400],
    ];
    const draft = serve({ statusCodes: 'spec' });

    it.each(cases)(
      'graphqlHTTP sends the status that the specification requires for %s',
      async (_what, body, json, graphql, newest) => {
        const responses = [
          await post(body),
          await post(body, GRAPHQL_TYPE),
          await post(body, JSON_TYPE, draft),
        ];
        expect(responses.map(({ status }) => status)).toEqual([json, graphql, newest]);
        for (const response of responses) {
          const { data, errors } = JSON.parse(response.text);
          if (errors === undefined) expect(data).toBeDefined();
          else
            expect(errors.every((error: { message?: unknown }) => typeof error.message === 'string')).toBe(
              true,
            );
          expect(data === undefined).toBe(graphql >= 400);
        }
      },
    );

    it("graphqlHTTP with statusCodes: 'spec' uses the new media type for every unsuccessful response", async () => {
      await post({ query: '{ nope }' }, JSON_TYPE, draft).expect(
        'content-type',
        `${GRAPHQL_TYPE}; charset=utf-8`,
      );
      await post({ query: '{ hello fail }' }, JSON_TYPE, draft).expect(
        'content-type',
        `${JSON_TYPE}; charset=utf-8`,
      );
      const batching = serve({ statusCodes: 'spec', batching: true });
      await post([{ query: '{ nope }' }], JSON_TYPE, batching)
        .expect(422)
        .expect('content-type', `${GRAPHQL_TYPE}; charset=utf-8`);
    });
  });

  describe('parameters', () => {
    const get = (search: string) => request(app).get(`/graphql?${search}`);

    it('graphqlHTTP decodes the parameters of the URL', async () => {
      const variables = encodeURIComponent('{"n":"Ada + Bob 🐙"}');
      await get(
        `query=query+A($n:String){hello(name:$n)}query%20B{must}&operationName=A&variables=${variables}`,
      ).expect(200, {
        data: { hello: 'Hello Ada + Bob 🐙' },
      });
    });

    it.each([
      ['empty ones', 'query={hello}&variables=&operationName=&extensions='],
      ['unknown ones', 'query={hello}&foo=bar&query[]=x&foo=baz'],
      ['null ones', 'query={hello}&variables=null&extensions=null'],
      ['stray separators', '&&query={hello}&'],
    ])('graphqlHTTP ignores parameters of the URL: %s', async (_what, search) => {
      await get(search).expect(200, { data: { hello: 'Hello world' } });
    });

    it.each([
      ['no query', ''],
      ['an empty query', 'query='],
      ['a repeated query', 'query={hello}&query={hello}'],
      ['repeated variables', 'query={hello}&variables={}&variables={}'],
      ['a query as a list', 'query[]={hello}'],
      ['a broken escape', 'query=%E0%A4%A'],
      ['variables that are not JSON', 'query={hello}&variables={'],
      ['variables that are not an object', 'query={hello}&variables=[1]'],
      ['extensions that are not JSON', 'query={hello}&extensions=x'],
    ])('graphqlHTTP sends 400 for parameters of the URL: %s', async (_what, search) => {
      const { body } = await get(search).expect(400);
      expect(body.data).toBeUndefined();
    });

    it('graphqlHTTP ignores parameters of the URL if there is a body', async () => {
      const { body } = await request(app)
        .post('/graphql?query={hello}&operationName=X&variables={}')
        .send({ query: '{ must }' });
      expect(body.data).toBeNull();
      await request(app).post('/graphql?query={hello}').set('content-type', JSON_TYPE).send('{}').expect(400);
    });

    it('graphqlHTTP ignores an Accept header with more than 32 media ranges', async () => {
      for (const last of ['*/*', 'text/x-unknown']) {
        const accept = `${'text/x-unknown, '.repeat(512)}${last}`;
        await request(app).get('/graphql?query={hello}').set('accept', accept).expect(200);
      }
    });

    it('graphqlHTTP accepts null parameters of a body and ignores unknown members', async () => {
      const nulls = { operationName: null, variables: null, extensions: null };
      await post({ query: '{ hello }', ...nulls, id: 7, foo: {} }).expect(200, {
        data: { hello: 'Hello world' },
      });
      await post({ query: '{ hello }', operationName: '' }).expect(200);
    });

    it('graphqlHTTP uses the last of repeated members, like JSON.parse', async () => {
      await post('{"query":"{ must }","query":"{ hello }"}').expect(200, { data: { hello: 'Hello world' } });
    });

    it.each(['{"__proto__":{"query":"{ hello }"}}', '{"constructor":{"prototype":{"query":"{ hello }"}}}'])(
      'graphqlHTTP reads no inherited parameter: %s',
      async (text) => {
        await post(text).expect(400);
        expect(Object.hasOwn(Object.prototype, 'query')).toBe(false);
      },
    );

    it('graphqlHTTP treats __proto__ as an ordinary variable', async () => {
      const text = '{"query":"query ($n: String) { hello(name: $n) }","variables":{"__proto__":{"n":"x"}}}';
      await post(text).expect(200, { data: { hello: 'Hello world' } });
    });
  });

  describe('methods', () => {
    it.each(['put', 'patch', 'delete', 'options'] as const)(
      'graphqlHTTP sends 405 with Allow for %s',
      async (method) => {
        const { body } = await request(serve())
          [method]('/graphql')
          .expect(405)
          .expect('allow', 'GET, POST, HEAD, QUERY');
        expect(body.errors[0].extensions.code).toBe('METHOD_NOT_ALLOWED');
      },
    );

    it.each(['put', 'patch', 'delete'] as const)(
      'graphqlHTTP sends 405 with Allow for %s of an operation by default',
      async (method) => {
        await request(app)
          [method]('/graphql')
          .send({ query: '{ hello }' })
          .expect(405)
          .expect('allow', 'GET, POST, HEAD, QUERY');
      },
    );

    it('graphqlHTTP sends 405 for methods that are not in the option methods', async () => {
      const posts = serve({ methods: [Method.POST] });
      await request(posts).get('/graphql?query={hello}').expect(405).expect('allow', 'POST');
      await request(posts).head('/graphql?query={hello}').expect(405);
      await post({ query: '{ hello }' }, JSON_TYPE, posts).expect(200);
    });

    it('graphqlHTTP responds to HEAD with the headers of GET', async () => {
      const get = await request(app).get('/graphql?query={hello}');
      const head = await request(app).head('/graphql?query={hello}').expect(200);
      const { date: _get, ...expected } = get.headers;
      const { date: _head, ...headers } = head.headers;
      expect(headers).toEqual(expected);
      expect(head.text).toBeUndefined();
    });
  });

  it('graphqlHTTP sends Cache-Control: no-store and X-Content-Type-Options', async () => {
    await post({ query: '{ hello }' })
      .expect('cache-control', 'no-store')
      .expect('x-content-type-options', 'nosniff')
      .expect('vary', 'Accept');
  });

  it('graphqlHTTP keeps Cache-Control and Vary of the application', async () => {
    const cached = express()
      .use((_req, res, next) => {
        res.set({ 'cache-control': 'private, max-age=60', vary: 'Origin' });
        next();
      })
      .use('/graphql', graphqlHTTP(schema, { rootValue }));
    await request(cached)
      .get('/graphql?query={hello}')
      .expect('cache-control', 'private, max-age=60')
      .expect('vary', 'Origin, Accept');
  });
});
