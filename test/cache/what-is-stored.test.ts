/** @tags graphql */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import * as http2 from 'node:http2';
import * as https from 'node:https';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import express from 'express';
import session from 'express-session';
import { GraphQLError } from 'graphql';
import request from 'supertest';
import { createInvalidator } from '../../middleware/cache.ts';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/index.ts';
import { createServer } from '../../middleware/server.ts';
import type { CacheEntry, CacheStore } from '../../types/response-cache.ts';
import { serving, tls, trusted } from '../exchange.ts';
import { until } from '../until.ts';
import { TAG_DIRECTIVE } from './blog.ts';
import { get, type Resolvers, schemaOf } from './service.ts';

/** A response cache at /graphql for the fields of `Query`. */
function serve(
  fields: string,
  resolvers: Resolvers[string],
  options: GraphQLOptions = {},
): { readonly app: express.Express; readonly handler: ReturnType<typeof graphqlHTTP> } {
  const schema = schemaOf(`${TAG_DIRECTIVE} type Query { ${fields} }`, { Query: resolvers });
  const handler = graphqlHTTP(schema, { httpCache: true, responseCache: true, onError: false, ...options });
  return { app: express().use('/graphql', handler), handler };
}

const contextOf = (req: object) => ({ req });
interface Context {
  readonly req: express.Request;
}

describe('results with errors', () => {
  afterEach(() => jest.restoreAllMocks());

  it('"staleIfError" applies to every request while the execution fails', async () => {
    let fails = false;
    const value = (): number => {
      if (fails) throw new Error('down');
      return 1;
    };
    const { app } = serve(
      'value: Int @cacheControl(maxAge: 1)',
      { value },
      { responseCache: { staleIfError: '1h' } },
    );
    await get(app, '{ value }');
    fails = true;
    const later = Date.now() + 5000;
    jest.spyOn(Date, 'now').mockImplementation(() => later);
    for (let count = 0; count < 40; count++) {
      expect((await get(app, '{ value }')).body).toEqual({ data: { value: 1 } });
    }
  });

  it.each(['an error', 'a result that is not cacheable'])(
    'stored results are used after many requests with other variables that got %s',
    async (kind) => {
      let calls = 0;
      const post = (
        _: unknown,
        { id }: { id: number },
        __: unknown,
        { cacheControl }: { cacheControl: { setCacheHint(hint: object): void } },
      ): number => {
        calls++;
        if (id > 0) return id;
        if (kind === 'an error') throw new GraphQLError('not found');
        cacheControl.setCacheHint({ maxAge: 0 });
        return id;
      };
      const { app } = serve('post(id: Int!): Int @cacheControl(maxAge: 60)', { post });
      const query = 'query ($id: Int!) { post(id: $id) }';
      await get(app, query, { id: 1 });
      for (let id = 0; id > -20; id--) await get(app, query, { id });
      calls = 0;
      for (let count = 0; count < 64; count++) await get(app, query, { id: 1 });
      // After results that are not cacheable, one request in 16 tries the store again.
      expect(calls).toBeLessThan(17);
      if (kind === 'an error') expect(calls).toBe(0);
    },
  );
});

it('"staleIfError" does not send a result that was invalidated during the execution that failed', async () => {
  let fails = false;
  let finish: (() => void) | undefined;
  const value = async (): Promise<number> => {
    if (!fails) return 1;
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    throw new Error('down');
  };
  const fields = 'value: Int @cacheControl(maxAge: 1) @cacheTag(format: "value")';
  const { app, handler } = serve(fields, { value }, { responseCache: { staleIfError: '1h' } });
  await get(app, '{ value }');
  fails = true;
  const later = Date.now() + 5000;
  jest.spyOn(Date, 'now').mockImplementation(() => later);
  const response = get(app, '{ value }').then(({ body }) => body);
  await until(() => finish !== undefined);
  await handler.invalidate('value');
  finish?.();
  expect((await response).data).toEqual({ value: null });
  jest.restoreAllMocks();
});

