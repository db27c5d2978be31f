/** @tags node graphql */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http2';
import { buildSchema, GraphQLError } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { inject } from '../../middleware/testing.ts';
import type { InjectedResponse } from '../../types/testing.ts';
import { requestHttp2, serving } from '../exchange.ts';

const schema = buildSchema('type Query { fails: String also: String }');

function respond(http: unknown, query = '{ fails }', also?: unknown): Promise<InjectedResponse> {
  const throwWith = (own: unknown) => (): never => {
    throw new GraphQLError('no', { extensions: { http: own } });
  };
  const rootValue = { fails: throwWith(http), also: throwWith(also) };
  return inject(graphqlHTTP(schema, { rootValue, onError: false }), { query });
}

describe('extensions.http of an error', () => {
  it('sets the status, and headers whatever the case of their names', async () => {
    const headers = {
      'Cache-Control': 'private, max-age=5',
      'Content-Type': 'text/x-custom',
      'WWW-Authenticate': 'Bearer',
    };
    const response = await respond({ status: 401, headers });
    expect(response.status).toBe(401);
    expect(response.headers).toMatchObject({
      'cache-control': 'private, max-age=5',
      'content-type': 'text/x-custom',
      'www-authenticate': 'Bearer',
    });
  });

  it.each(['Vary', 'vary'])('adds the field names of %s to those of the handler', async (name) => {
    const { headers } = await respond({ headers: { [name]: 'Origin, Accept' } });
    expect(headers['vary']).toBe('Accept, Origin');
  });

  it.each(['Content-Length', 'content-length', 'Transfer-Encoding', 'Trailer'])(
    'cannot set the header %s, which belongs to the body',
    async (name) => {
      const response = await respond({ status: 404, headers: { [name]: '3', 'x-other': 'kept' } });
      expect(response.status).toBe(404);
      expect(response.headers['x-other']).toBe('kept');
      expect(response.headers['content-length']).toBe(String(Buffer.byteLength(response.text)));
    },
  );

  it.each(['Connection', 'Keep-Alive', 'Proxy-Connection', 'TE', 'Upgrade'])(
    'cannot set the header %s, which HTTP/2 does not have, over HTTP/2',
    async (name) => {
      const extensions = { http: { status: 404, headers: { [name]: 'close', 'x-other': 'kept' } } };
      const fails = (): never => {
        throw new GraphQLError('no', { extensions });
      };
      const handler = graphqlHTTP(schema, { rootValue: { fails }, onError: false });
      const server = createServer(
        (req: unknown, res: unknown) => void handler(req as IncomingMessage, res as ServerResponse),
      );
      await serving(server, async (port) => {
        const headers = { 'content-type': 'application/json' };
        const body = '{"query":"{ fails }"}';
        const response = await requestHttp2(port, { method: 'POST', path: '/', headers, body });
        expect(response.status).toBe(404);
        expect(response.headers).toMatchObject({ 'x-other': 'kept' });
        expect(response.headers).not.toHaveProperty(name.toLowerCase());
      });
    },
  );

  it.each([100, 101, 199, 0, -1])('with the status %d is an unexpected error', async (status) => {
    const { status: sent, text } = await respond({ status });
    expect([sent, text]).toEqual([500, expect.stringContaining('Internal server error')]);
  });

  it.each([{ status: 404, headers: 'text' }, { status: 404, headers: null }, { status: '404' }])(
    'is read as far as it has values: %j',
    async (http) => {
      const { status, headers } = await respond(http);
      expect([status, headers['0']]).toEqual([404, undefined]);
    },
  );

  it('of the first error takes precedence, for each header', async () => {
    const also = { status: 409, headers: { 'X-One': 'second', 'X-Two': 'two' } };
    const response = await respond({ status: 404, headers: { 'x-one': 'first' } }, '{ fails also }', also);
    expect(response.status).toBe(404);
    expect(response.headers).toMatchObject({ 'x-one': 'first', 'x-two': 'two' });
  });
});
