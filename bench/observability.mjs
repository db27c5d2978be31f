// espalier/otel and espalier/inspect compared with a handler that reports nothing: a small query over POST, under Express.
import { runTopic } from './harness.mjs';
import { startTelemetry } from './lib/telemetry.mjs';

process.env.NODE_ENV = 'production';

const query = 'query Greet { hello }';

async function makeApp({ before = () => undefined, wrap = (handler) => handler } = {}) {
  const [{ default: express }, { graphqlHTTP }, { buildSchema }] = await Promise.all([
    import('express'),
    import('espalier'),
    import('graphql'),
  ]);
  const app = express();
  await before(app);
  const schema = buildSchema('type Query { hello: String! }');
  schema.getQueryType().getFields().hello.resolve = () => 'world';
  return app.use('/graphql', wrap(graphqlHTTP(schema)));
}

const observed = (options, sdk) => () =>
  makeApp({
    before: async () => {
      await startTelemetry(sdk);
      const { EspalierInstrumentation } = await import('espalier/otel');
      new EspalierInstrumentation(options);
    },
  });

/**
 * The least that any instrumentation does: a span that is active during the request, and one duration. Times have the form
 * that the SDK stores, because it reads a clock for each other one.
 */
async function makeAppWithSdk() {
  const { context, metrics, trace } = await startTelemetry();
  const tracer = trace.getTracer('alone');
  const durations = metrics.getMeter('alone').createHistogram('duration', { unit: 's' });
  const type = { 'graphql.operation.type': 'query' };
  const attributes = {
    'graphql.processing.type': 'request',
    ...type,
    'graphql.operation.name': 'Greet',
    'graphql.document.hash': `sha256:${'0'.repeat(64)}`,
  };
  const origin = performance.timeOrigin;
  const toTime = (milliseconds) => {
    const seconds = Math.floor((origin + milliseconds) / 1000);
    return [seconds, Math.round((origin + milliseconds - seconds * 1000) * 1e6)];
  };
  const wrap = (handle) => (req, res, next) => {
    const started = performance.now();
    const parent = context.active();
    const span = tracer.startSpan('query', { kind: 1, attributes, startTime: toTime(started) }, parent);
    context.with(trace.setSpan(parent, span), handle, undefined, req, res, next);
    const ended = performance.now();
    durations.record((ended - started) / 1000, type);
    span.end(toTime(ended));
  };
  return makeApp({ wrap });
}

/** Creates a server with the classes of `createServer`, which need less CPU time. */
const onServer = (app) => async () => (await import('espalier')).createServer(await app());

const contestants = {
  off: () => makeApp(),
  'the SDK alone': makeAppWithSdk,
  'espalier/otel': observed({}),
  'espalier/otel, 10 % sampled': observed({}, { share: 0.1 }),
  'espalier/otel, with phases': observed({ spans: ['phases', 'events', 'files', 'uploads', 'pubsub'] }),
  'espalier/inspect': () =>
    makeApp({
      before: async (app) => {
        const { inspect } = await import('espalier/inspect');
        app.use('/inspect', inspect({ guard: () => true }));
      },
    }),
};

export const topic = {
  name: 'observability',
  title: 'espalier/otel and espalier/inspect',
  about:
    'One POST of a small query per request, under Express. "espalier/otel" creates spans and metrics with the SDK of ' +
    'OpenTelemetry: always sampled, AsyncLocalStorage as context manager, batches that an exporter discards. "The SDK ' +
    'alone" is a function around the handler that creates one span, which is active during the request, and records one ' +
    'duration.',
  packages: [
    'express',
    'graphql',
    '@opentelemetry/api',
    '@opentelemetry/sdk-trace-base',
    '@opentelemetry/sdk-metrics',
  ],
  ratios: ['off', 'off, createServer'],
  contestants: {
    ...contestants,
    'off, createServer': onServer(contestants.off),
    'espalier/otel, createServer': onServer(contestants['espalier/otel']),
  },
  loads: [
    {
      name: 'a small query',
      // Processes of one contestant differ by up to 15 % of CPU time. V8 compiles during the first requests.
      fresh: true,
      warmup: 40000,
      requests: [
        {
          method: 'POST',
          path: '/graphql',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ query }),
        },
      ],
      expect: { status: 200, body: '{"data":{"hello":"world"}}' },
    },
  ],
};

await runTopic(import.meta.url, topic);