describe('headers of the application', () => {
  it.each([
    ['Cache-Control', 'private, no-store'],
    ['Vary', 'X-Country'],
    ['Set-Cookie', 'seen=1'],
  ])('a result is not stored if a resolver sets the header %s', async (name, value) => {
    const country = async (_: unknown, __: unknown, { req }: Context) => {
      req.res?.setHeader(name, value);
      return String(req.headers['x-country']);
    };
    for (const key of [undefined, () => 'all']) {
      const options = { context: contextOf, responseCache: { key } };
      const { app } = serve('country: String @cacheControl(maxAge: 60)', { country }, options);
      for (const code of ['de', 'fr', 'fr']) {
        const { body, headers } = await get(app, '{ country }').set('x-country', code);
        expect([body.data.country, headers.age]).toEqual([code, undefined]);
      }
    }
  });

  it('a result for everyone is private in a response that sets a cookie', async () => {
    const options = { responseCache: { key: () => '' } };
    const { handler } = serve('value: Int @cacheControl(maxAge: 60)', { value: () => 1 }, options);
    const app = express()
      .use((req, res, next) => {
        if (req.headers['x-visit'] === 'first') res.cookie('session', 'secret');
        next();
      })
      .use('/graphql', handler);
    for (const age of [undefined, '0']) {
      const { headers } = await get(app, '{ value }').set('x-visit', 'first');
      expect([headers.age, headers['cache-control']]).toEqual([age, 'private, max-age=60']);
    }
    expect((await get(app, '{ value }')).headers['cache-control']).toBe('public, max-age=60');
  });

  it('a result for everyone is private in a response to which a session adds its cookie later', async () => {
    const { handler } = serve(
      'value: Int @cacheControl(maxAge: 60)',
      { value: () => 1 },
      { responseCache: { key: () => '' } },
    );
    const app = express()
      .use(session({ secret: 'secret', resave: false, saveUninitialized: true }))
      .use('/graphql', handler);
    for (const age of [undefined, '0']) {
      const { headers } = await get(app, '{ value }');
      expect(headers['set-cookie']).toHaveLength(1);
      expect([headers.age, headers['cache-control']]).toEqual([age, 'private, max-age=60']);
    }
  });

  it('responses with "Vary: *" take no memory of the response cache', async () => {
    let stored = 0;
    const store: CacheStore = {
      get: () => ({ entry: undefined, version: 1 }),
      set: () => ++stored > 0,
      invalidate: () => undefined,
    };
    const { handler } = serve(
      'value: Int @cacheControl(maxAge: 60)',
      { value: () => 1 },
      { responseCache: { store } },
    );
    const app = express()
      .use((_req, res, next) => {
        res.vary('*');
        next();
      })
      .use('/graphql', handler);
    expect((await get(app, '{ value }')).body.data.value).toBe(1);
    expect(stored).toBe(0);
  });
});

describe('parameters that are part of the key', () => {
  it('the response cache separates results by the extensions of the request, which a context may read', async () => {
    interface Source {
      readonly url?: string | undefined;
      readonly body?: { readonly extensions?: object };
    }
    const context = ({ url = '', body }: Source): object | undefined =>
      body?.extensions ?? JSON.parse(new URLSearchParams(url.split('?')[1]).get('extensions') ?? '{}');
    const tenant = (_: unknown, __: unknown, extensions?: { tenant?: string }) => extensions?.tenant;
    const { handler } = serve('tenant: String @cacheControl(maxAge: 60)', { tenant }, { context });
    const app = express().use(express.json()).use('/graphql', handler);
    const query = '{ tenant }';
    for (const [name, age] of [
      ['a', undefined],
      ['b', undefined],
      ['a', '0'],
    ]) {
      const extensions = { tenant: name, more: { x: 1, y: 2 } };
      const { body, headers } = await request(app).post('/graphql').send({ query, extensions });
      expect([body.data.tenant, headers.age]).toEqual([name, age]);
      const other = JSON.stringify({ more: { y: 2, x: 1 }, tenant: name });
      const overGet = await request(app).get('/graphql').query({ query, extensions: other });
      expect([overGet.body.data.tenant, overGet.headers.age]).toEqual([name, '0']);
    }
    const plain = await request(app).post('/graphql').send({ query });
    expect([plain.body.data.tenant, plain.headers.age]).toEqual([null, undefined]);
    const clientLibrary = { name: '@apollo/client', version: '4.0.0' };
    const persistedQuery = { version: 1, sha256Hash: 'any' };
    for (const extensions of [{}, { clientLibrary, persistedQuery }]) {
      expect((await request(app).post('/graphql').send({ query, extensions })).headers.age).toBe('0');
    }
  });

  it('the response cache separates 0 and -0, which are different values for resolvers', async () => {
    const inverse = (_: unknown, { of }: { of: number }) => String(1 / of);
    const { app } = serve('inverse(of: Float): String @cacheControl(maxAge: 60)', { inverse });
    const query = 'query ($of: Float) { inverse(of: $of) }';
    const send = (variables: string) =>
      request(app).post('/graphql').type('json').send(`{ "query": "${query}", "variables": ${variables} }`);
    expect((await send('{ "of": 0 }')).body.data.inverse).toBe('Infinity');
    expect((await send('{ "of": -0 }')).body.data.inverse).toBe('-Infinity');
  });
});

