import type { OptionScope } from './rules.ts';

// The scope of each group of options, for error messages and the link to its page in docs/.

export const STATIC_OPTIONS: OptionScope = {
  name: 'staticFiles',
  page: 'static-files',
  example:
    "{ html: true }, or a boolean. The path of the mount belongs to app.use('/path', staticFiles(dir))",
};
export const MEMORY_FILES: OptionScope = { name: 'memoryFiles', page: 'static-files' };
export const GRAPHQL_OPTIONS: OptionScope = { name: 'graphqlHTTP', page: 'graphql' };
export const CURSOR_OPTIONS: OptionScope = { ...GRAPHQL_OPTIONS, within: 'cursors' };
export const RESOLVE_MANY: OptionScope = { name: 'extensions.resolveMany', page: 'dataloader' };
export const RESOLVE_REFERENCES: OptionScope = { name: 'resolveReferences', page: 'federation' };
export const CACHING_OPTIONS: OptionScope = { ...GRAPHQL_OPTIONS, page: 'caching', within: 'httpCache' };
export const GRAPHIQL_OPTIONS: OptionScope = { name: 'graphqlHTTP', page: 'graphiql', within: 'graphiql' };
export const DOCUMENT_OPTIONS: OptionScope = { name: 'graphqlHTTP', page: 'documents', within: 'documents' };
export const PERSISTED_QUERY_OPTIONS: OptionScope = { ...DOCUMENT_OPTIONS, within: 'documents.apq' };
export const UPLOAD_OPTIONS: OptionScope = { name: 'graphqlHTTP', page: 'uploads', within: 'uploads' };
export const RECEIVE_FILES: OptionScope = {
  name: 'receiveFiles',
  page: 'receive-files',
  example: '{ files: { photo: 1 } }',
};
export const AUTH_OPTIONS: OptionScope = { name: 'graphqlHTTP', page: 'authorization', within: 'auth' };
export const IDEMPOTENCY_OPTIONS: OptionScope = {
  ...GRAPHQL_OPTIONS,
  page: 'idempotency',
  within: 'idempotency',
};
export const COST_OPTIONS: OptionScope = { name: 'graphqlHTTP', page: 'cost', within: 'cost' };
export const USAGE_OPTIONS: OptionScope = { name: 'graphqlHTTP', page: 'usage', within: 'usage' };
export const BUDGET_OPTIONS: OptionScope = { name: 'graphqlHTTP', page: 'cost', within: 'budget' };
export const CLIENT_LIMITS: OptionScope = {
  ...GRAPHQL_OPTIONS,
  page: 'rate-limits',
  within: 'clientLimits',
};
export const SUBSCRIPTION_OPTIONS: OptionScope = {
  name: 'attachSubscriptions',
  page: 'subscriptions',
  example: "{ path: '/graphql' }",
};
export const SERVER_OPTIONS: OptionScope = { name: 'createServer', page: 'server' };
export const PUBSUB_OPTIONS: OptionScope = {
  name: 'createPubSub',
  page: 'scaling',
  example: "{ transport: 'redis://localhost:6379' }",
};
export const REDIS_OPTIONS: OptionScope = { name: 'redis', page: 'redis', example: "{ prefix: 'shop:' }" };
export const FILE_OPTIONS: OptionScope = { name: 'file', page: 'events' };
export const HISTORY_OPTIONS: OptionScope = { name: 'createPubSub', page: 'scaling', within: 'history' };
export const PRESENCE_OPTIONS: OptionScope = {
  name: 'presence',
  page: 'presence',
  example: "{ ttl: '30s' }",
};
export const MCP_OPTIONS: OptionScope = { name: 'mcp', page: 'mcp' };
export const POSTGRES_OPTIONS: OptionScope = { name: 'postgres', page: 'events' };
export const INJECT_OPTIONS: OptionScope = { name: 'inject', page: 'testing' };
export const SUBSCRIBE_OPTIONS: OptionScope = { name: 'subscribe', page: 'testing' };
export const TRANSPORT_TEST_OPTIONS: OptionScope = { name: 'testTransport', page: 'events' };
export const OTEL_OPTIONS: OptionScope = { name: 'EspalierInstrumentation', page: 'observability' };
export const INSPECT_OPTIONS: OptionScope = { name: 'inspect', page: 'observability' };
export const CACHE_OPTIONS: OptionScope = { name: 'graphqlHTTP', page: 'caching', within: 'responseCache' };
export const REDIS_STORE_OPTIONS: OptionScope = {
  name: 'redisStore',
  page: 'caching',
  example: "{ redis: 'redis://localhost:6379' }",
};
export const INVALIDATOR_OPTIONS: OptionScope = { name: 'createInvalidator', page: 'caching' };
