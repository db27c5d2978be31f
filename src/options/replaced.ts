/*
 * What people type who come from other packages, by function and group of options, with our word for it. An unknown
 * option that is not here gets the closest name of ours. Only a mistake reads the table.
 */

/** What to use in place of each of some names. The last entry counts. */
type Replacements = Readonly<Record<string, string>>;

const LIMITS: Replacements = {
  'maxDepth depthLimit queryDepth': 'use limits: { depth }',
  'maxAliases aliasLimit': 'use limits: { aliases }',
  'maxTokens maxTokensPerDocument': 'use limits: { tokens }',
  maxDirectives: 'an operation may have 200 directives, or a fifth of limits: { aliases }',
  'complexity maxComplexity complexityLimit costLimit maxCost': 'use cost: { maxCost }',
  'rateLimit rateLimiter rateLimiting throttle': 'use clientLimits, or budget: { limit, window }',
  'bodyLimit maxBodySize payloadLimit': 'use limits: { bodyBytes }, and uploads: { maxFileBytes } for files',
  'maxFileSize fileSize': 'use uploads: { maxFileBytes }',
};

const MOUNT = "mount the handler: app.use('/graphql', graphqlHTTP(schema))";
const RESOLVERS =
  'resolvers belong to the schema (makeExecutableSchema) or, with buildSchema, as functions to rootValue';
const HEALTH = 'create the server with createServer, and mount its liveness and readiness';

const GRAPHQL: Replacements = {
  ...LIMITS,
  schema: 'pass the schema as the first argument: graphqlHTTP(schema, options)',
  'Query Mutation Subscription': RESOLVERS,
  'path graphqlEndpoint endpoint routes prefix': MOUNT,
  port: 'listen with the app: app.listen(port)',
  'typeDefs resolvers modules':
    'create a GraphQLSchema, for example with makeExecutableSchema, and pass it as the first argument',
  'gateway federation federationMetadata subgraph':
    'create the schema of a subgraph with buildSubgraphSchema of @apollo/subgraph, and pass it as the first argument',
  plugins:
    'use onOperation, onResult, formatError, onError, validationRules, or the channels of node:diagnostics_channel',
  cors: 'mount the package cors before graphqlHTTP',
  'csrfPrevention csrf': 'cross-site requests are always refused; see allowedOrigins and getMutations',
  'subscriptions subscription websocket webSockets ws installSubscriptionHandlers':
    'use attachSubscriptions(server, handler)',
  'sse eventStream': 'event streams are on; eventStreams: false switches them off',
  pubsub: 'create it with createPubSub of espalier/pubsub, and use it in the subscribe resolvers',
  debug: 'errors are reported to onError; with NODE_ENV=development responses contain extensions.debug',
  logger: 'use onError for errors, and DEBUG=espalier:* for refused requests',
  'tracing telemetry': 'use EspalierInstrumentation of espalier/otel',
  'dataSources loaders':
    'create loaders in the function context, or set extensions: { resolveMany } of a field',
  stopOnTerminationSignals: 'create the server with createServer, and call server.drain() on SIGTERM',
  'healthCheckEndpoint healthCheckPath onHealthCheck readinessCheckEndpoint': HEALTH,
  'persistedQueries persistedQueryProvider automaticPersistedQueries apq':
    'use documents: { apq: true } for automatic persisted queries',
  'persistedOperations trustedDocuments onlyPersisted allowList safelist':
    "use documents: { from: 'persisted-documents.json', only: true }",
  'allowBatchedHttpRequests allowBatchedQueries batchedQueries': 'use batching: true',
  includeStacktraceInErrorResponses: 'responses never contain a stack; errors are reported to onError',
  'hideSchemaDetailsFromClientErrors blockFieldSuggestions fieldSuggestions suggestions':
    'messages suggest names only if NODE_ENV is development or test, and not with introspection: false',
  disableIntrospection: 'use introspection: false',
  'playground landingPage ide renderGraphiQL renderGraphiql': 'use graphiql',
  'cache responseCaching': 'use responseCache',
  cacheControl: 'use httpCache',
  'documentStore parserAndValidationCache parserCache validationCache documentCacheBytes':
    'prepared documents are cached; use documents: { cacheBytes }',
  maskedErrors: 'unexpected errors are always masked; change errors with formatError',
  'customFormatErrorFn errorFormatter errorHandler': 'use formatError',
  'formatResponse extensions': 'return { extensions } from onResult; use formatError for errors',
  'multipart upload fileUpload': 'use multipartUploadsEnabled',
  'customValidateFn validate': 'use validationRules',
  'customExecuteFn execute executor': 'use engine',
  'jit compilerOptions': 'remove it: documents are compiled by default',
  'onSubscribe onConnect': 'use onOperation and context, and onConnect of attachSubscriptions',
  'permissions shield authChecker authorization authDirective': 'use auth',
  'requestTimeout executionTimeout timeoutMs': 'use timeout',
  'defer deferStream incrementalDelivery': 'use incremental',
  pretty: 'remove it: responses are never indented',
};

