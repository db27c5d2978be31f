// The pages of docs/ in the order of the sidebar: [text, path below docs/]. A test compares the list with the folder.

export const PARTS = [
  {
    text: 'Introduction',
    pages: [
      ['Overview', 'README.md'],
      ['Tutorial', 'tutorial.md'],
      ['How it works', 'how-it-works.md'],
      ['Words of other packages', 'other-words.md'],
      ['How this is tested', 'how-this-is-tested.md'],
    ],
  },
  {
    text: 'Static files',
    pages: [
      ['Static files', 'static-files.md'],
      ['HTML pages', 'pages.md'],
      ['Assets of earlier builds', 'earlier-builds.md'],
      ['Markdown, AVIF, WebP', 'variants.md'],
      ['Several sites on one server', 'static-sites.md'],
      ['Redirects and headers', 'static-rules.md'],
      ['Compressing files', 'static-compression.md'],
      ['Memory and other sources', 'static-sources.md'],
      ['Files from forms', 'receive-files.md'],
      ['Serving files of users', 'user-files.md'],
      ['Static files behind a CDN', 'static-cdn.md'],
      ['Video and large files', 'static-video.md'],
      ['Freshness and safety', 'static-freshness.md'],
    ],
  },
  {
    text: 'GraphQL',
    pages: [
      ['GraphQL over HTTP', 'graphql.md'],
      ['Requests and responses', 'http.md'],
      ['Limits', 'limits.md'],
      ['Uploads', 'uploads.md'],
      ['Uploads to object storage', 'object-storage.md'],
      ['Streaming', 'streaming.md'],
      ['GraphiQL', 'graphiql.md'],
      ['Documents by id', 'documents.md'],
      ['Tools for agents (MCP)', 'mcp.md'],
      ['Operating a schema', 'usage.md'],
      ['Caching', 'caching.md'],
      ['Response cache', 'response-cache.md'],
      ['Compression', 'compression.md'],
      ['Mutations that clients repeat', 'idempotency.md'],
      ['Cost and budgets', 'cost.md'],
      ['Limits for each client', 'rate-limits.md'],
      ['Hooks per operation', 'operation-hook.md'],
      ['Operations of your own code', 'execute.md'],
      ['Compiled engine', 'engine.md'],
    ],
  },
  {
    text: 'Subscriptions',
    pages: [
      ['Subscriptions', 'subscriptions.md'],
      ['Sign-in and context', 'subscription-context.md'],
      ['Many subscribers', 'subscription-sharing.md'],
      ['Other WebSockets', 'other-websockets.md'],
      ['Scaling out', 'scaling.md'],
      ['Capacity', 'capacity.md'],
      ['Who is there', 'presence.md'],
      ['Connect to Redis', 'redis.md'],
      ['Transports for events', 'events.md'],
      ['Event history', 'history.md'],
      ['Resuming subscriptions', 'resume.md'],
    ],
  },
  {
    text: 'Guides',
    pages: [
      ['Who is calling', 'caller.md'],
      ['Authentication', 'authentication.md'],
      ['Login with a cookie', 'login-cookie.md'],
      ['Authorization', 'authorization.md'],
      ['CORS and dev servers', 'cors.md'],
      ['Clients', 'clients.md'],
      ['DataLoader, Prisma, Drizzle', 'dataloader.md'],
      ['Pagination', 'pagination.md'],
      ['Federation', 'federation.md'],
      ['Pothos', 'pothos.md'],
      ['Schema libraries', 'schema-libraries.md'],
      ['NestJS', 'nestjs.md'],
      ['Next.js, Vite, Angular', 'frameworks.md'],
      ['Recipes', 'recipes.md'],
      ['Testing', 'testing.md'],
      ['Errors and logging', 'errors.md'],
      ['Error codes', 'error-codes.md'],
      ['Troubleshooting', 'troubleshooting.md'],
    ],
  },
  {
    text: 'Production',
    pages: [
      ['createServer', 'server.md'],
      ['Security', 'security.md'],
      ['Deployment', 'deployment.md'],
      ['Docker and Kubernetes', 'containers.md'],
      ['Serverless functions', 'serverless.md'],
      ['Observability', 'observability.md'],
      ['One log line per operation', 'logging.md'],
      ['OpenTelemetry', 'opentelemetry.md'],
      ['Sentry', 'sentry.md'],
      ['Live figures', 'inspect.md'],
      ['Diagnostics channels', 'diagnostics-channels.md'],
      ['Health checks', 'health.md'],
    ],
  },
  {
    text: 'Migrating',
    pages: [
      ['Overview', 'migrating.md'],
      ['From express.static', 'migrating/express-static.md'],
      ['From Netlify, Cloudflare, nginx', 'migrating/static-hosts.md'],
      ['From sirv', 'migrating/sirv.md'],
      ['From express-graphql', 'migrating/express-graphql.md'],
      ['From graphql-http', 'migrating/graphql-http.md'],
      ['From Apollo Server', 'migrating/apollo-server.md'],
      ['From GraphQL Yoga', 'migrating/graphql-yoga.md'],
      ['From mercurius', 'migrating/mercurius.md'],
      ['From graphql-upload', 'migrating/graphql-upload.md'],
      ['From multer', 'migrating/multer.md'],
      ['From graphql-ws', 'migrating/graphql-ws.md'],
      ['From graphql-sse', 'migrating/graphql-sse.md'],
      ['From Envelop plugins', 'migrating/envelop.md'],
    ],
  },
  {
    text: 'Benchmarks',
    pages: [
      ['Overview', 'benchmarks.md'],
      ['Static files', 'benchmarks/static-files.md'],
      ['GraphQL', 'benchmarks/graphql.md'],
      ['Subscriptions', 'benchmarks/subscriptions.md'],
      ['createServer', 'benchmarks/server.md'],
      ['Uploads and GraphiQL', 'benchmarks/other.md'],
    ],
  },
];

/** Every page that the sidebar lists, without those of the API reference. */
export const LISTED = PARTS.flatMap(({ pages }) => pages.map(([, file]) => file));

/** The sidebar of VitePress for the files that exist. Unlisted files of an older version come last. */
export function sidebarOf(files) {
  const link = (file) => `/${file.replace(/(?:README|index)\.md$/, '').replace(/\.md$/, '')}`;
  const item = ([text, file]) => ({ text, link: link(file) });
  const reference = files.filter((file) => file.startsWith('api/')).sort();
  const entry = (file) =>
    `espalier${file === 'api/espalier.md' ? '' : `/${file.slice('api/'.length, -'.md'.length)}`}`;
  const groups = PARTS.map(({ text, pages }) => ({
    text,
    items: pages.filter(([, file]) => files.includes(file)).map(item),
  }));
  groups.push({
    text: 'Reference',
    items: [
      item(['API', 'api/README.md']),
      ...reference.filter((file) => file !== 'api/README.md').map((file) => item([entry(file), file])),
      { text: 'Error codes', link: '/error-codes' },
    ],
  });
  const unlisted = files.filter((file) => !LISTED.includes(file) && !reference.includes(file));
  if (unlisted.length > 0) {
    groups.push({
      text: 'More',
      items: unlisted.map((file) => item([file.replace(/\.md$/, ''), file])),
    });
  }
  return groups;
}
