// Diagnostics channels as OpenTelemetry spans and Prometheus metrics: `npx tsx examples/observability.ts`, then /metrics.
import { subscribe } from 'node:diagnostics_channel';
import { SpanStatusCode as Status } from '@opentelemetry/api';
import { BasicTracerProvider, ConsoleSpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { graphqlHTTP } from 'espalier/graphql';
import express from 'express';
import { buildSchema } from 'graphql';
import { Histogram, register } from 'prom-client';

// Any exporter will do: that of @opentelemetry/exporter-trace-otlp-http sends the spans to a collector.
const spans = new BasicTracerProvider({
  spanProcessors: [new SimpleSpanProcessor(new ConsoleSpanExporter())],
});
const seconds = new Histogram({ name: 'graphql_seconds', help: 'By step.', labelNames: ['step', 'result'] });
for (const step of ['parse', 'validate', 'execute', 'response']) {
  subscribe(`espalier:graphql:${step}`, (message) => {
    const { duration, outcome, status, errors = outcome?.errors } = Object(message);
    const result = status ?? outcome?.kind ?? (errors.length > 0 ? 'errors' : 'valid');
    seconds.observe({ step, result }, duration / 1000);
    const times = { startTime: Date.now() - duration, attributes: { 'graphql.result': result } };
    const span = spans.getTracer('espalier').startSpan(`graphql ${step}`, times);
    span.setStatus({ code: errors.length > 0 ? Status.ERROR : Status.OK }).end();
  });
}
const schema = buildSchema('type Query { hello: String }');
const app = express().use('/graphql', graphqlHTTP(schema, { rootValue: { hello: 'world' } }));
app.get('/metrics', async (_req, res) => void res.type(register.contentType).send(await register.metrics()));
const server = app.listen(Number(process.env.PORT ?? 3000), () => {
  console.log(`http://localhost:${Object(server.address()).port}/graphql`);
});
