/** @tags node graphql */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http2';
import { buildSchema } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import { requestHttp2, serving } from '../exchange.ts';
import { eachExpress } from '../express.ts';

const schema = buildSchema('type Query { hello: String } type Mutation { add: Int }');
const BROWSER = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36', cookie: 'session=1' };
const anyType = { 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors', accept: '*/*' };
const fetched = { ...anyType, accept: 'application/json' };
type Sent = Record<string, string>;
const sec = (site: string, mode: string, dest: string): Sent => ({
  'sec-fetch-site': site,
  'sec-fetch-mode': mode,
  'sec-fetch-dest': dest,
});

/** Headers that browsers and other clients send with a GET, and whether a mutation may run. */
const requests: [string, Sent, number][] = [
  [
    'fetch of the own page',
    { ...BROWSER, ...fetched, 'sec-fetch-site': 'same-origin', referer: 'http://a/' },
    200,
  ],
  [
    'fetch of the own page in same-origin mode',
    { ...fetched, 'sec-fetch-mode': 'same-origin', 'sec-fetch-site': 'same-origin' },
    200,
  ],
  [
    'fetch of the own page with the Accept header of GraphQL clients',
    {
      ...BROWSER,
      ...fetched,
      'sec-fetch-site': 'same-origin',
      accept: 'application/graphql-response+json, application/json',
    },
    200,
  ],
  [
    'fetch of the own page with a preflight header',
    { ...BROWSER, ...anyType, 'sec-fetch-site': 'same-origin', 'graphql-require-preflight': '1' },
    200,
  ],
  [
    'fetch of the own page that accepts any type',
    { ...BROWSER, ...anyType, 'sec-fetch-site': 'same-origin' },
    403,
  ],
  [
    'an image that a service worker forwards',
    {
      ...BROWSER,
      ...anyType,
      'sec-fetch-site': 'same-origin',
      accept: 'image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8',
    },
    403,
  ],
  [
    'a JSON module that a service worker forwards',
    { ...BROWSER, ...anyType, 'sec-fetch-site': 'same-origin', accept: 'application/json,*/*;q=0.5' },
    403,
  ],
  ['an image on another site', { ...BROWSER, ...sec('cross-site', 'no-cors', 'image') }, 403],
  ['an image on a sibling subdomain', { ...BROWSER, ...sec('same-site', 'no-cors', 'image') }, 403],
  ['an image on the own page', { ...BROWSER, ...sec('same-origin', 'no-cors', 'image') }, 403],
  ['fetch in no-cors mode on the own page', { ...BROWSER, ...sec('same-origin', 'no-cors', 'empty') }, 403],
  [
    'fetch of a sibling subdomain',
    { ...BROWSER, ...fetched, 'sec-fetch-site': 'same-site', origin: 'http://b.example' },
    403,
  ],
  [
    'fetch of another site',
    { ...BROWSER, ...fetched, 'sec-fetch-site': 'cross-site', origin: 'http://evil.example' },
    403,
  ],
  [
    'fetch of another site with a preflight header',
    { ...fetched, 'sec-fetch-site': 'cross-site', 'graphql-require-preflight': '1' },
    403,
  ],
  ['a link on another site', { ...BROWSER, ...sec('cross-site', 'navigate', 'document') }, 403],
  ['a link on the own page', { ...BROWSER, ...sec('same-origin', 'navigate', 'document') }, 403],
  ['the address bar', { ...BROWSER, ...sec('none', 'navigate', 'document') }, 403],
  ['a frame', sec('cross-site', 'navigate', 'iframe'), 403],
  [
    'a navigation with a preflight header',
    { 'sec-fetch-mode': 'navigate', 'graphql-require-preflight': '1' },
    403,
  ],
  ['plain http from another origin', { ...BROWSER, origin: 'http://evil.example' }, 403],
  ['a sandboxed frame', { ...BROWSER, origin: 'null' }, 403],
  ['an Origin that is not a URL', { origin: 'invalid' }, 403],
  ['the own Origin', { ...BROWSER, origin: 'http://api.example' }, 200],
  ['the own Origin with its port written out', { ...BROWSER, origin: 'http://api.example:80' }, 200],
  ['the own host with another port', { ...BROWSER, origin: 'http://api.example:8080' }, 403],
  [
    'another Origin with a preflight header',
    { origin: 'http://evil.example', 'apollo-require-preflight': 'yes' },
    200,
  ],
  ['an empty preflight header', { origin: 'http://evil.example', 'apollo-require-preflight': '' }, 403],
  ['a cookie and nothing else', { cookie: 'session=1' }, 403],
  ['Basic credentials', { authorization: 'Basic YTpi' }, 403],
  ['Negotiate credentials', { authorization: 'negotiate abc' }, 403],
  ['a Bearer token', { authorization: 'Bearer abc' }, 200],
  ['a Referer', { referer: 'http://evil.example/' }, 403],
  ['an old browser', { 'user-agent': 'Mozilla/4.0 (compatible; MSIE 6.0)' }, 403],
  ['an old browser with a preflight header', { ...BROWSER, 'x-apollo-operation-name': 'Add' }, 200],
  ['curl', { 'user-agent': 'curl/8.0' }, 200],
  ['undici', { 'user-agent': 'node', 'sec-fetch-mode': 'cors' }, 200],
  ['a client with nothing', {}, 200],
  ['a client that knows the new media type only', { accept: 'application/graphql-response+json' }, 405],
  [
    'a client that knows both media types',
    { accept: 'application/graphql-response+json, application/json;q=0.9' },
    200,
  ],
  ['a client that takes anything', { accept: 'application/graphql-response+json, */*;q=0.1' }, 200],
];

eachExpress((express) => {
  let runs = 0;
  const serve = (options: GraphQLOptions = {}) =>
    express().use(
      '/graphql',
      graphqlHTTP(schema, { graphiql: false, rootValue: { add: () => ++runs, hello: 'world' }, ...options }),
    );
  const app = serve();

  it.each(requests)(
    'graphqlHTTP allows or refuses a mutation over GET by %s',
    async (_title, sent, status) => {
      const before = runs;
      const response = await request(app)
        .get('/graphql?query=mutation{add}')
        .set({ host: 'api.example', ...sent });
      expect([response.status, runs - before]).toEqual([status, status === 200 ? 1 : 0]);
      expect(response.headers['cache-control']).toBe('no-store');
      if (status !== 200) expect(response.body.errors[0].message).toMatch(/mutation|refused/i);
      if (status === 405) expect(response.headers['allow']).toBe('POST');
    },
  );

  it('graphqlHTTP refuses a mutation over HEAD with every value of getMutations', async () => {
    for (const getMutations of ['guarded', true, false] as const) {
      const before = runs;
      const { headers } = await request(serve({ getMutations }))
        .head('/graphql?query=mutation{add}')
        .expect(405);
      expect([headers['allow'], runs - before]).toEqual(['POST', 0]);
    }
  });

  it('graphqlHTTP sends 405 for mutations over GET with getMutations: false', async () => {
    const { body } = await request(serve({ getMutations: false }))
      .get('/graphql?query=mutation{add}')
      .expect(405)
      .expect('allow', 'POST');
    expect(body.errors[0].extensions.code).toBe('MUTATION_OVER_GET');
  });

  it('graphqlHTTP runs any mutation over GET with getMutations: true', async () => {
    const image = sec('cross-site', 'no-cors', 'image');
    await request(serve({ getMutations: true }))
      .get('/graphql?query=mutation{add}')
      .set(image)
      .expect(200);
  });

  it('graphqlHTTP accepts mutations over GET of allowedOrigins, but not of their images', async () => {
    const trusting = serve({ allowedOrigins: ['https://app.example'] });
    const page = { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' };
    const get = (sent: Sent) => request(trusting).get('/graphql?query=mutation{add}').set(sent);
    await get({ ...page, ...fetched }).expect(200);
    await get({ origin: 'https://app.example', cookie: 'a=b' }).expect(200);
    await get({ ...page, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }).expect(403);
  });

  it('graphqlHTTP checks the operation of operationName, not the document', async () => {
    const document = 'query Read { hello } mutation Write { add }';
    const get = (operationName: string) =>
      request(app).get('/graphql').query({ query: document, operationName }).set('cookie', 'a=b');
    await get('Read').expect(200, { data: { hello: 'world' } });
    await get('Write').expect(403);
  });

  it('graphqlHTTP runs the same mutations over POST with any headers', async () => {
    for (const [, sent] of requests) {
      await request(app)
        .post('/graphql')
        .set({ host: 'api.example', ...sent })
        .send({ query: 'mutation { add }' })
        .expect(200);
    }
  });

  describe('cross-site reads', () => {
    const image = sec('cross-site', 'no-cors', 'image');
    const read = (sent: Sent, options?: GraphQLOptions) =>
      request(serve(options)).get('/graphql?query={hello}').set(sent);

    it('graphqlHTTP refuses cross-site reads with a cookie in a mode that hides the response', async () => {
      await read({ ...image, cookie: 'a=b' }).expect(403);
      await read({ ...image, 'sec-fetch-mode': 'navigate', cookie: 'a=b' }).expect(403);
    });

    it('graphqlHTTP executes reads without a cookie, with CORS or of the same site', async () => {
      await read(image).expect(200);
      await read({ ...image, 'sec-fetch-mode': 'cors' }).expect(200);
      await read({ ...image, 'sec-fetch-site': 'same-site', cookie: 'a=b' }).expect(200);
    });

    const origin = 'https://other.example';
    const scripts: [string, Sent][] = [
      ['a fetch with a cookie', { ...sec('cross-site', 'cors', 'empty'), cookie: 'a=b', origin }],
      [
        'a fetch with Basic credentials',
        { ...sec('cross-site', 'cors', 'empty'), authorization: 'Basic YTpi', origin },
      ],
      ['a fetch over plain HTTP, without Fetch metadata', { cookie: 'a=b', origin }],
      ['a sandboxed frame', { ...sec('cross-site', 'cors', 'empty'), cookie: 'a=b', origin: 'null' }],
    ];
    it.each(scripts)(
      'graphqlHTTP refuses %s of another site that could measure its time, unless the page can read the response',
      async (_title, sent) => {
        const page = sent['origin'] as string;
        const behind = (cors: Sent) => (app: ReturnType<typeof serve>) =>
          express()
            .use((_req: unknown, res: ServerResponse, next: () => void) => {
              for (const [name, value] of Object.entries(cors)) res.setHeader(name, value);
              next();
            })
            .use(app);
        const status = async (app: ReturnType<typeof serve>, more: Sent = {}) =>
          (
            await request(app)
              .get('/graphql?query={hello}')
              .set({ ...sent, ...more })
          ).status;
        expect(await status(serve())).toBe(403);
        expect(await status(behind({ 'access-control-allow-origin': '*' })(serve()))).toBe(403);
        const allowed = { 'access-control-allow-origin': page };
        expect(await status(behind(allowed)(serve()))).toBe(403);
        expect(
          await status(behind({ ...allowed, 'access-control-allow-credentials': 'true' })(serve())),
        ).toBe(200);
        if (page === origin) expect(await status(serve({ allowedOrigins: [origin] }))).toBe(200);
        // A browser has asked for the permission to send these.
        expect(await status(serve(), { 'graphql-require-preflight': '1' })).toBe(200);
        expect(await status(serve(), { authorization: 'Bearer abc' })).toBe(200);
        expect(await status(serve(), { 'content-type': 'application/json' })).toBe(200);
      },
    );

    it('graphqlHTTP refuses cross-site reads with a body type that needs no preflight', async () => {
      await read({ 'content-type': 'text/plain' }).expect(415);
      await read({ 'content-type': 'application/json' }).expect(200);
    });
  });

  it('graphqlHTTP sends 421 for hosts that are not in allowedHosts', async () => {
    const hosted = serve({ allowedHosts: ['api.example'] });
    await request(hosted).get('/graphql?query={hello}').set('host', 'API.example').expect(200);
    await request(hosted).get('/graphql?query={hello}').set('host', 'evil.example').expect(421);
  });

  it('graphqlHTTP compares allowedHosts with the authority of a request over HTTP/2, and not with Host', async () => {
    const handler = graphqlHTTP(schema, { allowedHosts: ['site.test'], rootValue: { hello: 'world' } });
    const server = createServer(
      (req: unknown, res: unknown) => void handler(req as IncomingMessage, res as ServerResponse),
    );
    await serving(server, async (port) => {
      const path = '/?query={hello}';
      const send = (headers: Sent) => requestHttp2(port, { path, headers });
      expect(await send({ host: 'evil.test' })).toMatchObject({ status: 200 });
      expect(await send({ ':authority': 'evil.test', host: 'site.test' })).toMatchObject({ status: 421 });
    });
  });

  it('graphqlHTTP sends no CORS header', async () => {
    const { headers } = await request(app)
      .options('/graphql')
      .set('origin', 'https://evil.example')
      .expect(405);
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });
});
