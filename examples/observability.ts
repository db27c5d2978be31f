// Diagnostics channels as OpenTelemetry spans and Prometheus metrics: `npx tsx examples/observability.ts`, then /metrics.
import { subscribe } from 'node:diagnostics_channel';
import { SpanStatusCode as Status } from '@opentelemetry/api';
import { BasicTracerProvider, ConsoleSpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { graphqlHTTP } from 'espalier/graphql';
import express from 'express';
import { buildSchema } from 'graphql';
import { Histogram, register } from 'prom-client';

// @opentelemetry/exporter-trace-otlp-http would send the spans to a collector instead of the console.
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
const port = Number(process.env.PORT ?? 3000);
app.listen(port, () => console.log(`http://localhost:${port}/graphql`));