const REDIS = "use transport: a URL such as 'redis://localhost:6379', a client, or redis(url, options)";
const TTL = "use ttl: a duration such as '5m'";
const OF_HANDLER = 'the endpoint has that of graphqlHTTP; set it there';

const UPLOADS: Replacements = {
  'maxFileSize fileSize': 'use maxFileBytes',
  'maxRequestSize maxTotalFileSize': 'use maxRequestBytes',
  'maxFieldSize maxFieldsSize': 'use maxFieldBytes',
  'tmpdir tmpDir tempFileDir uploadDir': 'use tempDir',
  'fileFilter filter': 'use accept',
  preservePath: 'filename never has a path',
};

/** The tables by the name of the function and, after a dot, the group of options. */
export const REPLACED_OPTIONS: Readonly<Record<string, Replacements>> = {
  graphqlHTTP: GRAPHQL,
  'graphqlHTTP.limits': LIMITS,
  'graphqlHTTP.uploads': {
    ...UPLOADS,
    'maxFieldSize maxFieldsSize maxFieldBytes': 'use limits: { bodyBytes }',
    'memoryPerFile memoryTotal': 'use memoryBytes',
  },
  'graphqlHTTP.graphiql': {
    headerEditorEnabled: 'visitors can always edit headers',
    shouldPersistHeaders: 'headers are not stored, because they often contain a token',
    'headers defaultHeaders': 'visitors enter headers in the page, which does not store them',
    title: 'remove it: the title is GraphiQL',
    'subscriptions subscriptionsProtocol': 'use graphiql.subscriptionEndpoint, which may be false',
    websocketClient: 'remove it: the page knows both subprotocols',
    query: 'use graphiql.defaultQuery',
    'cdn cdnUrl embed': 'remove it: the page loads nothing from other hosts',
  },
  'graphqlHTTP.budget': {
    'max points limitPerWindow maxCost': 'use budget.limit',
    'windowMs duration': 'use budget.window',
    'keyGenerator identifyContext identifyFn': 'use budget.key',
    'store redisClient': 'use budget.redis',
  },
  'graphqlHTTP.clientLimits': { 'keyGenerator identifyContext': 'use clientLimits.key' },
  'graphqlHTTP.cost': {
    'maximumCost maxComplexity max limit': 'use cost.maxCost',
    header: 'remove it: responses have the header GraphQL-Cost',
  },
  'graphqlHTTP.documents': {
    'onlyPersisted allowOnly required': 'use documents.only',
    'store persistedQueries manifest getPersistedOperation': 'use documents.from',
    ttl: 'remove it: Redis keeps a query for a day after each registration',
  },
  'graphqlHTTP.responseCache': {
    'session sessionId buildResponseCacheKey': 'use responseCache.key',
    'ttl ttlPerType ttlPerSchemaCoordinate': 'the lifetime is that of the directive @cacheControl',
    'cache redis': 'use responseCache.store',
    'max maxSize': 'use responseCache.maxBytes',
  },
  'graphqlHTTP.httpCache': {
    'maxAge ttl': 'use httpCache.defaultMaxAge',
    vary: 'set the header in earlier middleware: res.vary(name)',
  },
  attachSubscriptions: {
    schema: 'pass the handler or the schema as the second argument: attachSubscriptions(server, handler)',
    'server wsServer noServer': 'pass the server as the first argument: attachSubscriptions(server, handler)',
    roots: 'use rootValue of graphqlHTTP, and pass the handler as the second argument',
    'execute subscribe': 'use engine of graphqlHTTP, and pass the handler as the second argument',
    'onSubscribe onOperationStart onOperation':
      'use onOperation of graphqlHTTP, whose "transport" is "websocket", and pass the handler',
    'onError subscriptionProtocols': 'use that of graphqlHTTP, and pass the handler',
    onDisconnect: 'use onClose(connection, { code, reason, accepted })',
    onNext: 'use formatError of graphqlHTTP, or its onOperation to add extensions',
    'onComplete onOperationComplete':
      'use the channel espalier:graphql:stream-end of node:diagnostics_channel',
    'maxPayload maxPayloadLength': 'use limits: { messageBytes }',
    connectionInitWaitTimeout: 'use limits: { initTimeout }',
    'maxConnections connectionLimit': 'use limits: { connections }',
    maxBackpressure: 'use limits: { bufferedBytes }',
    verifyClient: 'use middleware, or onConnect',
    'keepAlive heartbeat heartbeatInterval pingInterval keepAliveInterval': 'use ping',
    cors: 'use allowedOrigins',
    pubsub: 'create it with createPubSub of espalier/pubsub, and use it in the subscribe resolvers',
  },
  staticFiles: {
    hidden: "use dotfiles: 'allow'",
    'root dir directory path public': 'pass the directory as the first argument',
    gzip: "use precompressed: ['gzip']",
    'brotli enableBrotli': "use precompressed: ['br']",
    zstd: "use precompressed: ['zstd']",
    'preCompressed gzipStatic gzip_static serveGzip': 'use precompressed: true',
    compression: 'use compress',
    'single spa singlePage historyApiFallback tryFiles try_files': "use fallback: 'index.html'",
    prefix: "mount the middleware with app.use('/prefix', staticFiles(dir))",
    'serveIndex directoryListing list autoindex browse showDir': 'use listing: true',
    'trailingSlash urls': "use cleanUrls: 'no-slash' or 'slash'",
    immutable: "use cacheControl: 'immutable', the name of a build tool, or a RegExp such as /^\\/assets\\//",
    redirect: 'remove it: folders redirect only when they are pages, with the option html',
    lastModified: 'remove it: Last-Modified is always sent',
    acceptRanges: 'remove it; to ignore ranges, delete req.headers.range before',
    defaultExtension: 'use extensions, or cleanUrls',
    rewrites: 'use fallback for a single-page app, and rules for redirects',
    'redirects headers customHeaders': 'use rules: { redirects, headers }, or setHeaders',
    'dev watch': 'remove it: files are always current',
    'ignores ignore': 'remove it: only navigations of pages get the fallback',
    onNoMatch: 'use fallthrough and the next handler',
    'maxAge maxage cacheTime ttl expires': "use cacheControl: '1h', with a unit",
    'weakEtags weakEtag': "use etag: 'stat'",
    followSymlinks: "use symlinks: 'follow'",
    'contentSecurityPolicy csp': 'use pages: { csp: true }',
    'auth basicAuth authorize': 'mount middleware that checks the user before staticFiles',
    cors: 'mount the package cors before staticFiles',
    secret: 'use signed: { keys }',
    'wildcard decorateReply': 'remove it',
  },
  receiveFiles: {
    ...UPLOADS,
    'dest destination createParentPath': 'save the files that you keep with saveTo',
    limits: 'use maxFileBytes, maxFiles, maxFieldBytes and maxRequestBytes',
    maxFields: 'remove it: a form may have 1000 fields',
    'maxCount multiples': 'use files: { photo: 3 }, with the most files of each field',
    useTempFiles: "use storage: 'spool', which is the default",
    'abortOnLimit safeFileNames': 'remove it: this is always so',
    streaming: 'use storage: a function gets each file while it arrives',
  },
  createPubSub: {
    'redis host port url redisUrl client connection publisher subscriber eventTarget': REDIS,
    prefix: 'use transport: redis(url, { prefix })',
    sharded: 'use transport: redis(url, { sharded })',
    heartbeat: 'use transport: redis(url, { heartbeat })',
    commandTimeout: 'use transport: redis(url, { commandTimeout })',
    'pool postgres connectionString': 'use transport: postgres(pool) of espalier/postgres',
    'nats kafka mqtt': 'use transport, with an object that carries events',
    'serializer reviver messageEncoder': 'remove it: payloads are JSON',
    file: 'use transport: file(path)',
  },
  'createPubSub.history': { file: 'use transport: file(path)', 'age maxAge': TTL },
  redis: { history: "use history of createPubSub: { transport: redis(url), history: { ttl: '1h' } }" },
  postgres: {
    history: "use history of createPubSub: { transport: postgres(pool), history: { ttl: '1h' } }",
    prefix: 'applications with one database need different values of "schema"',
  },
  mcp: { 'allowedOrigins allowedHosts': OF_HANDLER },
  'graphqlHTTP.idempotency': { store: 'use redis', retention: 'use ttl' },
  createServer: {
    'https tls ssl': 'pass its members: createServer(app, { key, cert })',
    port: 'pass it to listen: createServer(app).listen(port)',
    host: 'pass it to listen: createServer(app).listen(port, host)',
    hostname: 'pass it to listen: createServer(app).listen(port, hostname)',
    path: 'pass it to listen: createServer(app).listen(path)',
    'healthChecks detectKubernetes onHealthCheck': 'use checks, and mount server.readiness',
    'signal signals onSignal beforeShutdown': 'call server.drain() on SIGTERM',
  },
  inject: {
    url: 'use "path"',
    payload: 'use "body"',
    document: 'use "query"',
    remoteIP: 'use "remoteAddress"',
  },
  subscribe: { url: 'use "path"', document: 'use "query"', remoteIP: 'use "remoteAddress"' },
};

/** Returns what to use in place of an unknown option of a group; undefined if the table does not have it. */
export const replacementOf = (group: string, name: string): string | undefined =>
  Object.entries(REPLACED_OPTIONS[group] ?? {}).findLast(([names]) => names.split(' ').includes(name))?.[1];
