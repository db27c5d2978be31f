import type { IncomingMessage, RequestListener } from 'node:http';
import express from 'express';
import { buildSchema, type GraphQLSchema } from 'graphql';
import { authTypeDefs } from '../../middleware/auth.ts';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { type Running, run } from '../graphql/server.ts';
import { listen, postJson } from '../kit.ts';

export const SDL = `
  ${authTypeDefs}
  type Query {
    open: String
    secret: String @requiresScopes(scopes: [["a"], ["b", "c"]])
    required: String! @requiresScopes(scopes: [["a"]])
    mine: String @authenticated
    byPolicy: String @policy(policies: [["p"]])
    user: User
    nodes: [Node]
    search: [Result!]
    level: Level
    byLevel(level: Level, filter: Filter): String
    parent: Parent
  }
  type Mutation { write: String @requiresScopes(scopes: [["write"]]) touch: Node }
  type Subscription { ticks: Tick hidden: String @requiresScopes(scopes: [["a"]]) }
  type Tick { n: Int secret: String @requiresScopes(scopes: [["a"]]) }
  interface Node { id: ID name: String @authenticated }
  type User implements Node { id: ID name: String email: String @requiresScopes(scopes: [["email"]]) }
  type Admin implements Node @requiresScopes(scopes: [["admin"]]) { id: ID name: String }
  type Post implements Node { id: ID @requiresScopes(scopes: [["a"]]) name: String title: String }
  union Result = Admin | Post
  type Parent { child: String! @requiresScopes(scopes: [["a"]]) other: String }
  enum Level @requiresScopes(scopes: [["level"]]) { LOW HIGH }
  input Filter { level: Level text: String inner: Filter admin: Boolean @requiresScopes(scopes: [["admin"]]) }
`;

/** Counts the calls of resolvers by name. */
export const calls: Record<string, number> = {};
const counted =
  <T>(name: string, value: T) =>
  (): T => {
    calls[name] = (calls[name] ?? 0) + 1;
    return value;
  };

const nodes = [
  { __typename: 'User', id: 'u', name: 'USER', email: 'EMAIL' },
  { __typename: 'Admin', id: 'ADMIN-ID', name: 'ADMIN' },
  { __typename: 'Post', id: 'POST-ID', name: 'POST', title: 'TITLE' },
];

export const rootValue = {
  open: counted('open', 'OPEN'),
  secret: counted('secret', 'SECRET'),
  required: counted('required', 'REQUIRED'),
  mine: counted('mine', 'MINE'),
  byPolicy: counted('byPolicy', 'POLICY'),
  user: counted('user', nodes[0]),
  nodes: counted('nodes', nodes),
  search: counted('search', nodes.slice(1)),
  level: counted('level', 'HIGH'),
  byLevel: counted('byLevel', 'BY-LEVEL'),
  parent: counted('parent', { child: 'CHILD', other: 'OTHER' }),
  write: counted('write', 'WRITTEN'),
  touch: counted('touch', nodes[2]),
  async *ticks() {
    for (let n = 0; n < 3; n++) yield { ticks: { n, secret: 'SECRET' } };
  },
  async *hidden() {
    yield { hidden: 'SECRET' };
  },
};

/** The scopes of the header `x-scopes`; null without it. */
export function scopesOf({ headers }: Pick<IncomingMessage, 'headers'>): string[] | null {
  const given = headers['x-scopes'];
  return given === undefined ? null : String(given).split(' ').filter(Boolean);
}

export const schema: GraphQLSchema = buildSchema(SDL);

export interface Service extends Running {
  post(query: string, scopes?: string, more?: object, accept?: string): Promise<Answer>;
}

interface Answer {
  readonly status: number;
  readonly body: { data?: Record<string, unknown> | null; errors?: readonly Problem[] };
  readonly text: string;
  readonly headers: Headers;
}

interface Problem {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions?: { readonly code?: string };
}

export const GRAPHQL = 'application/graphql-response+json';

/** Sends a GraphQL request; without `scopes` as a caller who is not signed in. */
const post = (url: string, params: object, scopes: string | undefined, accept = GRAPHQL): Promise<Response> =>
  postJson(url, params, { accept, ...(scopes !== undefined && { 'x-scopes': scopes }) });

type Handlers = Readonly<Record<string, (...args: Parameters<RequestListener>) => unknown>>;

/** A server for the handlers of one schema after the other, by path. */
export function serveInTurn() {
  let handlers: Handlers = {};
  let origin = '';
  beforeAll(async () => {
    ({ url: origin } = await listen((req, res) => handlers[req.url as string]?.(req, res)));
  });
  return {
    use(next: Handlers): void {
      handlers = next;
    },
    send: (path: string, params: object, scopes: string | undefined, accept?: string): Promise<Response> =>
      post(origin + path, params, scopes, accept),
  };
}

export async function serve(options: GraphQLOptions, of: GraphQLSchema = schema): Promise<Service> {
  const running = await run(express().use('/graphql', graphqlHTTP(of, { rootValue, ...options })));
  return {
    ...running,
    async post(query, scopes, more = {}, accept = GRAPHQL) {
      const response = await post(running.url, { query, ...more }, scopes, accept);
      const text = await response.text();
      return { status: response.status, body: JSON.parse(text), text, headers: response.headers };
    },
  };
}

export const codes = ({ body }: Pick<Answer, 'body'>): readonly unknown[] =>
  (body.errors ?? []).map(({ extensions }) => extensions?.code);
