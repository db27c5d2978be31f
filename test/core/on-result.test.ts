/** @tags graphql engine */
import { makeExecutableSchema } from '@graphql-tools/schema';
import { GraphQLError } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { subscribe } from '../../middleware/testing.ts';
import type { FormatErrorDetails, GraphQLOptions } from '../../types/graphql.ts';
import type { ResultDetails } from '../../types/operation.ts';
import { listen, postJson } from '../kit.ts';

const schema = makeExecutableSchema({
  typeDefs: `
    type Query { hello: String @cacheControl(maxAge: 60), broken: String, teapot: String, sum(of: [Int!]!): Int }
    type Mutation { login: Boolean }
    type Subscription { once: Int }
    directive @cacheControl(maxAge: Int) on FIELD_DEFINITION`,
  resolvers: {
    Query: {
      hello: () => 'Hello',
      broken: () => {
        throw new Error('secret');
      },
      teapot: () => {
        throw new GraphQLError('short and stout', { extensions: { http: { status: 418 } } });
      },
    },
    Mutation: { login: () => true },
    Subscription: {
      once: {
        async *subscribe() {
          yield { once: 1 };
        },
      },
    },
  },
});

async function serve(options: GraphQLOptions) {
  const handler = graphqlHTTP(schema, { context: { tenant: 't' }, onError: false, ...options });
  const { url } = await listen(handler);
  const headers = { 'accept-encoding': 'gzip, identity;q=0' };
  const send = (query: string, variables = {}) => postJson(url, { query, variables }, headers);
  return { handler, send };
}

describe('the option onResult', () => {
  it('sees each result with its context before it is sent, and not that of a refused document', async () => {
    const seen: ResultDetails<unknown>[] = [];
    const { send } = await serve({ onResult: (result) => void seen.push(result) });
    await send('query A { hello }');
    await send('{ hello broken }');
    await send('{ teapot }');
    await send('query Sum($of: [Int!]!) { sum(of: $of) }');
    await send('{ unknown }');
    expect(
      seen.map(({ operationName, context, kind, status, errors, transport }) => [
        operationName,
        context,
        kind,
        status,
        errors.map(({ message }) => message),
        transport,
      ]),
    ).toEqual([
      ['A', { tenant: 't' }, 'data', 200, [], 'http'],
      [undefined, { tenant: 't' }, 'partial', 200, ['secret'], 'http'],
      [undefined, { tenant: 't' }, 'partial', 418, ['short and stout'], 'http'],
      ['Sum', { tenant: 't' }, 'refused', 400, [expect.stringContaining('$of')], 'http'],
    ]);
  });

  it('adds extensions, headers and cookies, also to a stored result, and leaves the bytes of data', async () => {
    const { send } = await serve({
      responseCache: true,
      httpCache: true,
      compress: true,
      onResult: async () => ({
        extensions: { trace: 't1' },
        headers: { 'x-trace': 't1', 'set-cookie': ['a=1', 'b=2'] },
      }),
    });
    for (let round = 0; round < 3; round++) {
      const response = await send('{ hello }');
      expect(await response.text()).toBe('{"data":{"hello":"Hello"},"extensions":{"trace":"t1"}}');
      expect(response.headers.get('x-trace')).toBe('t1');
      expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
      // A shared cache would send the cookies to others.
      expect(response.headers.get('cache-control')).not.toContain('public');
    }
  });

  it('reports its failure or wrong return value, and sends the result of a mutation as it is', async () => {
    const reported: string[] = [];
    const onError = (error: unknown) => reported.push(String(error));
    const fails = await serve({
      onError,
      onResult: () => {
        throw new Error('the hook has failed');
      },
    });
    expect(await (await fails.send('mutation { login }')).json()).toEqual({ data: { login: true } });
    const wrong = await serve({ onError, onResult: () => ({ extention: {} }) as object });
    expect(await (await wrong.send('mutation { login }')).json()).toEqual({ data: { login: true } });
    expect(reported).toEqual([
      expect.stringContaining('the hook has failed'),
      expect.stringContaining('"onResult"'),
    ]);
  });

  it('is not called for events, and is for queries over sockets', async () => {
    const seen: unknown[] = [];
    const { handler } = await serve({
      onResult: ({ transport, status }) => {
        seen.push([transport, status]);
        return { extensions: { seen: true } };
      },
    });
    for await (const result of await subscribe(handler, { query: 'subscription { once }' }))
      expect(result).toEqual({ data: { once: 1 } });
    for await (const result of await subscribe(handler, { query: '{ hello }' }))
      expect(result).toEqual({ data: { hello: 'Hello' }, extensions: { seen: true } });
    expect(seen).toEqual([['websocket', undefined]]);
  });
});

describe('onResult', () => {
  it('that hangs is bounded by the time of an operation', async () => {
    const { send } = await serve({ timeout: 100, onResult: () => new Promise(() => undefined) });
    const response = await send('mutation { login }');
    expect(response.status).toBeLessThan(505);
    expect(await response.json()).toEqual({ data: { login: true } });
  });

  it('adds headers to HEAD and 304, and extensions to each operation of a batch', async () => {
    const handler = graphqlHTTP(schema, {
      batching: true,
      httpCache: true,
      onResult: ({ operationName }) => ({
        extensions: { name: operationName ?? '' },
        headers: { 'x-seen': '1' },
      }),
    });
    const { url } = await listen(handler);
    const target = `${url}/?query={hello}`;
    const head = await fetch(target, { method: 'HEAD' });
    expect([head.status, head.headers.get('x-seen')]).toEqual([200, '1']);
    const etag = head.headers.get('etag') ?? '';
    const cached = await fetch(target, { headers: { 'if-none-match': etag } });
    expect([cached.status, cached.headers.get('x-seen')]).toEqual([304, '1']);
    const batch = await postJson(url, [{ query: 'query A { hello }' }, { query: 'query B { hello }' }]);
    expect(await batch.json()).toEqual(
      ['A', 'B'].map((name) => ({ data: { hello: 'Hello' }, extensions: { name } })),
    );
  });
});

describe('the option formatError', () => {
  it('gets the context, the caller, the request and the place of an error', async () => {
    const seen: FormatErrorDetails[] = [];
    const { send } = await serve({
      caller: () => ({ id: 'ada' }),
      formatError(formatted, _error, details) {
        seen.push(details);
        return formatted;
      },
    });
    await send('query Q { broken }');
    expect(seen).toEqual([
      expect.objectContaining({
        context: { tenant: 't' },
        caller: { id: 'ada' },
        operationName: 'Q',
        transport: 'http',
        path: ['broken'],
        request: expect.objectContaining({ method: 'POST' }),
      }),
    ]);
  });
});
