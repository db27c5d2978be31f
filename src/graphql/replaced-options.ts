const RESOLVERS =
  'resolvers belong to the schema (makeExecutableSchema) or, with buildSchema, as functions to rootValue';
const PROTECTION = 'cross-site requests are always refused; see trustedOrigins and getMutations';
const TRUSTED = "use documents: { from: 'persisted-documents.json', only: true }";
const STOP = 'create the server with createServer, and call server.drain() on SIGTERM';
const BODY = 'use limits: { bodyBytes }, and uploads: { maxFileSize } for files';
const SCHEMA =
  'create a GraphQLSchema, for example with makeExecutableSchema, and pass it as the first argument';

/** Options of Apollo Server, Yoga, graphql-http and express-graphql, each with its replacement. */
export const REPLACED_OPTIONS: Readonly<Record<string, string>> = {
  schema: 'pass the schema as the first argument: graphqlHTTP(schema, options)',
  Query: RESOLVERS,
  Mutation: RESOLVERS,
  Subscription: RESOLVERS,
  path: "mount the handler: app.use('/graphql', graphqlHTTP(schema))",
  port: 'listen with the app: app.listen(port)',
  // Apollo Server
  typeDefs: SCHEMA,
  resolvers: SCHEMA,
  plugins:
    'use onOperation, formatError, onError, validationRules, or the channels of node:diagnostics_channel',
  cors: 'mount the package cors before graphqlHTTP',
  csrfPrevention: PROTECTION,
  csrf: PROTECTION,
  subscriptions: 'use attachSubscriptions(server, handler)',
  playground: 'use graphiql',
  debug: 'errors are reported to onError; outside production responses contain extensions.debug',
  logger: 'use onError for errors, and DEBUG=espalier:* for refused requests',
  tracing: 'use espalier/otel',
  dataSources: 'create them in the function context',
  documentStore: 'documents are cached; documentCacheBytes sets the limit',
  stopOnTerminationSignals: STOP,
  nodeEnv: 'set the environment variable NODE_ENV',
  persistedQueries: 'use documents: { apq: true } for automatic persisted queries',
  allowBatchedHttpRequests: 'use batching: true',
  includeStacktraceInErrorResponses: 'responses never contain a stack; errors are reported to onError',
  hideSchemaDetailsFromClientErrors: 'use suggestions: false',
  gateway: 'federation is not supported',
  // Yoga
  maskedErrors: 'unexpected errors are always masked; change errors with formatError',
  graphqlEndpoint: "mount the handler: app.use('/graphql', graphqlHTTP(schema))",
  landingPage: 'use graphiql',
  logging: 'use onError for errors, and DEBUG=espalier:* for refused requests',
  multipart: 'use multipartUploadsEnabled',
  // express-graphql and graphql-http
  customFormatErrorFn: 'use formatError',
  customValidateFn: 'use validationRules',
  customExecuteFn: 'use engine',
  customParseFn: 'documents are parsed by graphql-js; limits bound them',
  execute: 'use engine',
  extensions: 'return { extensions } from onOperation; use formatError for errors',
  onSubscribe: 'use onOperation, context, validationRules or engine',
  // Express, body-parser and Fastify
  bodyLimit: BODY,
  maxBodySize: BODY,
  limit: BODY,
  timeout:
    'bodies have limits: { bodyTimeout }; to end a slow operation, use AbortSignal.timeout in its resolvers',
  // attachSubscriptions
  allowedOrigins:
    'it belongs to attachSubscriptions; trustedOrigins is for requests over HTTP, and the package cors for CORS',
  // graphql-sse
  sse: 'server-sent events are on: clients send Accept: text/event-stream',
  // mercurius
  jit: 'operations are compiled; see engine',
  ide: 'use graphiql',
  loaders: 'create a DataLoader per request in the function context',
  queryDepth: 'use limits: { depth }',
  errorHandler: 'use formatError, and onError for reports',
  errorFormatter: 'use formatError',
  allowBatchedQueries: 'use batching: true',
  onlyPersisted: TRUSTED,
  persistedOperations: TRUSTED,
  // graphql-upload, graphql-depth-limit and graphql-armor
  maxFileSize: 'use uploads: { maxFileSize }',
  maxFiles: 'use uploads: { maxFiles }',
  maxDepth: 'use limits: { depth }',
  maxAliases: 'use limits: { aliases }',
  maxTokens: 'use limits: { tokens }',
  costLimit: 'use cost: { maxCost }',
};
