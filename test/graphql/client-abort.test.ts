/** @tags node-lines graphql */
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { GraphQLInt, GraphQLObjectType, GraphQLSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import { post, run, wire } from './server.ts';
import { Work } from './work.ts';

const ENGINES = ['compiled', 'graphql-js'] satisfies GraphQLOptions['engine'][];

describe.each(ENGINES)('a client that disconnects, under %s', (engine) => {
  const serve = async (work: Work) => {
    const field = { type: GraphQLInt, resolve: work.resolve };
    const schema = new GraphQLSchema({
      query: new GraphQLObjectType({ name: 'Query', fields: { slow: field } }),
      mutation: new GraphQLObjectType({ name: 'Mutation', fields: { first: field, second: field } }),
    });
    const errors: unknown[] = [];
    const handler = graphqlHTTP(schema, { engine });
    const running = await run((req, res) => handler(req, res, (error) => errors.push(error)));
    return { ...running, errors };
  };

  it('graphqlHTTP aborts the signal of resolvers, and reports no error', async () => {
    const work = new Work();
    const { server, port, close, errors } = await serve(work);
    const arrived = once(server, 'request');
    const client = wire(port);
    client.write(post('{"query":"{ slow }"}'));
    const [, res] = await arrived;
    await work.begun(1);
    const signal = work.infos[0]?.getAbortSignal?.();
    expect(signal?.aborted).toBe(false);
    const left = once(res, 'close');
    client.socket.resetAndDestroy();
    await left;
    expect(signal?.aborted).toBe(true);
    work.end();
    await close();
    expect(errors).toEqual([]);
  });

  it('graphqlHTTP reports no error if the connection is lost while the execution begins', async () => {
    const errors: unknown[] = [];
    const lost = new EventEmitter();
    const slow = {
      type: GraphQLInt,
      resolve: (_source: unknown, _args: unknown, { res }: { res: ServerResponse }) => {
        res.req.socket.destroy();
        // The response is closed later than its socket.
        res.once('close', () => setImmediate(() => lost.emit('connection', res)));
        return new Promise<number>(() => undefined);
      },
    };
    const query = new GraphQLObjectType({ name: 'Query', fields: { slow } });
    const responses = new WeakMap<object, ServerResponse>();
    const handler = graphqlHTTP(new GraphQLSchema({ query }), {
      engine,
      context: (req) => ({ res: responses.get(req) }),
      onError: (error) => void errors.push(error),
    });
    const { port } = await run((req, res) => {
      responses.set(req, res);
      handler(req, res, (error) => errors.push(error));
    });
    const ended = once(lost, 'connection');
    wire(port).write(post('{"query":"{ slow }"}'));
    await ended;
    expect(errors).toEqual([]);
  });

  it('graphqlHTTP does not report the errors of resolvers that fail because the client disconnected', async () => {
    const reports: unknown[] = [];
    const started = new EventEmitter();
    const slow = {
      type: GraphQLInt,
      resolve: async () => {
        started.emit('resolve');
        await once(started, 'fail');
        throw new Error('the connection was lost');
      },
    };
    const query = new GraphQLObjectType({ name: 'Query', fields: { slow } });
    const handler = graphqlHTTP(new GraphQLSchema({ query }), {
      engine,
      onError: (error) => void reports.push(error),
    });
    const { server, port, close } = await run((req, res) =>
      handler(req, res, (error) => reports.push(error)),
    );
    const [arrived, resolving] = [once(server, 'request'), once(started, 'resolve')];
    const client = wire(port);
    client.write(post('{"query":"{ slow }"}'));
    const [, res] = await arrived;
    await resolving;
    const left = once(res, 'close');
    client.socket.resetAndDestroy();
    await left;
    started.emit('fail');
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    await close();
    expect(reports).toEqual([]);
  });

  it('graphqlHTTP does not abort the signal while the client waits', async () => {
    const work = new Work();
    const { port } = await serve(work);
    const client = wire(port);
    client.write(post('{"query":"{ slow }"}'));
    await work.begun(1);
    const signal = work.infos[0]?.getAbortSignal?.();
    const states: (boolean | undefined)[] = [signal?.aborted];
    work.end();
    await client.until(/"slow":1/);
    expect(states).toEqual([false]);
    client.socket.destroy();
  });

  it.each(['mutation', 'query'])(
    'graphqlHTTP does not start a %s if the client disconnected before',
    async (type) => {
      const work = new Work();
      const field = { type: GraphQLInt, resolve: work.resolve };
      const [query, mutation] = ['Query', 'Mutation'].map(
        (name) => new GraphQLObjectType({ name, fields: { slow: field } }),
      );
      const gate = new EventEmitter();
      const errors: unknown[] = [];
      const handler = graphqlHTTP(new GraphQLSchema({ query, mutation }), {
        engine,
        context: () => {
          gate.emit('requested');
          return once(gate, 'open');
        },
      });
      const { server, port, close } = await run((req, res) =>
        handler(req, res, (error) => errors.push(error)),
      );
      const [arrived, requested] = [once(server, 'request'), once(gate, 'requested')];
      const client = wire(port);
      client.write(post(`{"query":"${type} { slow }"}`));
      const [, res] = await arrived;
      await requested;
      const left = once(res, 'close');
      client.socket.resetAndDestroy();
      await left;
      gate.emit('open');
      for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
      await close();
      expect(work.infos).toEqual([]);
      expect(errors).toEqual([]);
    },
  );

  it('graphqlHTTP does not start later mutations', async () => {
    const work = new Work();
    const { server, port, close, errors } = await serve(work);
    const arrived = once(server, 'request');
    const client = wire(port);
    client.write(post('{"query":"mutation { first second }"}'));
    const [, res] = await arrived;
    await work.begun(1);
    const left = once(res, 'close');
    client.socket.resetAndDestroy();
    await left;
    work.end();
    // A later response shows that the event loop has run.
    const next = wire(port);
    next.write(post('{"query":"{ __typename }"}'));
    await next.until(/"Query"/);
    expect(work.infos.map(({ fieldName }) => fieldName)).toEqual(['first']);
    next.socket.destroy();
    await close();
    expect(errors).toEqual([]);
  });
});
