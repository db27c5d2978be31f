/** @tags graphql */
import { randomBytes } from 'node:crypto';
import compression from 'compression';
import express from 'express';
import { GraphQLError, type GraphQLSchema } from 'graphql';
import request from 'supertest';
import { type CacheControlInfo, type GraphQLOptions, graphqlHTTP } from '../../middleware/index.ts';
import { createServer as createOwnServer } from '../../middleware/server.ts';
import { requestHttp2 } from '../exchange.ts';
import { eachExpress } from '../express.ts';
import { listen } from '../kit.ts';
import { appOf, get, schemaOf } from './service.ts';

const GRAPHQL_TYPE = 'application/graphql-response+json';
const STRONG_TAG = /^"[\w-]+"$/;

let counter = 0;
const LONG = randomBytes(20_000).toString('hex');

function createSchema(): GraphQLSchema {
  return schemaOf(
    `type Query {
      book: String @cacheControl(maxAge: 60)
      greeting: String @cacheControl(maxAge: 60, vary: ["accept-language", "X-Region"])
      shared: String @cacheControl(maxAge: 5, sharedMaxAge: 300)
      plain: String
      counter: Int
      failing: String @cacheControl(maxAge: 60)
      long: String @cacheControl(maxAge: 60)
      tagged: String @cacheControl(maxAge: 60)
      secret: String @cacheControl(maxAge: 60, scope: PRIVATE)
    }
    type Mutation { write: String @cacheControl(maxAge: 60) }`,
    {
      Query: {
        book: () => 'Dune',
        greeting: () => 'hello',
        shared: () => 'x',
        plain: () => 'plain',
        counter: () => ++counter,
        failing: () => {
          throw new GraphQLError('failed');
        },
        long: () => LONG,
        tagged: (_source: unknown, _args: unknown, _context: unknown, { cacheControl }: CacheControlInfo) => {
          cacheControl.tag('book-1', 'books');
          cacheControl.tag('books');
          return 'tagged';
        },
        secret: () => 'secret',
      },
      Mutation: { write: () => 'written' },
    },
  );
}

const serve = (options?: GraphQLOptions): express.Express => appOf(createSchema(), options);

describe('Cache-Control', () => {
  it('graphqlHTTP reads a defaultMaxAge with a unit, as all other durations', async () => {
    for (const [defaultMaxAge, seconds] of [
      ['5m', 300],
      ['1500ms', 1],
      [90, 90],
    ] as const) {
      const { headers } = await get(serve({ httpCache: { defaultMaxAge } }), '{ plain }').expect(200);
      expect(headers['cache-control']).toMatch(new RegExp(`max-age=${seconds}\\b`));
    }
  });

  it('graphqlHTTP sends no-store and no ETag without httpCache', async () => {
    const { headers } = await get(serve({ httpCache: false }), '{ book }').expect(
      'cache-control',
      'no-store',
    );
    expect(headers).not.toHaveProperty('etag');
    expect(headers).not.toHaveProperty('cdn-cache-control');
  });

  it.each([
    ['a result with a field error', '{ book failing }'],
    ['a validation error', '{ unknown }'],
    ['a syntax error', '{'],
    ['an unknown operation', 'query A { book } query B { book }'],
  ])('graphqlHTTP sends no-store and no ETag for %s', async (_name, query) => {
    const { headers } = await get(serve(), query).expect('cache-control', 'no-store');
    expect(headers).not.toHaveProperty('etag');
  });

  it('graphqlHTTP sends the policy of a query over POST, and neither an ETag nor a 304', async () => {
    const send = (query: string) => request(serve()).post('/graphql').send({ query });
    for (const [query, expected] of [
      ['{ book }', 'public, max-age=60'],
      ['mutation { write }', 'no-store'],
    ] as const) {
      const { headers } = await send(query).set('if-none-match', '*').expect(200);
      expect(headers['cache-control']).toBe(expected);
      expect(headers).not.toHaveProperty('etag');
    }
  });

  it('graphqlHTTP sends no-store and no ETag for a mutation over GET', async () => {
    const { headers, body } = await get(serve(), 'mutation { write }').expect('cache-control', 'no-store');
    expect(body).toEqual({ data: { write: 'written' } });
    expect(headers).not.toHaveProperty('etag');
  });

  it('graphqlHTTP sends no-store and no ETag for a refused operation', async () => {
    const app = serve({ onOperation: () => ({ errors: [new GraphQLError('refused')] }) });
    const { headers } = await get(app, '{ book }').expect('cache-control', 'no-store');
    expect(headers).not.toHaveProperty('etag');
  });

  it('graphqlHTTP sends CDN-Cache-Control for sharedMaxAge', async () => {
    await get(serve(), '{ shared }')
      .expect('cache-control', 'public, max-age=5, s-maxage=300')
      .expect('cdn-cache-control', 'max-age=300');
    const { headers } = await get(serve(), '{ book }');
    expect(headers).not.toHaveProperty('cdn-cache-control');
    const own = await get(serve(), '{ shared }')
      .set('cookie', 'a=b')
      .expect('cache-control', 'private, max-age=5');
    expect(own.headers).not.toHaveProperty('cdn-cache-control');
  });

  it('graphqlHTTP keeps the Cache-Control of the application', async () => {
    const app = express()
      .use((_req, res, next) => {
        res.setHeader('Cache-Control', 'private, no-cache');
        next();
      })
      .use('/graphql', graphqlHTTP(createSchema(), { httpCache: true }));
    const { headers } = await get(app, '{ book }').expect('cache-control', 'private, no-cache');
    expect(headers['etag']).toMatch(STRONG_TAG);
  });
});

