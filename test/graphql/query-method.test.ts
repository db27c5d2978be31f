/** @tags node graphql */
import { createServer, METHODS } from 'node:http';
import { createServer as createHttp2 } from 'node:http2';
import type { Server } from 'node:net';
import { type GraphQLOptions, graphqlHTTP, Method } from '../../middleware/index.ts';
import { schemaOf } from '../cache/service.ts';
import { requestHttp1, requestHttp2, serving } from '../exchange.ts';
import { eachExpress } from '../express.ts';
import { listen } from '../kit.ts';

let writes = 0;
const schema = schemaOf(
  `type Query { hello(name: String): String @cacheControl(maxAge: 60) }
   type Mutation { write: Int }
   type Subscription { tick: Int }`,
  {
    Query: { hello: (_source: unknown, { name = 'world' }: { name?: string }) => `hello ${name}` },
    Mutation: { write: () => ++writes },
    Subscription: {
      tick: {
        async *subscribe() {
          yield { tick: 1 };
        },
      },
    },
  },
);
const JSON_TYPE = { 'content-type': 'application/json' };
const body = (query: string, variables?: object): string => JSON.stringify({ query, variables });

type Listener = (options?: GraphQLOptions) => Server;

function suite(listen: Listener, send = requestHttp1): void {
  const query = (
    text: string | Buffer,
    options: GraphQLOptions = {},
    headers: Record<string, string> = JSON_TYPE,
  ) =>
    serving(listen(options), (port) =>
      send(port, { method: 'QUERY', path: '/graphql', headers, body: text }),
    );

  it('graphqlHTTP executes a query of the body of a QUERY request', async () => {
    const response = await query(body('query ($name: String) { hello(name: $name) }', { name: 'Ann' }));
    expect(response).toMatchObject({ status: 200, body: '{"data":{"hello":"hello Ann"}}' });
    expect(response.headers).toMatchObject({
      'accept-query': 'application/json',
      'cache-control': 'no-store',
    });
  });

  it('graphqlHTTP sends 422 for a mutation in a QUERY request and does not run it', async () => {
    for (const getMutations of ['guarded', true, false] as const) {
      for (const accept of ['application/json', 'application/graphql-response+json']) {
        const { status, body: text } = await query(
          body('mutation { write }'),
          { getMutations },
          { ...JSON_TYPE, accept },
        );
        expect(status).toBe(422);
        expect(JSON.parse(text).errors[0].extensions.code).toBe('MUTATION_OVER_QUERY');
      }
    }
    expect(writes).toBe(0);
  });

  it('graphqlHTTP sends 400 for a QUERY request without Content-Type', async () => {
    const { status, body: text } = await query(body('{ hello }'), {}, {});
    expect(status).toBe(400);
    expect(JSON.parse(text).errors[0].extensions.code).toBe('CONTENT_TYPE_REQUIRED');
  });

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json; charset=latin1',
  ])('graphqlHTTP sends 415 for a QUERY request with the Content-Type %s', async (type) => {
    const { status, headers } = await query(body('{ hello }'), {}, { 'content-type': type });
    expect(status).toBe(415);
    expect(headers).toMatchObject({ 'accept-query': 'application/json' });
  });

  it('graphqlHTTP sends 400 for a QUERY request whose content is not JSON', async () => {
    expect((await query('{"query":')).status).toBe(400);
    expect((await query('')).status).toBe(400);
    expect((await query('[]')).status).toBe(400);
  });

  it('graphqlHTTP evaluates If-None-Match of QUERY requests', async () => {
    const options: GraphQLOptions = { httpCache: true };
    const first = await query(body('{ hello }'), options);
    expect(first.headers).toMatchObject({
      'cache-control': 'public, max-age=60',
      etag: expect.stringMatching(/^"/),
    });
    const tag = String(first.headers['etag']);
    const second = await query(body('{ hello }'), options, { ...JSON_TYPE, 'if-none-match': tag });
    expect(second).toMatchObject({ status: 304, body: '' });
    const other = await query(body('{ hello(name: "Ann") }'), options, {
      ...JSON_TYPE,
      'if-none-match': tag,
    });
    expect(other.status).toBe(200);
  });

  it('graphqlHTTP does not read the URL of a QUERY request', async () => {
    const response = await serving(listen(), (port) =>
      send(port, {
        method: 'QUERY',
        path: '/graphql?query=mutation{write}',
        headers: JSON_TYPE,
        body: body('{ hello }'),
      }),
    );
    expect(response.body).toBe('{"data":{"hello":"hello world"}}');
  });

  it('graphqlHTTP sends 405 for QUERY if methods does not contain it', async () => {
    const methods = [Method.GET, Method.POST];
    const { status, headers } = await query(body('{ hello }'), { methods });
    expect([status, headers['allow']]).toEqual([405, 'GET, POST']);
    expect(headers).not.toHaveProperty('accept-query');
  });

  it('graphqlHTTP sends Accept-Query with GET, HEAD and OPTIONS, and not with POST', async () => {
    await serving(listen(), async (port) => {
      for (const method of ['GET', 'HEAD', 'OPTIONS']) {
        const { headers } = await send(port, { method, path: '/graphql?query={hello}' });
        expect(headers).toMatchObject({ 'accept-query': 'application/json' });
      }
      const post = await send(port, {
        method: 'POST',
        path: '/graphql',
        headers: JSON_TYPE,
        body: body('{ hello }'),
      });
      expect(post.headers).not.toHaveProperty('accept-query');
    });
  });

  it('graphqlHTTP sends a subscription of a QUERY request as events', async () => {
    const headers = { ...JSON_TYPE, accept: 'text/event-stream' };
    const { status, body: text } = await query(body('subscription { tick }'), {}, headers);
    expect(status).toBe(200);
    expect(text).toContain('{"data":{"tick":1}}');
  });

  it('graphqlHTTP refuses a batch with a mutation in a QUERY request', async () => {
    const batch = JSON.stringify([{ query: '{ hello }' }, { query: 'mutation { write }' }]);
    expect((await query(batch, { batching: true })).status).toBe(422);
    const queries = JSON.stringify([{ query: '{ hello }' }, { query: '{ hello }' }]);
    const { status, headers } = await query(queries, { batching: true, httpCache: true });
    expect([status, headers['cache-control'], headers['etag']]).toEqual([200, 'no-store', undefined]);
    expect(writes).toBe(0);
  });

  it('graphqlHTTP refuses QUERY requests of other sites that hide the response', async () => {
    const headers = {
      ...JSON_TYPE,
      cookie: 'a=b',
      'sec-fetch-site': 'cross-site',
      'sec-fetch-mode': 'no-cors',
    };
    expect((await query(body('{ hello }'), {}, headers)).status).toBe(403);
  });
}

