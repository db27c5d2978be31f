/** @tags graphql */
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { GraphQLError, GraphQLInt, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import type { ContextDetails } from '../../types/subscriptions.ts';
import { run } from './server.ts';
import { Work } from './work.ts';

const ENGINES = ['compiled', 'graphql-js'] satisfies GraphQLOptions['engine'][];

describe.each(ENGINES)('a batch whose context function fails for one operation, under %s', (engine) => {
  /** Serves batches. The context of an operation waits for the event of its name. */
  const serve = async (work: Work, contexts: EventEmitter) => {
    const field = { type: GraphQLInt, resolve: work.resolve };
    const schema = new GraphQLSchema({
      query: new GraphQLObjectType({ name: 'Query', fields: { slow: field } }),
      mutation: new GraphQLObjectType({ name: 'Mutation', fields: { change: field } }),
    });
    let created = 0;
    const context = async () => {
      created += 1;
      const [error] = await once(contexts, String(created));
      if (error) throw Object.assign(error, { status: 500 });
    };
    const handler = graphqlHTTP(schema, { engine, batching: true, onError: false, context });
    // The error handler of the application responds after the event.
    const respond = async (res: ServerResponse): Promise<void> => {
      await once(contexts, 'respond');
      res.writeHead(500).end();
    };
    const running = await run((req, res) => handler(req, res, () => void respond(res)));
    const send = (queries: string[]): Promise<Response> =>
      fetch(running.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(queries.map((query) => ({ query }))),
      });
    return { ...running, send };
  };
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  };

  it('graphqlHTTP does not start the other operations while the error handler responds', async () => {
    const work = new Work();
    const contexts = new EventEmitter();
    const { send, close } = await serve(work, contexts);
    const response = send(['{ slow }', 'mutation { change }']);
    while (contexts.listenerCount('2') === 0) await turns();
    contexts.emit('1', new Error('no context'));
    await turns();
    contexts.emit('2');
    await turns();
    contexts.emit('respond');
    expect((await response).status).toBe(500);
    await close();
    expect(work.infos).toEqual([]);
  });

  it('graphqlHTTP aborts the signal of the other operations, if graphql has one', async () => {
    const work = new Work();
    const contexts = new EventEmitter();
    const { send, close } = await serve(work, contexts);
    const response = send(['{ slow }', '{ slow }']);
    while (contexts.listenerCount('2') === 0) await turns();
    contexts.emit('1');
    await work.begun(1);
    const signal = work.infos[0]?.getAbortSignal?.();
    expect(signal?.aborted).toBe(false);
    contexts.emit('2', new Error('no context'));
    await turns();
    contexts.emit('respond');
    expect((await response).status).toBe(500);
    await turns();
    expect(signal?.aborted).toBe(true);
    work.end();
    await close();
  });
});

it.each(ENGINES)(
  'a context function that fails for one operation fails this one only, under %s',
  async (engine) => {
    process.env['NODE_ENV'] = 'production';
    const field = { type: GraphQLInt, args: { fails: { type: GraphQLInt } }, resolve: () => 1 };
    const schema = new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields: { field } }) });
    const reported: unknown[] = [];
    const failures = [new Error('password is hunter2'), new GraphQLError('Log in first')];
    const context = async (_: unknown, { operation }: ContextDetails) => {
      const index = operation?.variables?.['fails'];
      if (typeof index === 'number') throw failures[index];
      return {};
    };
    const onError = (error: unknown): void => void reported.push(error);
    const handler = graphqlHTTP(schema, { engine, batching: true, onError, context });
    const running = await run((req, res) => handler(req, res));
    const query = 'query ($fails: Int) { field(fails: $fails) }';
    const response = await fetch(running.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify([undefined, 0, undefined, 1].map((fails) => ({ query, variables: { fails } }))),
    });
    const results = await response.json();
    await running.close();
    expect(response.status).toBe(200);
    expect(results).toEqual([
      { data: { field: 1 } },
      { errors: [{ message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR' } }] },
      { data: { field: 1 } },
      { errors: [{ message: 'Log in first' }] },
    ]);
    expect(reported).toEqual([failures[0]]);
  },
);

it.each(['throws', 'returns a BigInt'])(
  'a formatError that %s masks the error in its place and is reported once, and the batch keeps all results',
  async (fault) => {
    const field = (resolve: () => string) => ({ type: GraphQLString, resolve });
    const unknown = new Error('password is hunter2');
    const fail = (): never => {
      throw unknown;
    };
    const schema = new GraphQLSchema({
      query: new GraphQLObjectType({ name: 'Query', fields: { a: field(() => 'a'), b: field(fail) } }),
      mutation: new GraphQLObjectType({ name: 'Mutation', fields: { pay: field(() => 'paid') } }),
    });
    const failure = new Error('formatError is broken');
    const formatError: GraphQLOptions['formatError'] = (formatted) => {
      if (fault === 'throws') throw failure;
      return { ...formatted, extensions: { amount: 1n } };
    };
    const reported: unknown[] = [];
    const onError = (error: unknown): void => void reported.push(error);
    const handler = graphqlHTTP(schema, { batching: true, onError, formatError });
    const running = await run((req, res) => handler(req, res));
    const response = await fetch(running.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(['mutation { pay }', '{ a b }', '{ none }'].map((query) => ({ query }))),
    });
    const results = await response.json();
    await running.close();
    const masked = { message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR' } };
    expect(results).toEqual([
      { data: { pay: 'paid' } },
      {
        data: { a: 'a', b: null },
        errors: [{ ...masked, path: ['b'], locations: [{ line: 1, column: 5 }] }],
      },
      { errors: [{ ...masked, locations: [{ line: 1, column: 3 }] }] },
    ]);
    expect(response.status).toBe(200);
    const broken = fault === 'throws' ? failure : expect.any(TypeError);
    expect(reported).toEqual([unknown, broken, broken]);
  },
);
