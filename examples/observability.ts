// Spans of OpenTelemetry, and metrics of prom-client: `npx tsx examples/observability.ts`, then /metrics.
import { subscribe } from 'node:diagnostics_channel';
import { trace } from '@opentelemetry/api';
import { BasicTracerProvider, ConsoleSpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { createServer, graphqlHTTP } from 'espalier';
import { EspalierInstrumentation } from 'espalier/otel';
import express from 'express';
import { buildSchema } from 'graphql';
import { Gauge, Histogram, register } from 'prom-client';

// @opentelemetry/exporter-trace-otlp-http would send the spans to a collector instead of the console.
const processor = new SimpleSpanProcessor(new ConsoleSpanExporter());
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [processor] }));
new EspalierInstrumentation();
const seconds = new Histogram({ name: 'graphql_seconds', help: 'By type.', labelNames: ['type', 'result'] });
subscribe('espalier:graphql:operation', (message) => {
  const operation = Object(message);
  const type = operation.prepared?.operation.operation ?? 'unknown';
  const result = () => (operation.failures ? 'refused' : (operation.result?.kind ?? 'none'));
  const ended = () => seconds.labels(type, result()).observe((performance.now() - operation.started) / 1000);
  operation.observe({ ended });
});
const documents = new Gauge({ name: 'espalier_documents', help: 'In the cache.', labelNames: ['number'] });
const app = express().use('/graphql', graphqlHTTP(buildSchema('type Query { hello: String }')));
const port = Number(process.env.PORT ?? 3000);
const server = createServer(app).listen(port, () => console.log(`http://localhost:${port}/graphql`));
app.get('/metrics', async (_req, res) => {
  for (const [number, value] of Object.entries(server.stats().documents)) documents.set({ number }, value);
  res.type(register.contentType).send(await register.metrics());
});