eachExpress((express) => {
  suite((options) => createServer(express().use('/graphql', graphqlHTTP(schema, options))));

  it('graphqlHTTP reads a QUERY request after express.json()', async () => {
    const app = express().use(express.json()).use('/graphql', graphqlHTTP(schema));
    const response = await serving(createServer(app), (port) =>
      requestHttp1(port, { method: 'QUERY', path: '/graphql', headers: JSON_TYPE, body: body('{ hello }') }),
    );
    expect(response.body).toBe('{"data":{"hello":"hello world"}}');
  });
});

describe('under node:http', () => {
  suite((options) => createServer(graphqlHTTP(schema, options)));

  it('Node parses QUERY', () => expect(METHODS).toContain('QUERY'));

  it('fetch sends QUERY requests', async () => {
    const { url } = await listen(createServer(graphqlHTTP(schema, { httpCache: true })), '/');
    const response = await fetch(url, { method: 'QUERY', headers: JSON_TYPE, body: body('{ hello }') });
    expect(await response.json()).toEqual({ data: { hello: 'hello world' } });
    const tag = String(response.headers.get('etag'));
    const headers = { ...JSON_TYPE, 'if-none-match': tag };
    expect((await fetch(url, { method: 'QUERY', headers, body: body('{ hello }') })).status).toBe(304);
  });
});

describe('under node:http2', () => {
  suite((options) => {
    const handler = graphqlHTTP(schema, options);
    return createHttp2((req, res) => Reflect.apply(handler, undefined, [req, res]));
  }, requestHttp2);
});
