/** @tags node graphql */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { attachSubscriptions, createServer, graphqlHTTP, Upload, type UploadedFile } from 'espalier';
import express from 'express';
import { GraphQLError, GraphQLInt, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { connect } from '../live/client.ts';
import { until } from '../until.ts';
import { file, map, operations, post } from '../uploads/form.ts';

// Sanitising middleware writes every member of the values that it is given back, and `Object.assign` onto them is usual.

const isPlain = (value: unknown): value is Record<string, unknown> =>
  Array.isArray(value) ||
  (typeof value === 'object' &&
    value !== null &&
    [Object.prototype, null].includes(Object.getPrototypeOf(value)));

/** Writes each member of a value back, and those of plain values in it; returns the paths of those that refuse it. */
function refusedWrites(value: object, path: string, seen = new Set<unknown>()): string[] {
  if (seen.has(value)) return [];
  seen.add(value);
  return Object.entries(value).flatMap(([name, member]) => {
    const refused = Reflect.set(value, name, member) ? [] : [`${path}.${name}`];
    return isPlain(member) ? [...refused, ...refusedWrites(member, `${path}.${name}`, seen)] : refused;
  });
}

/** Writes back all arguments of the functions that `watch` wraps. */
class Writes {
  readonly refused: string[] = [];
  readonly seen: Set<string> = new Set();

  watch<T>(name: string, result: T): (...values: unknown[]) => T {
    return (...values) => {
      this.seen.add(name);
      values.forEach((value, index) => {
        if (typeof value === 'object' && value !== null)
          this.refused.push(...refusedWrites(value, `${name}[${index}]`));
      });
      return result;
    };
  }
}

describe.each(['compiled', 'graphql-js'] as const)('values given to the application, engine %s', (engine) => {
  it(`every member of a value that graphqlHTTP and attachSubscriptions give to a function can be written (${engine})`, async () => {
    const writes = new Writes();
    const input = { text: { type: GraphQLString }, list: { type: GraphQLInt, defaultValue: 1 } };
    const schema = new GraphQLSchema({
      query: new GraphQLObjectType({
        name: 'Query',
        fields: {
          hello: { type: GraphQLString, args: input, resolve: writes.watch('resolve', 'world') },
          broken: {
            type: GraphQLString,
            resolve: () => {
              throw new GraphQLError('broken', { extensions: { code: 'BROKEN', list: [1] } });
            },
          },
          bug: {
            type: GraphQLString,
            resolve: () => {
              throw new Error('a bug');
            },
          },
        },
      }),
      mutation: new GraphQLObjectType({
        name: 'Mutation',
        fields: {
          put: {
            type: GraphQLString,
            args: { file: { type: Upload } },
            resolve: writes.watch('put', 'done'),
          },
        },
      }),
      subscription: new GraphQLObjectType({
        name: 'Subscription',
        fields: {
          tick: {
            type: GraphQLInt,
            args: input,
            resolve: writes.watch('event', 1),
            subscribe: async function* (...values: unknown[]) {
              writes.watch('subscribe', 1)(...values);
              yield { tick: 1 };
            },
          },
        },
      }),
    });
    const handler = graphqlHTTP(schema, {
      engine,
      context: writes.watch('context', { user: 'ada' }),
      rootValue: writes.watch('rootValue', {}),
      introspection: writes.watch('introspection', true),
      formatError: (formatted, error) => {
        writes.watch('formatError', formatted)(formatted, error.extensions);
        return formatted;
      },
      onError: writes.watch('onError', undefined),
      onOperation: writes.watch('onOperation', undefined),
      statusCodes: writes.watch('statusCodes', 200),
      batching: true,
      uploads: { accept: writes.watch('accept', true) },
    });
    const app = express().use('/graphql', handler);
    const server = createServer(app).listen(0);
    const subscriptions = attachSubscriptions(server, handler, {
      onConnect: writes.watch('onConnect', true),
      onClose: writes.watch('onClose', undefined),
      share: writes.watch('share', 'all'),
      allowedOrigins: writes.watch('allowedOrigins', true),
    });
    await once(server, 'listening');
    const url = `http://localhost:${(server.address() as AddressInfo).port}/graphql`;
    const headers = { 'content-type': 'application/json' };
    const query =
      'query ($text: String) { __schema { description } hello(text: $text) again: hello(text: "x") broken bug }';
    const body = { query, variables: { text: 'a' } };
    await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    await fetch(url, { method: 'POST', headers, body: JSON.stringify([body, { query: '{ hello }' }]) });
    const { json } = await post(url, [
      operations({ query: 'mutation ($file: Upload) { put(file: $file) }', variables: { file: null } }),
      map({ 0: ['variables.file'] }),
      file('0', 'abc'),
    ]);
    expect(json).toEqual({ data: { put: 'done' } });
    const client = await connect(url.replace('http', 'ws'), undefined, {
      headers: { origin: 'http://a.example' },
    });
    client.send({ type: 'connection_init', payload: { a: { b: 1 } } });
    await client.until(({ type }) => type === 'connection_ack');
    client.send({ id: '1', type: 'subscribe', payload: { query: 'subscription { tick(text: "a") }' } });
    await client.until(({ type }) => type === 'complete');
    await client.close();
    await until(() => writes.seen.has('onClose'));
    await handler.usage.flush();
    await subscriptions.close();
    await server.drain();
    expect([...writes.seen].sort()).toEqual([
      ...['accept', 'allowedOrigins', 'context', 'event', 'formatError', 'introspection', 'onClose'],
      ...['onConnect', 'onError', 'onOperation', 'put', 'resolve', 'rootValue', 'share'],
      ...['statusCodes', 'subscribe'],
    ]);
    expect(writes.refused).toEqual([]);
  });
});

it('an upload that arrives while it is used can be written, also if it was frozen', async () => {
  const sizes: unknown[] = [];
  const schema = new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { hello: { type: GraphQLString } } }),
    mutation: new GraphQLObjectType({
      name: 'Mutation',
      fields: {
        put: {
          type: GraphQLString,
          args: { file: { type: Upload }, isFrozen: { type: GraphQLString } },
          async resolve(_root, { file: given, isFrozen }: { file: UploadedFile; isFrozen?: string }) {
            if (isFrozen === undefined) Object.assign(given, { ...given, owner: 'ada' });
            else Object.freeze(given);
            await given.text();
            sizes.push(isFrozen ?? given.size, given.toJSON().size);
          },
        },
      },
    }),
  });
  const handler = graphqlHTTP(schema, { uploads: { streaming: true } });
  const server = createServer(express().use('/graphql', handler)).listen(0);
  await once(server, 'listening');
  const url = `http://localhost:${(server.address() as AddressInfo).port}/graphql`;
  for (const call of ['put(file: $file)', 'put(file: $file, isFrozen: "yes")']) {
    const query = `mutation ($file: Upload) { ${call} }`;
    const { json } = await post(url, [
      operations({ query, variables: { file: null } }),
      map({ 0: ['variables.file'] }),
      file('0', 'x'.repeat(700_000)),
    ]);
    expect(json).toEqual({ data: { put: null } });
  }
  expect(sizes).toEqual([700_000, 700_000, 'yes', 700_000]);
  await server.drain();
});
