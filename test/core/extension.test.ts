/** @tags graphql engine */
import { makeExecutableSchema } from '@graphql-tools/schema';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import express from 'express';
import type { OperationDefinitionNode } from 'graphql';
import { mcp } from '../../middleware/mcp.ts';
import { createServer } from '../../middleware/server.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { subscribe } from '../../middleware/testing.ts';
import { withExtensions } from '../../src/core/admission.ts';
import type { Extension } from '../../src/core/extension.ts';
import { refuse } from '../../src/execution/graphql-error.ts';
import { createGraphQLHandler } from '../../src/graphql/create-handler.ts';
import { extensionsOf } from '../../src/graphql/extensions.ts';
import { settle } from '../../src/options/values.ts';
import type { GraphQLHandler, GraphQLOptions } from '../../types/graphql.ts';
import { atEnd, listen, postJson } from '../kit.ts';

const schema = makeExecutableSchema({
  typeDefs: `
    type Query { hello: String @cacheControl(maxAge: 60) }
    type Mutation { rename: String }
    type Subscription { ticks: Int }
    directive @cacheControl(maxAge: Int) on FIELD_DEFINITION`,
  resolvers: {
    Query: { hello: async () => 'Hello' },
    Mutation: { rename: () => 'renamed' },
    Subscription: {
      ticks: {
        async *subscribe() {
          for (let ticks = 1; ticks <= 3; ticks++) yield { ticks };
        },
      },
    },
  },
});

const nameOf = ({ name }: OperationDefinitionNode): string | undefined => name?.value;

/** A whole capability: it refuses operations named `Forbidden`, and adds the time of every other execution. */
const timing: Extension = {
  prepare: ({ operation }) => ({
    admit(call) {
      if (nameOf(operation) === 'Forbidden') return refuse('This name is forbidden', 'FORBIDDEN_NAME', 403);
      call.willExtend();
      return undefined;
    },
    around(_call, _prepared, next) {
      const began = performance.now();
      return settle(next(), (outcome) =>
        withExtensions(outcome, JSON.stringify({ milliseconds: performance.now() - began })),
      );
    },
  }),
};

/** `graphqlHTTP` with one more extension at the end of the list. */
const handlerWith = (extension: Extension, options: GraphQLOptions = {}): GraphQLHandler =>
  createGraphQLHandler(schema, options, (settings) => (parts) => [
    ...extensionsOf(settings)(parts),
    extension,
  ]);

const forbidden = { errors: [{ message: 'This name is forbidden', extensions: { code: 'FORBIDDEN_NAME' } }] };
const timed = { extensions: { milliseconds: expect.any(Number) } };

async function serve(options?: GraphQLOptions) {
  const handler = handlerWith(timing, options);
  const app = express();
  app.use('/graphql', handler);
  if (options?.documents !== undefined) app.use('/mcp', mcp(handler, { name: 'test', version: '1.0.0' }));
  const server = createServer(app);
  attachSubscriptions(server, handler);
  return { handler, ...(await listen(server)) };
}

describe('an extension that no other file knows', () => {
  it('adds to results and refuses over HTTP, alone and in a batch', async () => {
    const { url } = await serve({ batching: true });
    const post = async (body: unknown) => (await postJson(`${url}/graphql`, body)).json();
    expect(await post({ query: '{ hello }' })).toEqual({ data: { hello: 'Hello' }, ...timed });
    expect(await post({ query: 'mutation { rename }' })).toEqual({ data: { rename: 'renamed' }, ...timed });
    expect(await post({ query: 'query Forbidden { hello }' })).toEqual(forbidden);
    expect(await post([{ query: '{ hello }' }, { query: 'query Forbidden { hello }' }])).toEqual([
      { data: { hello: 'Hello' }, ...timed },
      forbidden,
    ]);
  });

  it.each(['websocket', 'event-stream'] as const)('adds to events and refuses over %s', async (transport) => {
    const { handler } = await serve();
    const results = [];
    for await (const result of await subscribe(handler, { query: 'subscription { ticks }', transport }))
      results.push(result);
    expect(results).toEqual([1, 2, 3].map((ticks) => ({ data: { ticks }, ...timed })));
    const refused = await subscribe(handler, { query: 'subscription Forbidden { ticks }', transport });
    await expect(refused.next()).resolves.toMatchObject({ value: forbidden });
  });

  it('adds to the results of tools for agents and refuses them', async () => {
    const operations = { hello: 'query hello { hello }', Forbidden: 'query Forbidden { hello }' };
    const { url } = await serve({ documents: { from: operations } });
    const client = new Client({ name: 'agent', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
    atEnd(() => client.close());
    const call = (name: string) => client.callTool({ name, arguments: {} });
    expect(await call('hello')).toMatchObject({ structuredContent: { data: { hello: 'Hello' } } });
    expect(await call('Forbidden')).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('This name is forbidden') }],
    });
  });

  it('sees stored results too, and its members join those of onOperation', async () => {
    const { url } = await serve({
      responseCache: true,
      compress: true,
      onOperation: () => ({ extensions: { tenant: 'a' } }),
    });
    const headers = { 'accept-encoding': 'gzip, identity;q=0' };
    const post = async () => (await postJson(`${url}/graphql`, { query: '{ hello }' }, headers)).json();
    const all = { data: { hello: 'Hello' }, extensions: { milliseconds: expect.any(Number), tenant: 'a' } };
    expect(await post()).toEqual(all);
    expect(await post()).toEqual(all);
  });

  it('costs an operation nothing where it prepares nothing', async () => {
    const handler = handlerWith({ prepare: () => undefined });
    const { url } = await listen(handler);
    expect(await (await postJson(url, { query: 'query Forbidden { hello }' })).json()).toEqual({
      data: { hello: 'Hello' },
    });
  });
});
