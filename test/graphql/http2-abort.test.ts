import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import * as http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { GraphQLInt, GraphQLObjectType, type GraphQLResolveInfo, GraphQLSchema, versionInfo } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createServer } from '../../middleware/server.ts';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import { until } from '../until.ts';

type Info = GraphQLResolveInfo & { getAbortSignal?: () => AbortSignal | undefined };

const { NGHTTP2_NO_ERROR, NGHTTP2_CANCEL } = http2.constants;
const CODES = { NO_ERROR: NGHTTP2_NO_ERROR, CANCEL: NGHTTP2_CANCEL };

/** A field that waits until `fail` is called. */
class SlowField {
  readonly signals: (AbortSignal | undefined)[] = [];
  fail: () => void = () => undefined;

  readonly schema = new GraphQLSchema({
    query: new GraphQLObjectType({
      name: 'Query',
      fields: {
        slow: {
          type: GraphQLInt,
          resolve: (_source, _args, _context, info: Info) => {
            this.signals.push(info.getAbortSignal?.());
            return new Promise((_resolve, reject) => {
              this.fail = () => reject(new Error('the database was closed'));
            });
          },
        },
      },
    }),
  });
}

describe.each(['Express', 'no framework'])('over HTTP/2, with %s', (framework) => {
  it.each(Object.entries(CODES))(
    'graphqlHTTP aborts the signal of resolvers and reports no error if the client resets the stream with %s',
    async (_name, code) => {
      const field = new SlowField();
      const reported: unknown[] = [];
      const handler = graphqlHTTP(field.schema, { onError: (error) => void reported.push(error) });
      let closed = false;
      const onRequest = (req: ConnectRequest, res: ServerResponse, next?: NextFunction): void => {
        res.once('close', () => {
          closed = true;
        });
        handler(req, res, next);
      };
      const app = framework === 'Express' ? express().use(onRequest) : onRequest;
      const server = createServer(app, { http2: true }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const session = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      const stream = session.request({
        ':path': '/',
        ':method': 'POST',
        'content-type': 'application/json',
      });
      stream.on('error', () => undefined);
      stream.end('{"query":"{ slow }"}');
      await until(() => field.signals.length === 1);
      stream.close(code);
      await until(() => closed);
      expect(field.signals[0]?.aborted).toBe(versionInfo.major >= 17 ? true : undefined);
      field.fail();
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
      expect(reported).toEqual([]);
      session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  );
});