describe('Vary', () => {
  it('graphqlHTTP adds the headers of the schema and the resolver to Vary', async () => {
    const app = serve();
    await get(app, '{ greeting }').expect('vary', 'Accept, Accept-Language, X-Region');
    await get(app, '{ plain }').expect('vary', 'Accept');
  });

  it('graphqlHTTP adds Authorization and Cookie to Vary of private results', async () => {
    await get(serve(), '{ secret }').expect('vary', 'Accept, Authorization, Cookie');
  });
});

describe('tags', () => {
  it.each([
    ['Cache-Tag', 'book-1,books'],
    ['Surrogate-Key', 'book-1 books'],
    ['xkey', 'book-1 books'],
  ] as const)('graphqlHTTP lists the tags of a public result in %s', async (tags, expected) => {
    const app = serve({ httpCache: { tags } });
    await get(app, '{ tagged }').expect(tags, expected);
    const { headers } = await get(app, '{ tagged }').set('authorization', 'Bearer x');
    expect(headers).not.toHaveProperty(tags.toLowerCase());
  });

  it('a result with more tags than fit into a header is private, and clients can read its headers', async () => {
    const items = Array.from({ length: 900 }, (_, id) => ({ id: `${id}`.padStart(20, '0') }));
    const typeDefs = `
      directive @cacheTag(format: String!) on OBJECT
      type Query { items(first: Int!): [Item!]! @cacheControl(maxAge: 60, sharedMaxAge: 600) }
      type Item @cacheTag(format: "item-{$key.id}") { id: ID! }`;
    const schema = schemaOf(typeDefs, {
      Query: { items: (_source: unknown, { first }: { first: number }) => items.slice(0, first) },
    });
    const app = appOf(schema, { responseCache: true, httpCache: { tags: 'Surrogate-Key' } });
    for (let round = 0; round < 2; round++) {
      const few = await get(app, '{ items(first: 200) { id } }').expect(200);
      expect(few.headers['cache-control']).toBe('public, max-age=60, s-maxage=600');
      expect(String(few.headers['surrogate-key']).split(' ')).toHaveLength(200);
      const many = await get(app, '{ items(first: 900) { id } }').expect(200);
      expect(many.headers['cache-control']).toBe('private, max-age=60');
      expect(many.headers['surrogate-key']).toBeUndefined();
    }
  });

  it('graphqlHTTP sends no tags without tags', async () => {
    const { headers } = await get(serve(), '{ tagged }');
    expect(Object.values(headers).join()).not.toContain('book-1');
  });

  it.each(['', 'a b', 'a,b', 'a"b', 'a\\b', 'a\nb', 'é', 'x'.repeat(257), 5])(
    'info.cacheControl.tag throws for %j',
    async (tag) => {
      const reported: unknown[] = [];
      const schema = schemaOf('type Query { a: Int }', {
        Query: {
          a: (_source: unknown, _args: unknown, _context: unknown, { cacheControl }: CacheControlInfo) =>
            Reflect.apply(cacheControl.tag, undefined, [tag]),
        },
      });
      await get(appOf(schema, { onError: (error) => reported.push(error) }), '{ a }').expect(200);
      expect(reported).toEqual([expect.objectContaining({ code: 'ERR_OPTION' })]);
    },
  );
});

