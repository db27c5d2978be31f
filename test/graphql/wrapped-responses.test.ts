/** @tags node-lines graphql slow */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import compression from 'compression';
import express, { type RequestHandler } from 'express';
import session from 'express-session';
import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import morgan from 'morgan';
import responseTime from 'response-time';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { listen } from '../kit.ts';
import { until } from '../until.ts';

const KIB = 1024;
const SIZES = [0, 1, 15 * KIB, 16 * KIB, 17 * KIB, 64 * KIB, 300 * KIB, 5 * 1024 * KIB];
/** A batch joins results whose sizes single responses prove: one fits into the first buffer, one does not, one needs many. */
const SIZES_IN_BATCHES = [1, 17 * KIB, 300 * KIB];
const TEXTS = { ascii: 'a', unicode: 'ü' };

const text = {
  type: GraphQLString,
  args: { of: { type: GraphQLString }, size: { type: GraphQLString } },
  resolve: (_: unknown, args: Record<string, string>) => (args['of'] as string).repeat(Number(args['size'])),
};
const schema = new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields: { text } }) });

type Write = ServerResponse['write'];
type Wrapper = (req: IncomingMessage, res: ServerResponse, next: () => void) => void;

/** Keeps every chunk, as loggers of bodies do. */
function logBodies(log: Buffer[][]): Wrapper {
  return (_req, res, next) => {
    const { write, end } = res;
    const chunks: Buffer[] = [];
    const keep = (chunk: unknown, encoding: unknown): void => {
      if (typeof chunk === 'string') chunks.push(Buffer.from(chunk, encoding as BufferEncoding));
      else if (Buffer.isBuffer(chunk)) chunks.push(chunk);
    };
    res.write = function (this: ServerResponse, ...args: unknown[]) {
      keep(args[0], args[1]);
      return Reflect.apply(write, this, args);
    } as Write;
    res.end = function (this: ServerResponse, ...args: unknown[]) {
      keep(args[0], args[1]);
      log.push(chunks);
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
  let closed = 0;
  server.on('request', (_req, res) => res.once('close', () => closed++));
  const { url } = await listen(server, '/graphql');
  const results: [Headers, unknown][] = [];
  for (const body of bodies) {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    results.push([response.headers, await response.json()]);
  }
  // Loggers write their lines when the client already has the response.
  await until(() => closed === bodies.length);
  server.close();
  server.closeAllConnections();
  return results;
}

const queryOf = (of: string, size: number) => ({
  query: 'query ($of: String, $size: String) { text(of: $of, size: $size) }',
  variables: { of, size: String(size) },
});

/** Collects what morgan writes. */
const lines: string[] = [];
const logRequests = morgan(':status :res[content-length]', { stream: { write: (line) => lines.push(line) } });

/** Passes each chunk on in a copy, one turn of the event loop later, as middleware that rewrites bodies does. */
const rewriteLater: Wrapper = (_req, res, next) => {
  const { write, end } = res;
  let last: Promise<unknown> = Promise.resolve();
  const copyOf = (chunk: unknown, encoding: unknown): Buffer =>
    typeof chunk === 'string' ? Buffer.from(chunk, encoding as BufferEncoding) : Buffer.from(chunk as Buffer);
  res.write = ((...args: unknown[]) => {
    const copy = copyOf(args[0], args[1]);
    last = last.then(() => new Promise((done) => setImmediate(done)));
    last = last.then(() => Reflect.apply(write, res, [copy]));
    return true;
  }) as Write;
  res.end = ((...args: unknown[]) => {
    if (args[0] !== undefined && typeof args[0] !== 'function') res.write(args[0], args[1] as BufferEncoding);
    last = last.then(() => Reflect.apply(end, res, []));
    return res;
  }) as ServerResponse['end'];
  next();
};

const compress = compression();
const timed = responseTime();

jest.setTimeout(90_000);

describe.each(['compiled', 'graphql-js'] as const)('with the engine %s', (engine) => {
  const log: Buffer[][] = [];
  const wrappers: [string, (RequestHandler | Wrapper)[]][] = [
    ['no wrapper', []],
    ['compression', [compress]],
    ['morgan', [logRequests]],
    ['response-time', [timed]],
    ['express-session', [sessions]],
    ['a logger of bodies', [logBodies(log)]],
    ['a write that is delayed', [rewriteLater]],
    ['all of them', [logRequests, timed, sessions, logBodies(log), compress, rewriteLater]],
    [
      'all of them in the reverse order',
      [rewriteLater, compress, logBodies(log), sessions, timed, logRequests],
    ],
  ];

  it.each(wrappers)(
    'graphqlHTTP sends responses of every size completely under %s',
    async (name, wrapping) => {
      log.length = 0;
      lines.length = 0;
      const app = express();
      for (const wrapper of wrapping) app.use(wrapper);
      app.use('/graphql', graphqlHTTP(schema, { engine, batching: true }));
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
      for (const [index, { size }] of sent.entries()) {
        const [headers] = results[index] as [Headers, unknown];
        // The threshold of compression is 1 KiB.
        const coding =
          wrapping.includes(compress) && size > 1024 ? expect.stringMatching(/^(?:br|gzip)$/) : null;
        expect(headers.get('content-encoding')).toEqual(coding);
        expect(headers.get('set-cookie') !== null).toBe(wrapping.includes(sessions));
        expect(headers.get('x-response-time') !== null).toBe(wrapping.includes(timed));
      }
      expect(lines).toHaveLength(wrapping.includes(logRequests) ? sent.length : 0);
      expect(lines.every((line) => line.startsWith('200 '))).toBe(true);
      if (name !== 'a logger of bodies') return;
      // Later than the responses, when their buffers have been used again.
      const sizes = log.map((chunks) => JSON.parse(String(Buffer.concat(chunks))).data.text.length);
      expect(sizes).toEqual(sent.map(({ size }) => size));
    },
  );

  it.each(wrappers)('graphqlHTTP sends large batches completely under %s', async (_, wrapping) => {
    const app = express();
    for (const wrapper of wrapping) app.use(wrapper);
    app.use('/graphql', graphqlHTTP(schema, { engine, batching: true }));
    for (const size of SIZES_IN_BATCHES) {
      const results = await post(app, [[queryOf('a', size), queryOf('ü', size)], queryOf('ü', size)]);
      expect(results[0]?.[1]).toEqual([
        { data: { text: 'a'.repeat(size) } },
        { data: { text: 'ü'.repeat(size) } },
      ]);
      expect(results[1]?.[1]).toEqual({ data: { text: 'ü'.repeat(size) } });
    }
  });
});
