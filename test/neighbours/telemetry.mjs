// Serves one request with espalier/otel and other telemetry in the same process, and prints what they recorded.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const [mode] = process.argv.slice(2);
const warnings = [];
process.on('warning', ({ code, message }) => warnings.push({ code, message }));

const describe = (span) => ({
  name: span.name,
  kind: span.kind,
  id: span.spanContext().spanId,
  trace: span.spanContext().traceId,
  parent: span.parentSpanContext?.spanId,
  attributes: span.attributes,
});

/** Registers instrumentations with a provider whose spans stay in memory. */
function register(...instrumentations) {
  const { trace } = require('@opentelemetry/api');
  const { AsyncLocalStorageContextManager } = require('@opentelemetry/context-async-hooks');
  const { registerInstrumentations } = require('@opentelemetry/instrumentation');
  const { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } = require('@opentelemetry/sdk-trace');
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  trace.setGlobalTracerProvider(provider);
  require('@opentelemetry/api').context.setGlobalContextManager(new AsyncLocalStorageContextManager());
  registerInstrumentations({ instrumentations, tracerProvider: provider });
  return () => exporter.getFinishedSpans().map(describe);
}

/** Starts the telemetry. Each function returns a function that reads what was recorded. */
const MODES = {
  instrumentations() {
    const { EspalierInstrumentation } = require('espalier/otel');
    const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http');
    const { ExpressInstrumentation } = require('@opentelemetry/instrumentation-express');
    return register(new HttpInstrumentation(), new ExpressInstrumentation(), new EspalierInstrumentation());
  },
  sentry() {
    const Sentry = require('@sentry/node');
    const { EspalierInstrumentation } = require('espalier/otel');
    const readSpans = register(new EspalierInstrumentation());
    const events = [];
    Sentry.init({
      dsn: 'http://key@127.0.0.1:1/1',
      integrations: [Sentry.openTelemetryIntegration()],
      beforeSend(event) {
        events.push({ message: event.message, trace: event.contexts.trace });
        return null;
      },
    });
    onResolve = () => Sentry.captureMessage('in a resolver');
    return async () => {
      await Sentry.flush(1000);
      return { spans: readSpans(), events };
    };
  },
  prometheus() {
    const { EspalierInstrumentation } = require('espalier/otel');
    const { metrics } = require('@opentelemetry/api');
    const { MeterProvider } = require('@opentelemetry/sdk-metrics');
    const { PrometheusExporter } = require('@opentelemetry/exporter-prometheus');
    const reader = new PrometheusExporter({ port: 0, preventServerStart: true });
    metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
    new EspalierInstrumentation({ names: ['Greet'] });
    return async () => {
      const scraped = createServer((req, res) => reader.getMetricsRequestHandler(req, res)).listen(
        0,
        '127.0.0.1',
      );
      await once(scraped, 'listening');
      return (await fetch(`http://127.0.0.1:${scraped.address().port}/metrics`)).text();
    };
  },
  graphql() {
    const { GraphQLInstrumentation } = require('@opentelemetry/instrumentation-graphql');
    const { EspalierInstrumentation } = require('espalier/otel');
    return register(new GraphQLInstrumentation(), new EspalierInstrumentation());
  },
};

let onResolve = () => undefined;
const read = MODES[mode]();
const express = require('express');
const { buildSchema } = require('graphql');
const { trace } = require('@opentelemetry/api');
const { graphqlHTTP } = require('espalier/graphql');
const active = [];
const rootValue = {
  hello: async () => {
    await new Promise(setImmediate);
    onResolve();
    active.push(trace.getActiveSpan()?.spanContext().spanId);
    return 'world';
  },
};
const app = express().use(
  '/graphql',
  graphqlHTTP(buildSchema('type Query { hello: String }'), { rootValue }),
);
const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${server.address().port}/graphql`;
const body = JSON.stringify({ query: 'query Greet { hello }' });
const headers = { 'content-type': 'application/json' };
const results = [];
for (let turn = 0; turn < 2; turn++)
  results.push(await (await fetch(url, { method: 'POST', headers, body })).json());
await new Promise((resolve) => setTimeout(resolve, 100));
process.stdout.write(JSON.stringify({ results, active, warnings, recorded: await read() }));
process.exit();