describe('ETag', () => {
  it('graphqlHTTP sends a strong ETag of the bytes for GET and HEAD', async () => {
    const app = serve();
    const first = await get(app, '{ book }').expect(200);
    const { headers } = await get(app, '{ book }');
    expect(first.headers['etag']).toMatch(STRONG_TAG);
    expect(headers['etag']).toBe(first.headers['etag']);
    const head = await request(app).head('/graphql').query({ query: '{ book }' }).expect(200);
    expect(head.headers['etag']).toBe(first.headers['etag']);
    expect(head.headers['cache-control']).toBe('public, max-age=60');
    const other = await get(app, '{ x: book }');
    expect(other.headers['etag']).not.toBe(first.headers['etag']);
  });

  it('graphqlHTTP sends another ETag for another result', async () => {
    const app = serve();
    const tags = [await get(app, '{ counter }'), await get(app, '{ counter }')].map(
      ({ headers }) => headers['etag'],
    );
    expect(tags[0]).toMatch(STRONG_TAG);
    expect(tags[1]).not.toBe(tags[0]);
  });

  it('graphqlHTTP sends another ETag for another media type', async () => {
    const app = serve();
    const json = await get(app, '{ book }').set('accept', 'application/json');
    const graphql = await get(app, '{ book }').set('accept', GRAPHQL_TYPE);
    expect(graphql.headers['etag']).toMatch(STRONG_TAG);
    expect(graphql.headers['etag']).not.toBe(json.headers['etag']);
  });

  it('graphqlHTTP sends an ETag for results that are not cacheable', async () => {
    const { headers } = await get(serve(), '{ plain }').expect('cache-control', 'no-store');
    expect(headers['etag']).toMatch(STRONG_TAG);
    await get(serve(), '{ plain }').set('if-none-match', String(headers['etag'])).expect(304);
  });

  it.each(['compiled', 'graphql-js'] as const)('the engine %s has the same ETag', async (engine) => {
    const { headers } = await get(serve({ engine }), '{ book long }');
    expect(headers['etag']).toBe((await get(serve(), '{ book long }')).headers['etag']);
  });

  it('graphqlHTTP sends a weak ETag if a compressor may change the bytes', async () => {
    const app = express()
      .use(compression({ threshold: 0 }))
      .use('/graphql', graphqlHTTP(createSchema(), { httpCache: true }));
    const { headers } = await get(app, '{ long }')
      .set('accept-encoding', 'gzip')
      .expect('content-encoding', 'gzip');
    expect(headers['etag']).toMatch(/^W\/"[\w-]+"$/);
    expect(headers['vary']).toBe('Accept, Accept-Encoding');
    // RFC 9110 §15.4.5: a 304 has the same Vary, and caches use it instead of the stored one.
    await get(app, '{ long }')
      .set('accept-encoding', 'gzip')
      .set('if-none-match', String(headers['etag']))
      .expect('vary', 'Accept, Accept-Encoding')
      .expect(304);
  });

  it('graphqlHTTP sends a strong ETag over HTTP/2, and a weak one after a compressor', async () => {
    const tags: unknown[] = [];
    for (const earlier of [[], [compression({ threshold: 0 })]]) {
      const app = express();
      for (const middleware of earlier) app.use(middleware);
      app.use('/graphql', graphqlHTTP(createSchema(), { httpCache: true }));
      const { port } = await listen(createOwnServer(app, { http2: true }));
      const path = `/graphql?query=${encodeURIComponent('{ long }')}`;
      tags.push((await requestHttp2(port, { path })).headers['etag']);
    }
    expect(tags).toEqual([expect.stringMatching(STRONG_TAG), `W/${tags[0]}`]);
  });

  it('graphqlHTTP keeps the ETag of the application', async () => {
    const app = express()
      .use((_req, res, next) => {
        res.setHeader('ETag', '"v1"');
        next();
      })
      .use('/graphql', graphqlHTTP(createSchema(), { httpCache: true }));
    await get(app, '{ book }').expect('etag', '"v1"');
    await get(app, '{ book }').set('if-none-match', '"v1"').expect(304);
  });
});

