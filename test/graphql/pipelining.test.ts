/** @tags node-lines graphql */
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { createServer as createNodeServer, type RequestListener, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { GraphQLInt, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { createServer } from '../../middleware/server.ts';
import { eachExpress } from '../express.ts';
import { listen } from '../kit.ts';
import { until } from '../until.ts';
import { post, type Wire, wire } from './server.ts';

const SLOW = 'GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n';
const storage = new AsyncLocalStorage<string>();

/** The resolver calls so far, and the signals and ends of the resolvers that wait. */
interface Calls {
  readonly names: string[];
  readonly stored: (string | undefined)[];
  readonly signals: (AbortSignal | undefined)[];
  readonly ends: (() => void)[];
}

function createSchema(calls: Calls): GraphQLSchema {
  const field = (name: string) => ({
    type: GraphQLString,
    args: { of: { type: GraphQLInt } },
    resolve: () => {
      calls.names.push(name);
      calls.stored.push(storage.getStore());
      return name;
    },
  });
  const wait = {
    type: GraphQLString,
    resolve: (_: unknown, __: unknown, ___: unknown, info: object) => {
      calls.names.push('wait');
      calls.signals.push((info as { getAbortSignal?: () => AbortSignal }).getAbortSignal?.());
      return new Promise((resolve) => calls.ends.push(() => resolve('wait')));
    },
  };
  return new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { read: field('read'), wait } }),
    mutation: new GraphQLObjectType({ name: 'Mutation', fields: { write: field('write'), wait } }),
  });
}

const write = (of: number): Buffer => post(JSON.stringify({ query: `mutation { write(of: ${of}) }` }));

describe.each(['compiled', 'graphql-js'] satisfies GraphQLOptions['engine'][])('under %s', (engine) => {
  eachExpress((express) => {
    let calls: Calls;
    let held: ServerResponse[];
    let client: Wire;
    let close: () => Promise<unknown>;
    let accepted: Socket[];

    beforeEach(async () => {
      calls = { names: [], stored: [], signals: [], ends: [] };
      held = [];
      accepted = [];
      const app = express();
      app.get('/slow', (_req, res) => void held.push(res));
      let arrived = 0;
      app.use((_req, _res, next) => storage.run(`request ${++arrived}`, next));
      app.use('/graphql', graphqlHTTP(createSchema(calls), { engine }));
      const server = createServer(app as unknown as RequestListener);
      server.on('connection', (socket: Socket) => accepted.push(socket));
      const { port } = await listen(server);
      client = wire(port);
      close = () => {
        server.closeAllConnections();
        return new Promise((resolve) => server.close(resolve));
      };
    });
    afterEach(async () => {
      client.socket.destroy();
      await close();
    });

    it('graphqlHTTP runs pipelined mutations one after the other, each after the response before it', async () => {
      client.write(Buffer.concat([Buffer.from(SLOW), write(1), write(2)]));
      await until(() => held.length === 1);
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
      expect(calls.names).toEqual([]);
      held[0]?.end('slow');
      await client.until(/slow.*\{"data":\{"write":"write"\}\}.*\{"data":\{"write":"write"\}\}/s);
      expect(calls.names).toEqual(['write', 'write']);
    });

    it('graphqlHTTP keeps the AsyncLocalStorage of a request that waits for an earlier response', async () => {
      client.write(Buffer.concat([Buffer.from(SLOW), write(1), write(2)]));
      await until(() => held.length === 1);
      held[0]?.end('slow');
      await client.until(/slow.*"write":"write".*"write":"write"/s);
      expect(calls.stored).toEqual(['request 1', 'request 2']);
    });

    it('graphqlHTTP never starts a pipelined mutation whose client disconnects before the response before it', async () => {
      client.write(Buffer.concat([Buffer.from(SLOW), write(1)]));
      await until(() => held.length === 1);
      const closed = once(held[0] as ServerResponse, 'close');
      client.socket.resetAndDestroy();
      await closed;
      held[0]?.end('slow');
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
      expect(calls.names).toEqual([]);
    });

    it('the abort signal of a pipelined request fires when the connection is lost, and later requests do not start', async () => {
      const waiting = post('{"query":"{ wait }"}');
      client.write(Buffer.concat([Buffer.from(SLOW), waiting, write(1)]));
      await until(() => held.length === 1);
      held[0]?.end('slow');
      await until(() => calls.ends.length === 1);
      const [signal] = calls.signals;
      client.socket.resetAndDestroy();
      await until(() => accepted.every((socket) => socket.destroyed));
      expect(signal?.aborted).toBe(true);
      for (const end of calls.ends) end();
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
      expect(calls.names).toEqual(['wait']);
    });

    it('graphqlHTTP responds to a pipelined request with an error without reading its body first', async () => {
      const wrong = post('x'.repeat(100_000), { 'content-type': 'text/plain' });
      client.write(Buffer.concat([Buffer.from(SLOW), wrong, write(1)]));
      await until(() => held.length === 1);
      held[0]?.end('slow');
      await client.until(/slow.*HTTP\/1\.1 415.*"write":"write"/s);
    });
  });
});

it('a slow client with pipelined requests runs one operation at a time', async () => {
  const sizes: number[] = [];
  const text = {
    type: GraphQLString,
    resolve: () => {
      sizes.push(1);
      return 'x'.repeat(4 << 20);
    },
  };
  const schema = new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields: { text } }) });
  const { port } = await listen(createNodeServer(graphqlHTTP(schema)));
  const client = wire(port);
  client.socket.pause();
  const sent = 20;
  client.write(Buffer.concat(Array.from({ length: sent }, () => post('{"query":"{ text }"}'))));
  await until(() => sizes.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 100));
  // The buffers of the two sockets have room for a few of these responses, but not for all of them.
  expect(sizes.length).toBeLessThan(sent / 2);
  client.socket.resume();
  await until(() => sizes.length === sent);
  client.socket.destroy();
});
