/** @tags once */
import { createServer } from 'node:http';
import { buildSchema } from 'graphql';
import helmet from 'helmet';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { eachExpress } from '../express.ts';
import { snippets } from '../snippets.ts';

const schema = buildSchema('type Query { hello: String }');
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';
const STRICT =
  "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-?'; style-src-attr 'unsafe-inline'; worker-src 'self'; " +
  "connect-src 'self'; font-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

it('docs/graphiql.md contains the Content-Security-Policy of the page', () => {
  const policies = snippets('text').filter(({ page }) => page === 'docs/graphiql.md');
  expect(policies.map(({ code }) => code.replace(/\s+/g, ' ').replace('nonce-…', 'nonce-?').trim())).toEqual([
    STRICT,
  ]);
});

const isPage = (text: string): boolean => text.includes('<title>GraphiQL</title>');
/** The Content-Security-Policy of a page, without its nonce. */
const policyOf = ({ headers }: { headers: Record<string, string> }): string | undefined =>
  headers['content-security-policy']?.replace(/'nonce-[^']+'/, "'nonce-?'");

eachExpress((express) => {
  type Options = NonNullable<Parameters<typeof graphqlHTTP>[1]>['graphiql'];
  const serve = (graphiql?: Options) =>
    express().use('/graphql', graphqlHTTP(schema, graphiql === undefined ? {} : { graphiql }));
  const visit = (app: ReturnType<typeof express>, path = '/graphql') =>
    request(app).get(path).set('accept', BROWSER);
  const scriptOf = (text: string): string => /src="([^"]+)"/.exec(text)?.[1] ?? '';

  it.each([
    BROWSER,
    'text/html',
    'text/html, application/json',
    'application/json;q=0.9, text/html',
    'application/graphql-response+json;q=0.5, text/html;q=0.6',
    'text/*',
    'TEXT/HTML',
  ])('graphqlHTTP sends the GraphiQL page for Accept: %s', async (accept) => {
    const { text, headers } = await request(serve()).get('/graphql').set('accept', accept).expect(200);
    expect(isPage(text)).toBe(true);
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
  });

  it.each([
    undefined,
    '',
    '*/*',
    'application/json',
    'application/json, text/html',
    'application/graphql-response+json, text/html;q=0.9',
    '*/*, text/html;q=0.9',
    'text/html;q=0, */*',
    'text/html;q=invalid, application/json',
    'application/*, text/html;q=0.99',
  ])('graphqlHTTP sends JSON for Accept: %s', async (accept) => {
    const get = request(serve()).get('/graphql?query={__typename}');
    if (accept !== undefined) get.set('accept', accept);
    const { body, headers } = await get.expect(200);
    expect(body).toEqual({ data: { __typename: 'Query' } });
    expect(headers.vary).toBe('Accept');
  });

  it('graphqlHTTP sends the GraphiQL page with its headers and a new nonce each time', async () => {
    const app = serve();
    const [one, other] = [await visit(app), await visit(app)];
    expect(one.headers).toMatchObject({
      'cache-control': 'no-store',
      vary: 'Accept',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'x-robots-tag': 'noindex',
    });
    expect(policyOf(one)).toBe(STRICT);
    const nonces = [one, other].map(
      ({ headers }) => /'nonce-([^']+)'/.exec(headers['content-security-policy'] ?? '')?.[1],
    );
    expect(Buffer.from(nonces[0] ?? '', 'base64')).toHaveLength(16);
    expect(nonces[0]).not.toBe(nonces[1]);
    expect(one.text.split(`nonce="${nonces[0]}"`)).toHaveLength(3);
  });

  it('the GraphiQL page has no inline script', async () => {
    const { text } = await visit(serve());
    expect(text.match(/<script[^>]*>/g)).toEqual([
      '<script type="application/json" id="graphiql-config">',
      expect.stringMatching(/^<script type="module" src="\.\/graphql\/__graphiql\/main-[\w-]{8}\.js">$/),
    ]);
    expect(text).not.toMatch(/\son\w+=|javascript:|https?:\/\/(?!www\.w3\.org\/2000\/svg)/);
  });

  it('graphqlHTTP sends the headers of the GraphiQL page for HEAD', async () => {
    const { headers, text } = await request(serve()).head('/graphql').set('accept', BROWSER).expect(200);
    expect(Number(headers['content-length'])).toBeGreaterThan(1000);
    expect(text).toBeUndefined();
  });

  it('graphqlHTTP sends JSON for ?raw and the page for other parameters', async () => {
    await visit(serve(), '/graphql?query={__typename}&raw').expect(200, { data: { __typename: 'Query' } });
    expect(isPage((await visit(serve(), '/graphql?query={x}&rawer')).text)).toBe(true);
  });

  it('the GraphiQL page keeps an earlier Vary header and replaces the policy for its response only', async () => {
    const app = express();
    app.use(helmet(), (_req, res, next) => {
      res.vary('Origin');
      next();
    });
    app.use('/graphql', graphqlHTTP(schema));
    const page = await visit(app);
    expect([page.headers.vary, policyOf(page)]).toEqual(['Origin, Accept', STRICT]);
    const json = await request(app).get('/graphql?query={__typename}');
    expect(json.headers['content-security-policy']).toContain("script-src-attr 'none'");
  });

  it.each([
    [{ endpoint: '/elsewhere' }, "connect-src 'self'"],
    [{ endpoint: 'https://api.example/graphql' }, "connect-src 'self' https://api.example wss://api.example"],
    [
      { endpoint: 'https://api.example/graphql', subscriptionEndpoint: false as const },
      "connect-src 'self' https://api.example",
    ],
    [{ subscriptionEndpoint: 'ws://live.example:8080/x' }, "connect-src 'self' ws://live.example:8080"],
    [{ endpoint: '//api.example/graphql' }, "connect-src 'self' api.example"],
  ])('the policy of GraphiQL allows the endpoints of %j', async (options, expected) => {
    expect(policyOf(await visit(serve(options)))?.split('; ')).toContain(expected);
  });

  it.each(['/graphql', '/graphql/', '/graphql?query={x}', '/graphql/?query=/a/b'])(
    'the GraphiQL page links its files relative to %s',
    async (path) => {
      const app = serve();
      const { text } = await visit(app, path);
      const script = new URL(scriptOf(text), `http://localhost${path}`);
      expect(script.pathname).toMatch(/^\/graphql\/__graphiql\/main/);
      await request(app).get(script.pathname).expect(200);
    },
  );

  it('the GraphiQL page links its files for a path with any characters', async () => {
    const app = express().use(graphqlHTTP(schema));
    const { text } = await visit(app, "/x/a&b'%22%3C%E2%82%AC");
    expect(scriptOf(text)).toMatch(/^\.\/a&amp;b&#39;%22%3C%E2%82%AC\/__graphiql\/main/);
  });

  it('the GraphiQL page does not link another host for a path that begins with //', async () => {
    const app = express().use('/', graphqlHTTP(schema));
    const { text } = await request(app).get('//evil.example/graphql').set('accept', BROWSER);
    expect(text).not.toMatch(/(?:src|href)="(?!\.\/|data:)/);
  });

  it('graphqlHTTP passes on requests for pages below the mount', async () => {
    const app = serve().use((_req, res) => void res.status(418).end());
    await visit(app, '/graphql/about').expect(418);
  });

  it.each([
    ['app.all', (app: ReturnType<typeof express>) => app.all('/graphql', graphqlHTTP(schema))],
    ['app.get', (app: ReturnType<typeof express>) => app.get(['/graphql', '/other'], graphqlHTTP(schema))],
    [
      'a regular expression',
      (app: ReturnType<typeof express>) => app.all(/^\/graphql$/, graphqlHTTP(schema)),
    ],
    [
      'a router',
      (app: ReturnType<typeof express>) =>
        app.use('/graphql', express.Router().all('/', graphqlHTTP(schema))),
    ],
    [
      'a function that calls the handler',
      (app: ReturnType<typeof express>) => {
        const handler = graphqlHTTP(schema);
        return app.all('/graphql', (req, res, next) => handler(req, res, next));
      },
    ],
  ])('graphqlHTTP explains why GraphiQL cannot run on an exact route (%s)', async (_how, mount) => {
    const app = mount(express());
    const { text } = await visit(app).expect(500);
    expect(text).toContain('<code>app.use(&#39;/graphql&#39;, graphqlHTTP(schema))</code>');
    await request(app)
      .get('/graphql?query={__typename}')
      .expect(200, { data: { __typename: 'Query' } });
  });

  it('GraphiQL works after an exact route that called next', async () => {
    const app = express().all('/graphql', (_req, _res, next) => next());
    await visit(app.use('/graphql', graphqlHTTP(schema))).expect(200);
  });

  it("graphqlHTTP explains why GraphiQL cannot run on a router's route", async () => {
    const app = express().use('/api', express.Router().all('/graphql', graphqlHTTP(schema)));
    const { text } = await visit(app, '/api/graphql').expect(500);
    expect(text).toContain('<code>app.use(&#39;/api/graphql&#39;, graphqlHTTP(schema))</code>');
  });

  it('GraphiQL works on a route that also matches the paths below it', async () => {
    const app = express().all(/^\/graphql(\/|$)/, graphqlHTTP(schema));
    const { text } = await visit(app).expect(200);
    await request(app)
      .get(new URL(scriptOf(text), 'http://localhost/graphql').pathname)
      .expect(200);
  });

  it('graphiql: false serves neither the page nor its files', async () => {
    const file = new URL(scriptOf((await visit(serve())).text), 'http://localhost/graphql').pathname;
    const app = serve(false);
    await visit(app, '/graphql?query={__typename}').expect(200, { data: { __typename: 'Query' } });
    await request(app).get(file).expect(404);
  });

  it('graphqlHTTP calls a graphiql function for the page and its files, never for the API', async () => {
    const requested: string[] = [];
    const app = serve((req) => {
      requested.push(`${req.originalUrl}`);
      return req.headers['x-who'] === 'staff' && { defaultQuery: '{ staff }' };
    });
    const { text } = await visit(app).set('x-who', 'staff').expect(200);
    expect(text).toContain('{"defaultQuery":"{ staff }"}');
    const file = new URL(scriptOf(text), 'http://localhost/graphql').pathname;
    const served = await request(app).get(file).set('x-who', 'staff').expect(200);
    expect(served.headers['cache-control']).toBe('private, max-age=31536000, immutable');
    await request(app).get(file).expect(404);
    expect((await visit(app, '/graphql?query={__typename}')).text).not.toContain('<title>');
    expect(requested).toHaveLength(4);
    await request(app).post('/graphql').send({ query: '{__typename}' }).expect(200);
    await request(app).get('/graphql?query={__typename}').expect(200);
    expect(requested).toHaveLength(4);
  });
});

