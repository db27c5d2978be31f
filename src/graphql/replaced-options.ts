const SCHEMA =
  'create a GraphQLSchema, for example with makeExecutableSchema, and pass it as the first argument';

/** Options of Apollo Server, Yoga, graphql-http and express-graphql, each with its replacement. */
export const REPLACED_OPTIONS: Readonly<Record<string, string>> = {
  schema: 'pass the schema as the first argument: graphqlHTTP(schema, options)',
  // Apollo Server
  typeDefs: SCHEMA,
  resolvers: SCHEMA,
  plugins:
    'use onOperation, formatError, onError, validationRules, or the channels of node:diagnostics_channel',
  cors: 'mount the package cors before graphqlHTTP',
  csrfPrevention: 'cross-site requests are always refused; see trustedOrigins and getMutations',
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
};
