// espalier/otel and espalier/inspect compared with a handler that reports nothing: a small query over POST, under Express.
import { runTopic } from './harness.mjs';

process.env.NODE_ENV = 'production';

const query = 'query Greet { hello }';

async function makeApp(before = () => undefined) {
  const [{ default: express }, { graphqlHTTP }, { buildSchema }] = await Promise.all([
    import('express'),
    import('espalier'),
    import('graphql'),
  ]);
  const app = express();
  await before(app);
  const schema = buildSchema('type Query { hello: String! }');
  schema.getQueryType().getFields().hello.resolve = () => 'world';
  return app.use('/graphql', graphqlHTTP(schema));
}

/** The SDK of OpenTelemetry with exporters that discard everything. */
async function startTelemetry() {
  const [api, hooks, core, traces, metrics, { EspalierInstrumentation }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/context-async-hooks'),
    import('@opentelemetry/core'),
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/sdk-metrics'),
    import('espalier/otel'),
  ]);
  const discard = {
    export: (_, done) => done({ code: 0 }),
    shutdown: async () => {},
    forceFlush: async () => {},
  };
  api.context.setGlobalContextManager(new hooks.AsyncLocalStorageContextManager().enable());
  api.propagation.setGlobalPropagator(new core.W3CTraceContextPropagator());
  api.trace.setGlobalTracerProvider(
    new traces.BasicTracerProvider({ spanProcessors: [new traces.BatchSpanProcessor(discard)] }),
  );
  const exporter = { ...discard, selectAggregationTemporality: () => 1 };
  const reader = new metrics.PeriodicExportingMetricReader({ exporter });
  api.metrics.setGlobalMeterProvider(new metrics.MeterProvider({ readers: [reader] }));
  return (options) => new EspalierInstrumentation(options);
}

const observed = (options) => () => makeApp(async () => (await startTelemetry())(options));

/** Creates a server with the classes of `createServer`, which need less CPU time. */
const onServer = (app) => async () => (await import('espalier')).createServer(await app());

const contestants = {
  off: () => makeApp(),
  'espalier/otel': observed({}),
  'espalier/otel, without phases': observed({ spans: { phases: false } }),
  'espalier/inspect': () =>
    makeApp(async (app) => {
      const { inspect } = await import('espalier/inspect');
      app.use('/inspect', inspect({ guard: () => true }));
    }),
};

export const topic = {
  name: 'observability',
  title: 'espalier/otel and espalier/inspect',
  about:
    'One POST of a small query per request, under Express. "espalier/otel" creates all spans and metrics with the SDK of ' +
    'OpenTelemetry: always sampled, AsyncLocalStorage as context manager, batches that an exporter discards.',
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
