/** @tags node-lines graphql */
import { once } from 'node:events';
import { createServer as createHttpServer, type Server, type ServerResponse } from 'node:http';
import express, { type NextFunction, type Request, type Response } from 'express';
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { inspect } from '../../middleware/inspect.ts';
import { mcp } from '../../middleware/mcp.ts';
import { createServer } from '../../middleware/server.ts';
import type { Middleware } from '../../types/connect.ts';
import { listen } from '../kit.ts';

type Meddle = (res: ServerResponse) => unknown;

const MEDDLERS: Record<'begun' | 'ended', Meddle> = {
  begun: (res) => res.write('0'),
  ended: (res) => res.end('done'),
};

let reports: unknown[] = [];
let logged: unknown[][] = [];
let running: Server | undefined;

beforeEach(() => {
  reports = [];
  logged = [];
  jest.spyOn(console, 'error').mockImplementation((...line: unknown[]) => void logged.push(line));
});

afterEach(async () => {
  jest.restoreAllMocks();
  running?.closeAllConnections();
  if (running?.listening === true) await once(running.close(), 'close');
});

/** The endpoints, whose functions of the application call `during` with their response. */
const ENDPOINTS: Record<string, (during: () => unknown) => Middleware> = {
  liveness: () => createServer(express()).liveness,
  readiness: (during) => {
    const server = createServer(express(), { checks: { meddle: () => void during() } });
    void listen(server);
    return server.readiness;
  },
  inspect: (during) => inspect({ guard: () => during() !== 0 }),
  mcp: (during) =>
    mcp(
      graphqlHTTP(buildSchema('type Query { me: String }'), {
        documents: { from: { me: 'query whoAmI { me }' } },
        context: () => void during(),
        onError: (error) => void reports.push((error as { code?: string }).code),
      }),
      { name: 'test', version: '1.0.0' },
    ),
};
/** Returns the body of the response, or undefined if the connection ends before it is complete. */
async function ask(server: Server, name: string): Promise<string | undefined> {
  running = server;
  const { port } = await listen(server);
  const params = { name: 'whoAmI', arguments: {} };
  const call = {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  };
  try {
    return await (await fetch(`http://127.0.0.1:${port}`, name === 'mcp' ? call : {})).text();
  } catch {
    return undefined;
  }
}

/** Express, whose error handler keeps the code of an error and ends the connection. */
function serve(endpoint: Middleware, before: Meddle | undefined): { server: Server; errors: unknown[] } {
  const errors: unknown[] = [];
  const app = express();
  app.use((_req, res, next) => {
    before?.(res);
    next();
  });
  app.use(endpoint);
  app.use((error: { code?: string }, _req: Request, res: Response, _next: NextFunction) => {
    errors.push(error.code);
    res.destroy();
  });
  return { server: createHttpServer(app), errors };
}

it('graphqlHTTP says once that a result is lost, because other code has begun the response meanwhile', async () => {
  const warned = jest.spyOn(console, 'warn').mockImplementation();
  const rootValue = {
    a: (_args: unknown, { res }: { res: ServerResponse }) => {
      res.writeHead(503).end('late');
      return 1;
    },
  };
  const handler = graphqlHTTP(buildSchema('type Query { a: Int }'), {
    rootValue,
    batching: true,
    context: (req: Request) => ({ res: req.res }),
  });
  const app = express().use(handler);
  running = createHttpServer(app);
  const { url } = await listen(running, '/');
  const headers = { 'content-type': 'application/json' };
  for (const body of [{ query: '{ a }' }, [{ query: '{ a }' }]]) {
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    expect([response.status, await response.text()]).toEqual([503, 'late']);
  }
  expect(warned).toHaveBeenCalledTimes(1);
  expect(String(warned.mock.lastCall?.[0])).toContain('other code has begun the response');
  expect(reports).toEqual([]);
});

const names = Object.keys(ENDPOINTS);

describe.each(names)('the endpoint %s', (name) => {
  const create = ENDPOINTS[name] as (during: () => unknown) => Middleware;

  it('passes an error on if earlier middleware has begun the response', async () => {
    const { server, errors } = serve(
      create(() => undefined),
      MEDDLERS.begun,
    );
    expect(await ask(server, name)).toBeUndefined();
    expect([errors, reports, logged]).toEqual([['ERR_HTTP_HEADERS_SENT'], [], []]);
  });

  it('leaves a response alone that earlier middleware has ended', async () => {
    const { server, errors } = serve(
      create(() => undefined),
      MEDDLERS.ended,
    );
    expect(await ask(server, name)).toBe('done');
    expect([errors, reports, logged]).toEqual([[], [], []]);
  });

  it('ends the connection in a server without next if the response has begun', async () => {
    const endpoint = create(() => undefined) as (...args: unknown[]) => void;
    const server = createHttpServer((req, res) => {
      res.write('0');
      endpoint(req, res);
    });
    expect(await ask(server, name)).toBeUndefined();
    expect(logged).toHaveLength(1);
  });
});

describe.each(names.filter((name) => name !== 'liveness'))('the endpoint %s', (name) => {
  const create = ENDPOINTS[name] as (during: () => unknown) => Middleware;

  it.each(['begun', 'ended'] as const)(
    'ends a response that other code has %s while a function of the application ran, with one error at most',
    async (state) => {
      let response: ServerResponse | undefined;
      const endpoint = create(() => response && MEDDLERS[state](response));
      const { server, errors } = serve(endpoint, (res) => (response = res));
      const isEnded = state === 'ended';
      expect(await ask(server, name)).toBe(isEnded ? 'done' : undefined);
      expect([...errors, ...reports]).toEqual(isEnded ? [] : ['ERR_HTTP_HEADERS_SENT']);
      expect(logged).toEqual([]);
    },
  );
});
