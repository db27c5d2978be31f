export type { Middleware, NextFunction } from '../types/connect.ts';
export type { GraphQLHandler, GraphQLOptions } from '../types/graphql.ts';
export type {
  SubscriptionConnection,
  SubscriptionOptions,
  SubscriptionProtocol,
  SubscriptionStats,
  Subscriptions,
  WebSocketLike,
} from '../types/subscriptions.ts';
export { graphqlHTTP, Method } from './graphql.ts';
export { createServer } from './server.ts';
export { attachSubscriptions } from './subscriptions.ts';
