/** @tags graphql engine */
import { makeExecutableSchema } from '@graphql-tools/schema';
import { type ExecutionResult, GraphQLError } from 'graphql';
import { authTypeDefs } from '../../middleware/auth.ts';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { Executed } from '../../types/execute.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import { until } from '../until.ts';

let released = 0;
/** A source without events. */
const never = (): AsyncIterableIterator<never> => {
  let end: (result: IteratorResult<never>) => void = () => undefined;
  const ended = new Promise<IteratorResult<never>>((resolve) => {
    end = resolve;
  });
  return {
    next: () => ended,
    return() {
      end({ done: true, value: undefined });
      return ended;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
};
const schema = makeExecutableSchema({
  typeDefs: [
    authTypeDefs,
    `type Query { hello(name: String): String, broken: String, me: String @authenticated }
    type Subscription { ticks(to: Int!): Int, forever: Int, never: Int, refused: Int }`,
  ],
  resolvers: {
    Query: {
      hello: (_root, { name }, { greeting }) => `${greeting ?? 'Hello'} ${name}`,
      broken: () => {
        throw new Error('secret');
      },
      me: (_root, _args, { caller }) => caller.id,
    },
    Subscription: {
      ticks: {
        async *subscribe(_root: unknown, { to }: { to: number }) {
          for (let ticks = 1; ticks <= to; ticks++) yield { ticks };
        },
      },
      forever: {
        async *subscribe() {
          try {
            for (let forever = 1; ; forever++) yield { forever };
          } finally {
            released++;
          }
        },
      },
      never: { subscribe: () => never() },
      refused: {
        subscribe() {
          throw new GraphQLError('No source');
        },
      },
    },
  },
});

const create = (options: GraphQLOptions = {}) =>
  graphqlHTTP(schema, {
    caller: () => null,
    auth: true,
    context: (_source: object, { caller, transport }) => ({ caller, transport }),
    onError: false,
    ...options,
  });

function isStream(executed: Executed): executed is Exclude<Executed, ExecutionResult> {
  return Symbol.asyncIterator in executed;
}

async function all(executed: Executed): Promise<ExecutionResult[]> {
  if (!isStream(executed)) return [executed];
  const results: ExecutionResult[] = [];
  for await (const result of executed) results.push(result);
  return results;
}

describe('execute of a handler', () => {
  it('returns the result of a query with its variables and context', async () => {
    const query = 'query ($name: String) { hello(name: $name) }';
    const handler = create();
    expect(await handler.execute({ query, variables: { name: 'Ada' } })).toEqual({
      data: { hello: 'Hello Ada' },
    });
    const context = { greeting: 'Hi' };
    expect(await handler.execute({ query, variables: { name: 'Ada' }, context })).toEqual({
      data: { hello: 'Hi Ada' },
    });
  });

  it('has the checks, limits and masking of operations over HTTP', async () => {
    const handler = create({ limits: { depth: 1 }, budget: { limit: 4, window: '1h', unit: 'operations' } });
    expect(await handler.execute({ query: '{ broken }' })).toMatchObject({
      errors: [{ message: 'Internal server error', path: ['broken'] }],
    });
    expect(await handler.execute({ query: '{ unknown }' })).toMatchObject({
      errors: [{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }],
    });
    expect(await handler.execute({ query: '{ me }' })).toMatchObject({
      errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
    });
    expect(await handler.execute({ query: '{ me }', caller: { id: 'ada' } })).toEqual({
      data: { me: 'ada' },
    });
  });

  it('executes a document by its id', async () => {
    const handler = create({
      documents: { from: { greet: 'query Greet { hello(name: "Ada") }' }, only: true },
    });
    expect(await handler.execute({ documentId: 'greet' })).toEqual({ data: { hello: 'Hello Ada' } });
    expect(await handler.execute({ documentId: 'other' })).toMatchObject({ errors: [{}] });
    expect(await handler.execute({ query: '{ hello }' })).toMatchObject({ errors: [{}] });
  });

  it('returns an iterator of the results of a subscription, which waits for its reader', async () => {
    const handler = create();
    const ticks = await handler.execute({ query: 'subscription { ticks(to: 5) }' });
    expect(await all(ticks)).toEqual([1, 2, 3, 4, 5].map((value) => ({ data: { ticks: value } })));
    released = 0;
    const forever = await handler.execute({ query: 'subscription { forever }' });
    if (!isStream(forever)) throw new Error('no iterator');
    expect((await forever.next()).value).toEqual({ data: { forever: 1 } });
    expect((await forever.next()).value).toEqual({ data: { forever: 2 } });
    await forever.return();
    await until(() => released === 1);
    expect(await all(await handler.execute({ query: 'subscription { refused }' }))).toMatchObject([
      { errors: [{ message: 'No source' }] },
    ]);
  });

  it('ends with its signal', async () => {
    const handler = create({ context: () => new Promise(() => undefined) });
    const ending = new AbortController();
    const executed = handler.execute({ query: '{ hello }', signal: ending.signal });
    ending.abort(new Error('stop'));
    await expect(executed).rejects.toThrow('stop');
    await expect(handler.execute({ query: '{ hello }', signal: AbortSignal.abort() })).rejects.toThrow();
    released = 0;
    const stopping = new AbortController();
    const forever = await create().execute({ query: 'subscription { forever }', signal: stopping.signal });
    if (!isStream(forever)) throw new Error('no iterator');
    await forever.next();
    stopping.abort();
    await until(() => released === 1);
    for await (const _ of forever);
  });

  it('refuses a request without a document', async () => {
    await expect(create().execute({})).rejects.toMatchObject({ code: 'ERR_OPTION' });
    await expect(create().execute({ query: '{ hello }', documentId: 'a' })).rejects.toMatchObject({
      code: 'ERR_OPTION',
    });
  });

  it('refuses members that it does not know, wrong values, and a caller without the option', async () => {
    const wrong: object[] = [
      { query: '{ hello }', contxt: {} },
      { query: '{ hello }', variables: ['Ada'] },
      { query: '{ hello }', caller: { id: 7 } },
      { query: 7 },
    ];
    for (const request of wrong)
      await expect(create().execute(request)).rejects.toMatchObject({ code: 'ERR_OPTION' });
    const withoutCaller = create({ caller: undefined, auth: { scopes: () => null } });
    await expect(withoutCaller.execute({ query: '{ hello }', caller: null })).rejects.toThrow('"caller"');
  });

  it('releases the source of an iterator that ends before its first result is read, or while it waits', async () => {
    released = 0;
    const unread = await create().execute({ query: 'subscription { forever }' });
    if (!isStream(unread)) throw new Error('no iterator');
    await unread.return();
    await until(() => released === 1);
    expect(await unread.next()).toEqual({ done: true, value: undefined });
    const waiting = await create().execute({ query: 'subscription { never }' });
    if (!isStream(waiting)) throw new Error('no iterator');
    const next = waiting.next();
    await waiting.return();
    expect(await next).toEqual({ done: true, value: undefined });
  });

  it('ends a subscription with an error when its token has expired, and not before', async () => {
    const day = 24 * 60 * 60 * 1000;
    const valid = create({ onOperation: () => ({ expiresAt: Date.now() + 60 * day }) });
    const ticks = await valid.execute({ query: 'subscription { ticks(to: 5) }' });
    expect(await all(ticks)).toHaveLength(5);
    const short = create({ onOperation: () => ({ expiresAt: Date.now() + 20 }) });
    expect(await all(await short.execute({ query: 'subscription { never }' }))).toMatchObject([
      { errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] },
    ]);
  });

  it('gives functions of the options an empty request with a state', async () => {
    const seen: unknown[] = [];
    const see = (name: string, request: unknown) => {
      const { headers, state } = request as { headers: object; state: object };
      seen.push([name, headers, state]);
    };
    const handler = create({
      caller: (request) => void see('caller', request),
      onOperation: ({ request }) => see('onOperation', request),
      onResult: ({ request }) => see('onResult', request),
    });
    await handler.execute({ query: '{ hello }' });
    expect(seen).toEqual(['caller', 'onOperation', 'onResult'].map((name) => [name, {}, {}]));
  });
});
