import { createHash } from 'node:crypto';
import type { RequestListener } from 'node:http';
import express from 'express';
import { buildSchema } from 'graphql';
import { type GraphQLHandler, type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { type Running, run } from '../graphql/server.ts';
import { postJson } from '../kit.ts';

const TYPES = `
  type Query { hello: String, user(id: ID!): User, add(a: Int!, b: Int = 2): Int, node(id: ID!): Node, search(filter: Filter): [Node!]! }
  interface Node { id: ID! }
  type User implements Node { id: ID!, name: String, role: Role, since: Date }
  type Group implements Node { id: ID!, members: [User!] }
  enum Role { ADMIN MEMBER }
  scalar Date
  input Filter { text: String, role: Role, and: [Filter!], limit: Int! = 10 }
  type Mutation { count: Int }
`;

export const schema = buildSchema(TYPES);

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The result of a request. */
interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly body: {
    readonly data?: unknown;
    readonly errors?: readonly { message: string; extensions?: Record<string, unknown> }[];
  };
  /** The code of the first error. */
  readonly code: unknown;
}

export interface Served extends Running {
  readonly handler: GraphQLHandler;
  mutations(): number;
  /** The errors that `onError` got. */
  readonly reports: Error[];
  post(body: unknown, headers?: Record<string, string>): Promise<Received>;
  /** Sends a GET to the mount, with parameters or a path below it. */
  get(target: string | Record<string, string>, headers?: Record<string, string>): Promise<Received>;
}

const rootValue = {
  hello: 'world',
  user: ({ id }: { id: string }) => ({
    __typename: 'User',
    id,
    name: `user ${id}`,
    role: 'ADMIN',
    since: '2026',
  }),
  node: ({ id }: { id: string }) => ({ __typename: 'User', id, name: `user ${id}`, role: 'ADMIN' }),
  search: () => [
    { __typename: 'User', id: '1', name: null },
    { __typename: 'Group', id: '2', members: [{ __typename: 'User', id: '1' }] },
  ],
  add: ({ a, b }: { a: number; b: number }) => a + b,
};

export async function serve(
  options: GraphQLOptions,
  mount: (handler: GraphQLHandler) => RequestListener = (handler) => express().use('/graphql', handler),
): Promise<Served> {
  let mutations = 0;
  const reports: Error[] = [];
  const handler = graphqlHTTP(schema, {
    rootValue: { ...rootValue, count: () => ++mutations },
    onError: (error) => void reports.push(error as Error),
    ...options,
  });
  const server = await run(mount(handler));
  const receive = async (response: Response): Promise<Received> => {
    const body = JSON.parse(await response.text());
    const { status, headers } = response;
    return { status, headers, body, code: body.errors?.[0]?.extensions?.code };
  };
  return {
    ...server,
    handler,
    reports,
    mutations: () => mutations,
    post: async (body, headers = {}) => receive(await postJson(server.url, body, headers)),
    get: async (target, headers = {}) => {
      const rest = typeof target === 'string' ? target : `?${new URLSearchParams(target)}`;
      return receive(await fetch(server.url + rest, { headers }));
    },
  };
}
