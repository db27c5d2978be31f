/** @tags node-lines graphql */
import zlib from 'node:zlib';
import compressionMiddleware from 'compression';
import express from 'express';
import { GraphQLError } from 'graphql';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { schemaOf } from '../cache/service.ts';
import { CODINGS, listen, post, send } from './raw.ts';

const TEXT = 'all work and no play makes json a dull format; ';
let executions = 0;

const schema = schemaOf(
  `type Query {
     words(count: Int = 100): String
     cached(count: Int = 100): String @cacheControl(maxAge: 60)
     mine(count: Int = 100): String @cacheControl(maxAge: 60, scope: PRIVATE)
     fail(text: String): String
     failWith(header: String!, value: String!): String
   }
   type Mutation { write: String }`,
  {
    Query: {
      words: (_: unknown, { count }: { count: number }) => TEXT.repeat(count),
      cached: (_: unknown, { count }: { count: number }) => `${++executions} ${TEXT.repeat(count)}`,
      mine: (_: unknown, { count }: { count: number }) => `${++executions} ${TEXT.repeat(count)}`,
      fail: (_: unknown, { text }: { text: string }) => {
        throw new Error(text);
      },
      failWith: (_: unknown, { header, value }: Record<'header' | 'value', string>) => {
        throw new GraphQLError('failed', { extensions: { http: { headers: { [header]: value } } } });
      },
    },
    Mutation: { write: () => String(++executions) },
  },
);

const serve = (options: GraphQLOptions = {}): Promise<string> => {
  const handler = graphqlHTTP(schema, { compress: true, onError: false, ...options });
  return listen((req, res) => handler(req, res));
};

const withQuery = (url: string, query: string): string => `${url}?query=${encodeURIComponent(query)}`;
const WORDS = { query: '{ words }' };
const words = (count = 100) => JSON.stringify({ data: { words: TEXT.repeat(count) } });

beforeEach(() => {
  executions = 0;
});
afterEach(() => {
  jest.restoreAllMocks();
});

