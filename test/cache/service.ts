import { makeExecutableSchema } from '@graphql-tools/schema';
import express from 'express';
import { type ExecutionArgs, execute, type GraphQLSchema } from 'graphql';
import request from 'supertest';
import { type GraphQLOptions, graphqlHTTP, type SchemaSource } from '../../middleware/index.ts';

/** The directive as docs/caching.md has it. */
const DIRECTIVE = `
  enum CacheControlScope { PUBLIC PRIVATE }
  directive @cacheControl(
    maxAge: Int
    sharedMaxAge: Int
    scope: CacheControlScope
    vary: [String!]
    inheritMaxAge: Boolean
  ) on FIELD_DEFINITION | OBJECT | INTERFACE | UNION
`;

/** The engines that resolvers can run in. */
export const ENGINES: readonly [string, GraphQLOptions['engine']][] = [
  ['compiled', 'compiled'],
  ['graphql-js', 'graphql-js'],
  ['function', (args: ExecutionArgs) => execute(args)],
];

/** A map of resolvers by type and field. */
export type Resolvers = Record<string, Record<string, unknown>>;

export const schemaOf = (typeDefs: string, resolvers: Resolvers = {}): GraphQLSchema =>
  makeExecutableSchema({
    typeDefs: [DIRECTIVE, typeDefs],
    resolvers: resolvers as NonNullable<Parameters<typeof makeExecutableSchema>[0]['resolvers']>,
  });

/** Mounts a schema at /graphql, with caching on. */
export function appOf(schema: SchemaSource, options: GraphQLOptions = {}): express.Express {
  return express().use('/graphql', graphqlHTTP(schema, { httpCache: true, ...options }));
}

/** Sends a query by GET. */
export const get = (app: express.Express, query: string, variables?: object): request.Test =>
  request(app)
    .get('/graphql')
    .query({ query, ...(variables === undefined ? {} : { variables: JSON.stringify(variables) }) });

/** Returns the header `Cache-Control` of the response to a query. */
export async function cacheControlOf(
  app: express.Express,
  query: string,
  variables?: object,
): Promise<string | undefined> {
  const { headers, body } = await get(app, query, variables);
  if (body.errors !== undefined) throw new Error(JSON.stringify(body.errors));
  return headers['cache-control'];
}