describe('without a framework', () => {
  const reported: unknown[] = [];
  const handler = graphqlHTTP(schema, {
    onError: (error) => reported.push(error),
    graphiql: (req) => {
      if (req.headers['x-fault'] !== undefined) throw new Error('gate broken');
      return true;
    },
  });
  const server = createServer((req, res) => handler(req, res));

  it('graphqlHTTP serves GraphiQL without a framework', async () => {
    const { text } = await request(server).get('/graphql').set('accept', BROWSER).expect(200);
    const file = /src="\.(\/graphql[^"]+)"/.exec(text)?.[1] ?? '';
    await request(server)
      .get(file)
      .expect(200)
      .expect('content-type', /javascript/);
    await request(server).get('/graphql/__graphiql/no-such.js').expect(404);
  });

  it('graphqlHTTP without a framework responds with 500 and hides the error', async () => {
    const { body, text } = await request(server)
      .get('/graphql')
      .set({ accept: BROWSER, 'x-fault': '1' })
      .expect(500)
      .expect('content-type', 'application/json; charset=utf-8');
    expect(body.errors[0]).toMatchObject({
      message: 'Internal server error',
      extensions: { code: 'INTERNAL_SERVER_ERROR' },
    });
    expect(text).not.toContain('gate broken at');
    expect(reported).toEqual([new Error('gate broken')]);
  });
});
