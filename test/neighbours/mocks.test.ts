/** @tags once */
import { EventEmitter, once } from 'node:events';
import { graphqlHTTP, staticFiles } from 'espalier';
import type { Request, Response } from 'express';
import { buildSchema } from 'graphql';
import { createRequest, createResponse, type RequestOptions } from 'node-mocks-http';
import { root } from '../tarball.ts';

// node-mocks-http creates requests and responses that only resemble those of Node.

const handler = graphqlHTTP(buildSchema('type Query { hello: String }'), { rootValue: { hello: 'world' } });

type Middleware = (
  req: ReturnType<typeof createRequest<Request>>,
  res: ReturnType<typeof createResponse<Response>>,
  next: (error?: unknown) => void,
) => unknown;

async function send(middleware: Middleware, options: RequestOptions) {
  const req = createRequest<Request>(options);
  const res = createResponse<Response>({ req, eventEmitter: EventEmitter });
  const ended = once(res, 'end');
  const refused = new Promise<never>((_resolve, reject) => {
    middleware(req, res, (error) => reject(error ?? new Error('next() was called')));
  });
  await Promise.race([ended, refused]);
  return [res.statusCode, res._getData() || res._getBuffer().toString()];
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