eachExpress((express) => {
  describe('conditional requests', () => {
    const app = express().use('/graphql', graphqlHTTP(createSchema(), { httpCache: true }));

    it('graphqlHTTP sends 304 without content when If-None-Match lists the ETag', async () => {
      const { headers } = await get(app, '{ book }');
      const tag = String(headers['etag']);
      for (const list of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
        const { status, text, headers: sent } = await get(app, '{ book }').set('if-none-match', list);
        expect([status, text]).toEqual([304, '']);
        expect(sent).toMatchObject({ etag: tag, 'cache-control': 'public, max-age=60', vary: 'Accept' });
        expect(sent).not.toHaveProperty('content-type');
        expect(sent).not.toHaveProperty('content-length');
      }
      await get(app, '{ book }').set('if-none-match', '"other"').expect(200);
    });

    it('graphqlHTTP sends 304 for HEAD', async () => {
      const { headers } = await get(app, '{ book }');
      await request(app)
        .head('/graphql')
        .query({ query: '{ book }' })
        .set('if-none-match', String(headers['etag']))
        .expect(304);
    });

    it('graphqlHTTP sends 412 when If-Match lists another ETag', async () => {
      const { headers } = await get(app, '{ book }');
      await get(app, '{ book }').set('if-match', String(headers['etag'])).expect(200);
      const { body, headers: sent } = await get(app, '{ book }').set('if-match', '"other"').expect(412);
      expect(body.errors[0].extensions.code).toBe('PRECONDITION_FAILED');
      expect(sent['cache-control']).toBe('no-store');
    });

    it('graphqlHTTP ignores If-None-Match for POST and for errors', async () => {
      await request(app).post('/graphql').set('if-none-match', '*').send({ query: '{ book }' }).expect(200);
      const { body } = await get(app, '{ failing }').set('if-none-match', '*').expect(200);
      expect(body.errors).toHaveLength(1);
    });

    it('graphqlHTTP keeps the connection usable after a 304 of a long response', async () => {
      const { url } = await listen(app, '/graphql?query={long}');
      const first = await fetch(url);
      const body = await first.text();
      const tag = String(first.headers.get('etag'));
      for (let i = 0; i < 20; i++) {
        // fetch adds Cache-Control: no-cache to requests with If-None-Match.
        const response = await fetch(url, { headers: { 'if-none-match': tag } });
        expect([response.status, await response.text()]).toEqual([304, '']);
        expect(await (await fetch(url)).text()).toBe(body);
      }
    });
  });
});

it('cacheControl does not apply to batches', async () => {
  const response = await request(serve({ batching: true }))
    .post('/graphql')
    .send([{ query: '{ book }' }, { query: '{ book }' }])
    .expect('cache-control', 'no-store');
  expect(response.headers).not.toHaveProperty('etag');
});