describe('the option compress of graphqlHTTP', () => {
  it.each(CODINGS)('sends %s to a client that accepts it', async (coding) => {
    const url = await serve();
    const { status, headers, bytes, text } = await post(url, WORDS, { 'accept-encoding': coding });
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-encoding': coding,
      'content-length': String(bytes.length),
      vary: 'Accept, Accept-Encoding',
    });
    expect(text).toBe(words());
    expect(bytes.length).toBeLessThan(words().length / 5);
  });

  it.each([
    ['gzip, deflate, br, zstd', CODINGS[0]],
    ['br;q=0.9, gzip', 'gzip'],
    ['br;q=0.5, gzip;q=0.8', 'gzip'],
    ['*', CODINGS[0]],
    ['*;q=0, br', 'br'],
    ['x-gzip', 'gzip'],
    ['gzip;q=0', undefined],
    ['gzip;q=0.5, identity', undefined],
    ['deflate', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('chooses by the weights of "%s": %s', async (header, coding) => {
    const url = await serve();
    const { headers, text } = await post(
      url,
      WORDS,
      header === undefined ? {} : { 'accept-encoding': header },
    );
    expect(headers['content-encoding']).toBe(coding);
    expect(headers['vary']).toBe('Accept, Accept-Encoding');
    expect(text).toBe(words());
  });

  it('sends results of less than 1 KiB as they are, unless the client refuses them so', async () => {
    const url = await serve();
    const query = { query: '{ words(count: 5) }' };
    const small = await post(url, query, { 'accept-encoding': 'gzip' });
    expect(small.headers['content-encoding']).toBeUndefined();
    expect(small.headers['vary']).toBe('Accept, Accept-Encoding');
    for (const header of ['gzip, identity;q=0', 'gzip, *;q=0']) {
      const forced = await post(url, query, { 'accept-encoding': header });
      expect(forced.headers['content-encoding']).toBe('gzip');
      expect(forced.text).toBe(words(5));
    }
  });

  it('refuses a client that accepts neither a coding nor the result itself before it executes', async () => {
    const url = await serve();
    const refused = await post(
      url,
      { query: 'mutation { write }' },
      { 'accept-encoding': 'deflate, identity;q=0' },
    );
    expect(refused.status).toBe(406);
    expect(JSON.parse(refused.text).errors[0].extensions.code).toBe('NOT_ACCEPTABLE');
    expect(executions).toBe(0);
  });

  it('is off by default, without Accept-Encoding in Vary', async () => {
    const url = await serve({ compress: false });
    const { headers } = await post(url, WORDS, { 'accept-encoding': 'gzip, identity;q=0' });
    expect(headers['content-encoding']).toBeUndefined();
    expect(headers['vary']).toBe('Accept');
  });

  it('sends the same headers for HEAD as for GET, without the body', async () => {
    const url = withQuery(await serve({ httpCache: true }), '{ cached }');
    const accept = { headers: { 'accept-encoding': 'br' } };
    executions = 0;
    const got = await send(url, accept);
    executions = 0;
    const head = await send(url, { ...accept, method: 'HEAD' });
    const { date: _, ...headers } = got.headers;
    expect(head.headers).toMatchObject(headers);
    expect(head.headers['content-encoding']).toBe('br');
    expect(head.bytes).toHaveLength(0);
  });

  it('compresses QUERY, batches, errors and documents by id', async () => {
    const id = 'words';
    const url = await serve({ batching: true, documents: { from: { [id]: '{ words }' } } });
    const headers = { 'accept-encoding': 'gzip' };
    const query = await send(url, {
      method: 'QUERY',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(WORDS),
    });
    expect([query.headers['content-encoding'], query.text]).toEqual(['gzip', words()]);
    const batch = await post(url, [WORDS, WORDS], headers);
    expect([batch.headers['content-encoding'], batch.text]).toEqual(['gzip', `[${words()},${words()}]`]);
    const byId = await send(`${url}?documentId=${id}`, {
      headers: { ...headers, accept: 'application/json' },
    });
    expect([byId.headers['content-encoding'], byId.text]).toEqual(['gzip', words()]);
    const invalid = await post(
      url,
      { query: `{ ${Array.from({ length: 50 }, (_, i) => `unknown${i}`).join(' ')} }` },
      headers,
    );
    expect(invalid.headers['content-encoding']).toBe('gzip');
    expect(JSON.parse(invalid.text).errors.length).toBeGreaterThan(1);
  });

  it('compresses large results in the thread pool and leaves their text as it is', async () => {
    const url = await serve({ batching: true });
    const sync = jest.spyOn(zlib, 'gzipSync');
    const counts = [500, 1000, 5000, 20_000, 700, 40_000];
    const all = await Promise.all(
      counts.map((count) =>
        post(url, { query: `{ words(count: ${count}) }` }, { 'accept-encoding': 'gzip' }),
      ),
    );
    for (const [i, { text }] of all.entries()) expect(text === words(counts[i])).toBe(true);
    expect(sync.mock.calls.every(([bytes]) => (bytes as Buffer).length <= 32 * 1024)).toBe(true);
  });

  it('answers requests of a pipelined connection in their order', async () => {
    const url = await serve();
    const { port } = new URL(url);
    const { connect } = await import('node:net');
    const socket = connect(Number(port), '127.0.0.1');
    const request = (count: number, encoding: string) =>
      `GET ${new URL(withQuery(url, `{ words(count: ${count}) }`)).pathname}${new URL(withQuery(url, `{ words(count: ${count}) }`)).search} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: ${encoding}\r\n\r\n`;
    socket.write(request(5000, 'gzip') + request(1, 'identity'));
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    while (!Buffer.concat(chunks).includes(words(1))) await new Promise((resolve) => setTimeout(resolve, 5));
    const all = Buffer.concat(chunks).toString('latin1');
    expect(all.indexOf('content-encoding: gzip')).toBeLessThan(all.indexOf(words(1)));
    socket.destroy();
  });
});

describe('compressed results and caches', () => {
  it('gives each coding its own strong ETag, which conditional requests of that coding match', async () => {
    const url = withQuery(await serve({ httpCache: true, responseCache: true }), '{ cached }');
    const tags = new Map<string, string>();
    for (const coding of ['identity', ...CODINGS]) {
      for (let i = 0; i < 3; i++) {
        const { headers, text } = await send(url, { headers: { 'accept-encoding': coding } });
        expect(JSON.parse(text).data.cached).toMatch(/^1 /);
        expect(headers.etag).toMatch(/^"[^"]+"$/);
        expect(tags.get(coding) ?? headers.etag).toBe(headers.etag);
        tags.set(coding, headers.etag ?? '');
      }
    }
    expect(new Set(tags.values()).size).toBe(CODINGS.length + 1);
    for (const [coding, tag] of tags) {
      const fresh = await send(url, { headers: { 'accept-encoding': coding, 'if-none-match': tag } });
      expect(fresh.status).toBe(304);
      expect(fresh.headers).toMatchObject({ etag: tag, vary: 'Accept, Accept-Encoding' });
      expect(fresh.headers['content-encoding']).toBeUndefined();
      const failed = await send(url, { headers: { 'accept-encoding': 'identity;q=0.5', 'if-match': tag } });
      expect(failed.status).toBe(coding === 'identity' ? 200 : 412);
    }
    expect(executions).toBe(1);
  });

  it('has the same ETags without a response cache', async () => {
    const cached = withQuery(await serve({ httpCache: true, responseCache: true }), '{ cached }');
    const other = withQuery(await serve({ httpCache: true }), '{ cached }');
    for (const coding of ['identity', ...CODINGS]) {
      const headers = { 'accept-encoding': coding };
      const tags: unknown[] = [];
      for (const url of [cached, cached, cached, other]) {
        if (url === other) executions = 0;
        tags.push((await send(url, { headers })).headers.etag);
      }
      expect(new Set(tags).size).toBe(1);
    }
  });

  it('compresses a stored result once per coding', async () => {
    const url = withQuery(await serve({ responseCache: true }), '{ cached }');
    const gzip = jest.spyOn(zlib, 'gzipSync');
    const headers = { 'accept-encoding': 'gzip' };
    const bodies: string[] = [];
    for (let i = 0; i < 5; i++) bodies.push((await send(url, { headers })).text);
    expect(new Set(bodies).size).toBe(1);
    expect(executions).toBe(1);
    // With the execution, and for the first hit, which stores it.
    expect(gzip).toHaveBeenCalledTimes(2);
    expect((await send(url)).text).toBe(bodies[0]);
    expect((await send(url, { headers })).headers['age']).toBe('0');
  });

  it('invalidates the compressed forms with their result', async () => {
    const handler = graphqlHTTP(schema, {
      compress: true,
      responseCache: true,
      onError: false,
    });
    const url = withQuery(await listen((req, res) => handler(req, res)), '{ cached }');
    const headers = { 'accept-encoding': 'br' };
    const read = async () => JSON.parse((await send(url, { headers })).text).data.cached.split(' ')[0];
    expect([await read(), await read(), await read()]).toEqual(['1', '1', '1']);
    await handler.invalidate('*');
    expect([await read(), await read(), await read()]).toEqual(['2', '2', '2']);
  });

  it('adds extensions of onOperation to stored results before it compresses them', async () => {
    const handler = graphqlHTTP(schema, {
      compress: true,
      responseCache: true,
      onOperation: ({ request }) =>
        request?.headers['x-trace'] === undefined ? undefined : { extensions: { trace: 1 } },
    });
    const url = withQuery(await listen((req, res) => handler(req, res)), '{ cached }');
    const headers = { 'accept-encoding': 'gzip' };
    for (let i = 0; i < 3; i++) await send(url, { headers });
    const extended = await send(url, { headers: { ...headers, 'x-trace': '1' } });
    expect(extended.headers['content-encoding']).toBe('gzip');
    expect(JSON.parse(extended.text).extensions).toEqual({ trace: 1 });
    expect(JSON.parse((await send(url, { headers })).text).extensions).toBeUndefined();
  });

  it('joins stored results to batches and streams as text', async () => {
    const url = await serve({ responseCache: true, batching: true });
    const headers = { 'accept-encoding': 'gzip' };
    const query = { query: '{ cached }' };
    for (let i = 0; i < 3; i++) await post(url, query, headers);
    const batch = await post(url, [query, query], headers);
    expect(JSON.parse(batch.text)).toHaveLength(2);
    const stream = await post(url, query, { ...headers, accept: 'text/event-stream' });
    expect(stream.text).toContain('data: {"data":{"cached":"1 ');
  });

  it('gives a store of the application text only', async () => {
    const entries = new Map<string, { body: string | Buffer }>();
    const store = {
      get: (key: string) => ({ entry: entries.get(key) as never, version: 1 }),
      set: (key: string, entry: { body: string | Buffer }) => {
        entries.set(key, entry);
        return true;
      },
      invalidate: () => undefined,
    };
    const url = withQuery(await serve({ responseCache: { store } }), '{ cached }');
    for (let i = 0; i < 4; i++) {
      expect(
        JSON.parse((await send(url, { headers: { 'accept-encoding': 'gzip' } })).text).data.cached,
      ).toMatch(/^1 /);
    }
    expect([...entries.values()].map(({ body }) => body.toString().slice(0, 8))).toEqual(['{"data":']);
  });

  it('changes a strong ETag of the application, and keeps a weak one', async () => {
    const handler = graphqlHTTP(schema, { compress: true });
    for (const [etag, sent] of [
      ['"a"', /^"a-gzip5\.\w+"$/],
      ['W/"a"', /^W\/"a"$/],
    ] as const) {
      const url = await listen((req, res) => {
        res.setHeader('ETag', etag);
        handler(req, res);
      });
      expect((await post(url, WORDS, { 'accept-encoding': 'gzip' })).headers.etag).toMatch(sent);
      expect((await post(url, WORDS)).headers.etag).toBe(etag);
    }
  });
});

describe('results that are private by cookie', () => {
  const headers = { 'accept-encoding': 'gzip' };

  it.each([
    ['cookie', 'session=1'],
    ['authorization', 'Basic dXNlcjpwYXNz'],
    ['authorization', 'Negotiate YII='],
  ])('are not compressed for a request with %s: %s', async (name, value) => {
    const url = await serve();
    const plain = await post(url, WORDS, { ...headers, [name]: value });
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(plain.headers['vary']).toBe('Accept, Accept-Encoding');
    expect(plain.text).toBe(words());
  });

  it.each([
    ['Set-Cookie', 'session=1'],
    ['Content-Encoding', 'identity'],
  ])('are not compressed if an error of a resolver sets %s', async (header, value) => {
    const url = await serve();
    const query = `{ words failWith(header: "${header}", value: "${value}") }`;
    const plain = await send(withQuery(url, query), { headers });
    expect(String(plain.headers[header.toLowerCase()])).toBe(value);
    expect(plain.headers['content-encoding'] ?? 'identity').toBe('identity');
    expect(JSON.parse(plain.text).data.words).toBe(TEXT.repeat(100));
  });

  it('are compressed with the value "all", for other credentials, and for clients that are not browsers', async () => {
    const cookie = { ...headers, cookie: 'session=1' };
    const encodingOf = async (url: string, sent: Record<string, string>) =>
      (await post(url, WORDS, sent)).headers['content-encoding'];
    expect(await encodingOf(await serve({ compress: 'all' }), cookie)).toBe('gzip');
    const url = await serve();
    expect(await encodingOf(url, { ...headers, authorization: 'Bearer token' })).toBe('gzip');
    expect(await encodingOf(url, { 'accept-encoding': 'gzip, identity;q=0', cookie: 'a=b' })).toBe('gzip');
  });

  it('are compressed if the cache policy is public, also from the cache', async () => {
    const url = await serve({ responseCache: { key: () => 'me' }, httpCache: true });
    const sent = { ...headers, cookie: 'session=1' };
    for (let i = 0; i < 4; i++) {
      expect((await send(withQuery(url, '{ cached }'), { headers: sent })).headers['content-encoding']).toBe(
        'gzip',
      );
      const mine = await send(withQuery(url, '{ mine }'), { headers: sent });
      expect(mine.headers['content-encoding']).toBeUndefined();
      expect(JSON.parse(mine.text).data.mine).toMatch(/^\d+ all/);
      // The same user with a token, which no page can let the browser send.
      const token = await send(withQuery(url, '{ mine }'), {
        headers: { ...headers, authorization: 'Bearer x' },
      });
      expect(token.headers['content-encoding']).toBe('gzip');
    }
    expect(executions).toBe(2);
  });
});

describe('compressed results and other middleware', () => {
  it('are not compressed again by the package compression', async () => {
    const app = express().use(compressionMiddleware({ threshold: 0 }));
    app.use('/graphql', graphqlHTTP(schema, { compress: true }));
    const url = await listen(app);
    for (const coding of ['gzip', 'br']) {
      const { headers, text } = await post(url, WORDS, { 'accept-encoding': coding });
      expect(headers['content-encoding']).toBe(coding);
      expect(text).toBe(words());
    }
    const small = await post(url, { query: '{ words(count: 2) }' }, { 'accept-encoding': 'gzip' });
    expect(small.text).toBe(words(2));
  });

  it('leave a Content-Encoding of the application alone', async () => {
    const handler = graphqlHTTP(schema, { compress: true });
    const url = await listen((req, res) => {
      res.setHeader('Content-Encoding', 'identity');
      handler(req, res);
    });
    const { headers, text } = await post(url, WORDS, { 'accept-encoding': 'gzip' });
    expect(headers['content-encoding']).toBe('identity');
    expect(text).toBe(words());
  });
});
