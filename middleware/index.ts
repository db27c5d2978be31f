export type { Middleware, NextFunction } from '../types/connect.ts';
export type { GraphQLOptions } from '../types/graphql.ts';
export { graphqlHTTP, Method } from './graphql.ts';
export { createServer } from './server.ts';
