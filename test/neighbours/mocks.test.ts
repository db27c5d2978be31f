import { EventEmitter, once } from 'node:events';
import { graphqlHTTP, staticFiles } from 'espalier';
import { buildSchema } from 'graphql';
import { createRequest, createResponse, type RequestOptions } from 'node-mocks-http';
import { root } from '../tarball.ts';

// node-mocks-http creates requests and responses that only resemble those of Node.

const handler = graphqlHTTP(buildSchema('type Query { hello: String }'), { rootValue: { hello: 'world' } });

async function send(middleware: Parameters<typeof call>[0], options: RequestOptions) {
  const req = createRequest(options);
  const res = createResponse({ req, eventEmitter: EventEmitter });
  const ended = once(res, 'end');
  await Promise.race([ended, call(middleware, req, res)]);
  return [res.statusCode, res._getData() || res._getBuffer().toString()];
}

/** Calls a middleware, and rejects if it calls `next`. */
function call(middleware: (...args: never) => unknown, req: unknown, res: unknown): Promise<never> {
  return new Promise((_resolve, reject) => {
    middleware(req, res, (error: unknown) => reject(error ?? new Error('next() was called')));
  });
}

it('graphqlHTTP responds to a GET and to a parsed POST of node-mocks-http', async () => {
  const expected = [200, '{"data":{"hello":"world"}}'];
  expect(await send(handler, { method: 'GET', url: '/?query={hello}' })).toEqual(expected);
  const headers = { 'content-type': 'application/json' };
  expect(await send(handler, { method: 'POST', url: '/', headers, body: { query: '{ hello }' } })).toEqual(
    expected,
  );
});

it('staticFiles responds to a GET of node-mocks-http', async () => {
  const [status, body] = await send(staticFiles(root), { method: 'GET', url: '/LICENSE' });
  expect([status, body]).toEqual([200, expect.stringContaining('MIT')]);
});
