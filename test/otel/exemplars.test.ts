/** @tags graphql */
import { type Attributes, type Context, context as contextApi, trace } from '@opentelemetry/api';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import express, { type Express } from 'express';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createPubSub } from '../../middleware/pubsub.ts';
import { staticFiles } from '../../middleware/static.ts';
import { until } from '../until.ts';
import { createSchema } from '../uploads/schema.ts';
import { PHASES, TestTelemetry } from './telemetry.ts';

let telemetry: TestTelemetry;
let meters: MeterProvider;
let contexts: Context[];
beforeEach(() => {
  telemetry = new TestTelemetry(PHASES);
  contexts = [];
  // The SDK passes the context of a record to the processors of views. It takes exemplars from the same context.
  const processor = {
    process(attributes: Attributes, context?: Context): Attributes {
      if (context !== undefined) contexts.push(context);
      return attributes;
    },
  };
  const views = [{ instrumentName: '*', attributesProcessors: [processor] }];
  meters = new MeterProvider({ views, readers: [telemetry.createReader()] });
  telemetry.instrumentation.setMeterProvider(meters);
});
afterEach(async () => {
  await telemetry.stop();
  await meters.shutdown();
});

/** The names of the spans in whose contexts measurements were recorded. */
function recordedIn(): (string | undefined)[] {
  const spans = telemetry.spans.getFinishedSpans();
  return contexts.map((context) => {
    const id = trace.getSpanContext(context)?.spanId;
    return spans.find((span) => span.spanContext().spanId === id)?.name;
  });
}

const createApp = (): Express =>
  express()
    .use('/files', staticFiles('test/otel'))
    .use('/graphql', graphqlHTTP(createSchema([]), { onError: false, graphiql: false }));

it('durations of an operation and of its execution are recorded in the contexts of their spans', async () => {
  const app = createApp();
  const post = () => request(app).post('/graphql').send({ query: '{ __typename }' });
  await post();
  contexts.length = 0;
  telemetry.spans.reset();
  await post();
  expect(recordedIn()).toEqual(['GraphQL Operation Execution', 'query']);
});

it('measurements of static files, uploads and published events are recorded in the contexts of their spans', async () => {
  const app = createApp();
  await request(app).get('/files/telemetry.ts').expect(200);
  await telemetry.wait('static file');
  const query = 'mutation ($file: Upload!) { single(file: $file) { filename } }';
  await request(app)
    .post('/graphql')
    .set('graphql-require-preflight', '1')
    .field('operations', JSON.stringify({ query, variables: { file: null } }))
    .field('map', JSON.stringify({ 0: ['variables.file'] }))
    .attach('0', Buffer.alloc(10), 'a.bin')
    .expect(200);
  await telemetry.wait('GraphQL Upload');
  await createPubSub().publish('tick', {});
  await telemetry.wait('publish');
  const names = recordedIn();
  expect(names.filter((name) => name === 'static file')).toHaveLength(1);
  expect(names.filter((name) => name === 'GraphQL Upload')).toHaveLength(2);
  expect(names.filter((name) => name === 'publish')).toHaveLength(1);
});

it('measurements for which no span is created are recorded in the context of their parent', async () => {
  telemetry.instrumentation.setConfig({ spans: ['events'] });
  const parent = telemetry.tracers.getTracer('test').startSpan('parent');
  const app = express().use((_req, _res, next) =>
    contextApi.with(trace.setSpan(contextApi.active(), parent), next),
  );
  app.use(createApp());
  await request(app).get('/files/telemetry.ts').expect(200);
  await until(() => contexts.length > 0);
  await contextApi.with(trace.setSpan(contextApi.active(), parent), () => createPubSub().publish('tick', {}));
  await until(() => contexts.length > 1);
  parent.end();
  expect(recordedIn()).toEqual(['parent', 'parent']);
});
