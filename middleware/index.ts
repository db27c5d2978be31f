export type { Middleware, NextFunction } from '../types/connect.ts';
export type { GraphiQLGate, GraphiQLOption, GraphiQLOptions } from '../types/graphiql.ts';
export type {
  DocumentLimits,
  ExecuteFunction,
  GraphQLHandler,
  GraphQLLimits,
  GraphQLOptions,
  GraphQLRequest,
  OpenApiFragment,
  SchemaSource,
} from '../types/graphql.ts';
export type {
  SubscriptionConnection,
  SubscriptionOptions,
  SubscriptionProtocol,
  SubscriptionStats,
  Subscriptions,
  WebSocketLike,
} from '../types/subscriptions.ts';
export type { UploadedFile, UploadedFileInfo, UploadOptions, UploadReadOptions } from '../types/uploads.ts';
export { graphqlHTTP, Method, Upload } from './graphql.ts';
export { createServer } from './server.ts';
export type { Precompressed, StaticCacheOptions, StaticFilesOptions } from './static.ts';
export { staticFiles } from './static.ts';
export { attachSubscriptions } from './subscriptions.ts';
