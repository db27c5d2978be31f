import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGzip, type Gzip } from 'node:zlib';
import express, { type RequestHandler } from 'express';
import session from 'express-session';
import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';

const KIB = 1024;
const SIZES = [0, 1, 15 * KIB, 16 * KIB, 17 * KIB, 64 * KIB, 300 * KIB, 5 * 1024 * KIB];
const TEXTS = { ascii: 'a', unicode: 'ü' };

const text = {
  type: GraphQLString,
  args: { of: { type: GraphQLString }, size: { type: GraphQLString } },
  resolve: (_: unknown, args: Record<string, string>) => (args['of'] as string).repeat(Number(args['size'])),
};
const schema = new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields: { text } }) });

type Write = ServerResponse['write'];
type Wrapper = (req: IncomingMessage, res: ServerResponse, next: () => void) => void;

/** Compresses like the package `compression`: patches the response and writes the output of gzip later. */
const compress: Wrapper = (_req, res, next) => {
  const { write, end } = res;
  let gzip: Gzip | undefined;
  const open = (): Gzip => {
    if (gzip !== undefined) return gzip;
    const stream = createGzip();
    gzip = stream;
    res.removeHeader('content-length');
    res.setHeader('content-encoding', 'gzip');
    stream.on('data', (chunk) => Reflect.apply(write, res, [chunk]));
    stream.on('end', () => Reflect.apply(end, res, []));
    return stream;
  };
  res.write = ((chunk: string, encoding: BufferEncoding) =>
    open().write(Buffer.from(chunk, encoding))) as Write;
  res.end = ((chunk?: string | Buffer, encoding?: BufferEncoding) => {
    const stream = open();
    if (chunk === undefined) stream.end();
    else stream.end(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
    return res;
  }) as ServerResponse['end'];
  next();
};

/** Keeps every chunk, as loggers of bodies do, and appends a header at the end, as `response-time` does. */
function logBodies(log: string[]): Wrapper {
  return (_req, res, next) => {
    const { write, end, writeHead } = res;
    const chunks: Buffer[] = [];
    const keep = (chunk: unknown, encoding: unknown): void => {
      if (typeof chunk === 'string') chunks.push(Buffer.from(chunk, encoding as BufferEncoding));
      else if (Buffer.isBuffer(chunk)) chunks.push(chunk);
    };
    res.writeHead = function (this: ServerResponse, ...args: unknown[]) {
      this.setHeader('x-response-time', '1ms');
      return Reflect.apply(writeHead, this, args);
    } as ServerResponse['writeHead'];
    res.write = function (this: ServerResponse, ...args: unknown[]) {
      keep(args[0], args[1]);
      return Reflect.apply(write, this, args);
    } as Write;
    res.end = function (this: ServerResponse, ...args: unknown[]) {
      keep(args[0], args[1]);
      // Later than the response, when its buffers may have been used again.
      setTimeout(() => log.push(Buffer.concat(chunks).toString()), 20);
      return Reflect.apply(end, this, args);
    } as ServerResponse['end'];
    next();
  };
}

const sessions: RequestHandler = session({
  secret: 'x',
  resave: true,
  saveUninitialized: true,
  cookie: { secure: false },
});

/** Sends a body to the middleware after a wrapper, and returns the JSON of the response. */
async function post(listener: RequestListener, bodies: object[]): Promise<[Headers, unknown][]> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
  const results: [Headers, unknown][] = [];
  for (const body of bodies) {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    results.push([response.headers, await response.json()]);
  }
  server.close();
  server.closeAllConnections();
  return results;
}

const queryOf = (of: string, size: number) => ({
  query: 'query ($of: String, $size: String) { text(of: $of, size: $size) }',
  variables: { of, size: String(size) },
});

describe.each(['compiled', 'graphql-js'] as const)('with the engine %s', (engine) => {
  const log: string[] = [];
  const wrappers: [string, (RequestHandler | Wrapper)[]][] = [
    ['no wrapper', []],
    ['a compressor', [compress]],
    ['a logger of bodies', [logBodies(log)]],
    ['express-session', [sessions]],
    ['all of them', [sessions, logBodies(log), compress]],
  ];

  it.each(wrappers)(
    'graphqlHTTP sends responses of every size completely under %s',
    async (name, wrapping) => {
      log.length = 0;
      const app = express();
      for (const wrapper of wrapping) app.use(wrapper);
      app.use(
        '/graphql',
        graphqlHTTP(schema, { engine, batching: true, pretty: (req) => req.url === '/?p' }),
      );
      const sent = Object.values(TEXTS).flatMap((of) => SIZES.map((size) => ({ of, size })));
      const results = await post(
        app,
        sent.map(({ of, size }) => queryOf(of, size)),
      );
      for (const [index, { of, size }] of sent.entries()) {
        const body = results[index]?.[1] as { data: { text: string } };
        expect(body.data.text.length).toBe(size);
        expect(body.data.text === of.repeat(size)).toBe(true);
      }
      const [[headers] = []] = results;
      expect(headers?.get('content-encoding')).toBe(wrapping.includes(compress) ? 'gzip' : null);
      expect(headers?.get('set-cookie') !== null).toBe(wrapping.includes(sessions));
      if (name !== 'a logger of bodies') return;
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(log.map((body) => JSON.parse(body).data.text.length)).toEqual(sent.map(({ size }) => size));
    },
  );

  it.each(wrappers)(
    'graphqlHTTP sends large batches and indented responses completely under %s',
    async (_, wrapping) => {
      const app = express();
      for (const wrapper of wrapping) app.use(wrapper);
      app.use('/graphql', graphqlHTTP(schema, { engine, batching: true, pretty: true }));
      for (const size of SIZES) {
        const results = await post(app, [[queryOf('a', size), queryOf('ü', size)], queryOf('ü', size)]);
        expect(results[0]?.[1]).toEqual([
          { data: { text: 'a'.repeat(size) } },
          { data: { text: 'ü'.repeat(size) } },
        ]);
        expect(results[1]?.[1]).toEqual({ data: { text: 'ü'.repeat(size) } });
      }
    },
  );
});