it('control characters of tags are percent-encoded with two digits', async () => {
  const fields = 'value(of: String): Int @cacheControl(maxAge: 60) @cacheTag(format: "{$args.of}")';
  const { app } = serve(fields, { value: () => 1 }, { httpCache: { tags: 'Cache-Tag' } });
  const query = '{ value(of: "a\\r\\nSet-Cookie: b") other: value(of: "\\u0000") }';
  const { headers } = await get(app, query);
  expect(headers['cache-tag']).toBe('a%0D%0ASet-Cookie:%20b,%00');
  expect(headers['set-cookie']).toBeUndefined();
});

it('a store of the application gets the tags of an invalidation as the entries have them', async () => {
  const entries = new Map<string, CacheEntry>();
  const store: CacheStore = {
    get: (key) => ({ entry: entries.get(key), version: 1 }),
    set: (key, entry) => entries.set(key, entry).size > 0,
    invalidate(tags) {
      for (const [key, { policy }] of entries) {
        if (policy.tags.some((tag) => tags.includes(tag))) entries.delete(key);
      }
    },
  };
  const fields = 'page(name: ID): String @cacheControl(maxAge: 60) @cacheTag(format: "page {$args.name}")';
  const { app, handler } = serve(fields, { page: () => 'text' }, { responseCache: { store } });
  for (const invalidator of [handler, createInvalidator(store)]) {
    await get(app, '{ page(name: "größe") }');
    expect(entries.size).toBe(1);
    await invalidator.invalidate('page größe');
    expect(entries.size).toBe(0);
  }
});

it('a request after an invalidation does not get the result that a slow store has stored before', async () => {
  const entries = new Map<string, CacheEntry>();
  let version = 1;
  let lookups = 0;
  let confirm: ((isStored: boolean) => void) | undefined;
  const store: CacheStore = {
    get(key) {
      lookups++;
      return { entry: entries.get(key), version };
    },
    set(key, entry) {
      entries.set(key, entry);
      if (confirm !== undefined) return true;
      return new Promise((resolve) => {
        confirm = resolve;
      });
    },
    invalidate() {
      version++;
      entries.clear();
    },
  };
  let current = 'old';
  const fields = 'value: String @cacheControl(maxAge: 60) @cacheTag(format: "value")';
  const { app, handler } = serve(fields, { value: async () => current }, { responseCache: { store } });
  const first = get(app, '{ value }').then((response) => response);
  await until(() => confirm !== undefined);
  current = 'new';
  await handler.invalidate('value');
  const second = get(app, '{ value }').then((response) => response);
  await until(() => lookups === 2);
  await new Promise(setImmediate);
  confirm?.(true);
  expect((await second).body.data.value).toBe('new');
  expect((await first).body.data.value).toBe('old');
});

/** Sends a GET over TLS. Returns the body and the header `Cache-Control`. */
async function sendSecurely(port: number, identity: object, isHttp2: boolean): Promise<readonly unknown[]> {
  const options = { ...trusted, ...identity };
  const path = '/graphql?query={name}';
  if (!isHttp2) {
    const sent = https.get({ ...options, host: '127.0.0.1', port, path, agent: false });
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return [await text(response), response.headers['cache-control']];
  }
  const session = http2.connect(`https://localhost:${port}`, options);
  const stream = session.request({ ':path': path });
  const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders];
  const body = await text(stream);
  session.close();
  return [body, headers['cache-control']];
}

it.each([false, true])(
  'a result is private for a client with a certificate that only the application verifies, HTTP/2: %s',
  async (isHttp2) => {
    const name = (_: unknown, __: unknown, { req }: { req: { socket: TLSSocket } }) =>
      req.socket.getPeerCertificate().subject?.CN;
    const { app } = serve('name: String @cacheControl(maxAge: 60)', { name }, { context: contextOf });
    const options = { ...tls, requestCert: true, rejectUnauthorized: false };
    const server = isHttp2 ? createServer(app, { ...options, http2: true }) : createServer(app, options);
    await serving(server, async (port) => {
      const anonymous = ['{"data":{"name":null}}', 'public, max-age=60'];
      expect(await sendSecurely(port, {}, isHttp2)).toEqual(anonymous);
      expect(await sendSecurely(port, tls, isHttp2)).toEqual([
        '{"data":{"name":"localhost"}}',
        'private, max-age=60',
      ]);
      expect(await sendSecurely(port, {}, isHttp2)).toEqual(anonymous);
    });
  },
);
