/** @tags node-lines graphql */
import type { ServerResponse } from 'node:http';
import * as http2 from 'node:http2';
import express from 'express';
import { GraphQLInt, GraphQLObjectType, GraphQLSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createServer } from '../../middleware/server.ts';
import type { ConnectRequest, NextFunction } from '../../types/connect.ts';
import { listen } from '../kit.ts';
import { until } from '../until.ts';
import { Work } from './work.ts';

const { NGHTTP2_NO_ERROR, NGHTTP2_CANCEL } = http2.constants;
const CODES = { NO_ERROR: NGHTTP2_NO_ERROR, CANCEL: NGHTTP2_CANCEL };

describe.each(['Express', 'no framework'])('over HTTP/2, with %s', (framework) => {
  it.each(Object.entries(CODES))(
    'graphqlHTTP aborts the signal of resolvers and reports no error if the client resets the stream with %s',
    async (_name, code) => {
      const work = new Work();
      const slow = { type: GraphQLInt, resolve: work.resolve };
      const schema = new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields: { slow } }) });
      const reported: unknown[] = [];
      const handler = graphqlHTTP(schema, { onError: (error) => void reported.push(error) });
      let closed = false;
      const onRequest = (req: ConnectRequest, res: ServerResponse, next?: NextFunction): void => {
        res.once('close', () => {
          closed = true;
        });
        handler(req, res, next);
      };
      const app = framework === 'Express' ? express().use(onRequest) : onRequest;
      const { url } = await listen(createServer(app, { http2: true }));
      const session = http2.connect(url);
      const stream = session.request({
        ':path': '/',
        ':method': 'POST',
        'content-type': 'application/json',
      });
      stream.on('error', () => undefined);
      stream.end('{"query":"{ slow }"}');
      await work.begun(1);
      const signal = work.infos[0]?.getAbortSignal?.();
      stream.close(code);
      await until(() => closed);
      expect(signal?.aborted).toBe(true);
      work.fail(new Error('the database was closed'));
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
      expect(reported).toEqual([]);
      session.destroy();
    },
  );
});
