/** @tags graphql engine */
import { propagation, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import express from 'express';
import { buildSchema, GraphQLError } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import {
  activeSpan,
  idOf,
  kindOf,
  PHASES,
  parentOf,
  REMOTE_SPAN,
  REMOTE_TRACE,
  TestTelemetry,
  TRACEPARENT,
} from './telemetry.ts';

const schema = buildSchema(`
  type Query { hello: String nested: Nested denied: String broken: String echo(text: String, secret: Int): String }
  type Nested { now: String later: String }
  type Mutation { save: Boolean }
`);

const seen: Record<string, (string | undefined)[]> = {};
const see = (place: string): void => {
  seen[place] ??= [];
  seen[place].push(activeSpan());
};
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.random() * 5));

const rootValue = {
  hello: () => {
    see('hello');
    return 'world';
  },
  nested: async () => {
    await pause();
    see('nested');
    return {
      now: () => {
        see('now');
        return 'now';
      },
      later: async () => {
        await pause();
        see('later');
        return 'later';
      },
    };
  },
  denied: () => {
    throw new GraphQLError('not for you', { extensions: { code: 'FORBIDDEN' } });
  },
  broken: () => {
    throw new TypeError('hunter2');
  },
  echo: ({ text }: { text: string }) => text,
  save: () => true,
};

let telemetry: TestTelemetry;
beforeEach(() => {
  telemetry = new TestTelemetry(PHASES);
  for (const place of Object.keys(seen)) delete seen[place];
});
afterEach(() => telemetry.stop());

const serve = (options: GraphQLOptions = {}) =>
  express().use('/graphql', graphqlHTTP(schema, { rootValue, graphiql: false, onError: false, ...options }));

const post = (app: express.Express, body: object, headers: Record<string, string> = {}) =>
  request(app).post('/graphql').set(headers).send(body);

describe.each(['compiled', 'graphql-js'] as const)('with the engine %s', (engine) => {
  it('EspalierInstrumentation records an operation as a span with the phases of its document as children', async () => {
    const app = serve({ engine });
    await post(app, { query: 'query Greet { hello }' }).expect(200);
    const [span, ...more] = telemetry.named('query');
    expect(more).toEqual([]);
    expect(kindOf(span)).toBe('SERVER');
    expect(span?.attributes).toEqual({
      'graphql.processing.type': 'request',
      'graphql.operation.type': 'query',
      'graphql.operation.name': 'Greet',
      'graphql.document.hash': expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    });
    expect(span?.status.code).toBe(SpanStatusCode.UNSET);
    const children = telemetry.spans.getFinishedSpans().filter((one) => parentOf(one) === idOf(span));
    expect(children.map(({ name, attributes }) => [name, attributes['graphql.processing.type']])).toEqual([
      ['GraphQL Document Parsing', 'parse'],
      ['GraphQL Document Validation', 'validate'],
      ['GraphQL Operation Execution', 'execute'],
    ]);
    telemetry.spans.reset();
    await post(app, { query: 'query Greet { hello }' }).expect(200);
    expect(telemetry.names()).toEqual(['GraphQL Operation Execution', 'query']);
  });

  it('the span of the execution is active in all resolvers, and the span of the operation in context and onOperation', async () => {
    const app = serve({
      engine,
      context: async () => {
        await pause();
        see('context');
      },
      onOperation: () => see('onOperation'),
    });
    await post(app, { query: '{ hello nested { now later } }' }).expect(200);
    const operation = idOf(telemetry.named('query')[0]);
    const execution = idOf(telemetry.named('GraphQL Operation Execution')[0]);
    expect(seen).toEqual({
      context: [operation],
      onOperation: [operation],
      hello: [execution],
      nested: [execution],
      now: [execution],
      later: [execution],
    });
    expect(activeSpan()).toBeUndefined();
  });

  it('concurrent operations and the operations of a batch each have their own active span', async () => {
    const app = serve({ engine, batching: true, context: () => see('context') });
    const one = { query: '{ nested { later } }' };
    await Promise.all([post(app, one), post(app, [one, one, { query: '{ hello }' }]), post(app, one)]);
    const executions = telemetry.named('GraphQL Operation Execution');
    expect(executions).toHaveLength(5);
    const distinct = new Set(telemetry.named('query').map(idOf));
    expect(distinct.size).toBe(5);
    expect(new Set(seen['context'])).toEqual(distinct);
    const later = executions.map(idOf).filter((id) => seen['later']?.includes(id));
    expect(later).toHaveLength(4);
    expect(new Set(executions.map(parentOf))).toEqual(distinct);
  });

  it('errors of an operation set the status of its span, the type of the error, and one event for each error', async () => {
    await post(serve({ engine }), { query: '{ denied broken hello }' });
    const [span] = telemetry.named('query');
    expect(span?.status.code).toBe(SpanStatusCode.ERROR);
    expect(span?.attributes).toMatchObject({ 'error.type': 'FORBIDDEN', 'graphql.error.count': 2 });
    expect(span?.events.map(({ name, attributes }) => [name, attributes])).toEqual([
      [
        'graphql.error',
        {
          'graphql.error.message': 'not for you',
          'graphql.error.path': 'denied',
          'graphql.error.locations': '[{"line":1,"column":3}]',
          'graphql.error.code': 'FORBIDDEN',
        },
      ],
      [
        'graphql.error',
        expect.objectContaining({
          'graphql.error.path': 'broken',
          'exception.type': 'TypeError',
          'exception.message': 'hunter2',
        }),
      ],
    ]);
  });
});

describe('without options', () => {
  beforeEach(() => telemetry.instrumentation.setConfig({}));

  it('without options an operation is one span, which is active in context, onOperation and all resolvers', async () => {
    const app = serve({ context: () => see('context'), onOperation: () => see('onOperation') });
    await post(app, { query: '{ hello nested { now later } }' }).expect(200);
    expect(telemetry.names()).toEqual(['query']);
    const operation = [idOf(telemetry.named('query')[0])];
    expect(seen).toEqual({
      context: operation,
      onOperation: operation,
      hello: operation,
      nested: operation,
      now: operation,
      later: operation,
    });
    expect(activeSpan()).toBeUndefined();
  });

  it('without options concurrent operations each have their own active span', async () => {
    const app = serve();
    const query = '{ nested { later } }';
    await Promise.all(Array.from({ length: 20 }, () => post(app, { query })));
    const operations = telemetry.named('query').map(idOf);
    expect(new Set(operations).size).toBe(20);
    expect([...(seen['later'] ?? [])].sort()).toEqual([...operations].sort());
  });

  it('without options errors of resolvers belong to the span of the operation', async () => {
    await post(serve(), { query: '{ denied }' });
    const [span] = telemetry.named('query');
    expect(span?.attributes['error.type']).toBe('FORBIDDEN');
    expect(span?.events).toHaveLength(1);
  });
});

it('a span records errors whose members throw, and ends', async () => {
  const malicious = {
    get message() {
      throw new Error('on purpose');
    },
  };
  await post(serve({ context: () => Promise.reject(malicious) }), { query: '{ hello }' });
  const [span] = telemetry.named('query');
  expect(span?.attributes['error.type']).toBe('_OTHER');
  const { 'graphql.server.active_requests': active, 'graphql.server.request.duration': durations } =
    await telemetry.metrics();
  expect(active).toEqual({ '{"graphql.operation.type":"query"}': 0 });
  expect(Object.keys(durations ?? {})).toEqual(['{"graphql.operation.type":"query","error.type":"_OTHER"}']);
});

it('a refused document is a span without an operation type', async () => {
  const app = serve();
  await post(app, { query: '{' });
  await post(app, { query: '{ nope }' });
  await post(app, { query: 'query A { hello } query B { hello }' });
  expect(
    telemetry.named('GraphQL Operation').map(({ attributes, status }) => [attributes, status.code]),
  ).toEqual([
    [
      {
        'graphql.processing.type': 'request',
        'error.type': 'GRAPHQL_PARSE_FAILED',
        'graphql.error.count': 1,
      },
      SpanStatusCode.ERROR,
    ],
    [expect.objectContaining({ 'error.type': 'GRAPHQL_VALIDATION_FAILED' }), SpanStatusCode.ERROR],
    [expect.objectContaining({ 'error.type': 'OPERATION_RESOLUTION_FAILURE' }), SpanStatusCode.ERROR],
  ]);
  const [syntax, invalid] = telemetry.named('GraphQL Operation').map(idOf);
  expect(telemetry.named('GraphQL Document Parsing').map(parentOf)).toEqual([syntax, invalid]);
  expect(telemetry.named('GraphQL Document Validation').map(({ attributes }) => attributes)).toEqual([
    { 'graphql.processing.type': 'validate', 'error.type': 'GRAPHQL_VALIDATION_FAILED' },
  ]);
});

it('a span records a refusal of onOperation, wrong variables, and a failing context function as errors of the operation', async () => {
  const decide: GraphQLOptions = {
    onOperation: ({ operationName }) =>
      operationName === 'Refused'
        ? { errors: [new GraphQLError('no', { extensions: { code: 'NO' } })] }
        : undefined,
  };
  await post(serve(decide), { query: 'query Refused { hello }' });
  await post(serve(), { query: 'query ($x: String!) { echo(text: $x) }', variables: { x: 5 } });
  await post(serve({ context: () => Promise.reject(new RangeError('no database')) }), { query: '{ hello }' });
  expect(telemetry.named('query').map(({ attributes }) => attributes['error.type'])).toEqual([
    'NO',
    'BAD_USER_INPUT',
    'RangeError',
  ]);
});

it('a span counts all errors of an operation, and has events for ten of them', async () => {
  const fields = Array.from({ length: 15 }, (_, index) => `e${index}: denied`);
  await post(serve(), { query: `{ ${fields.join(' ')} }` });
  const [span] = telemetry.named('query');
  expect(span?.attributes['graphql.error.count']).toBe(15);
  expect(span?.events).toHaveLength(10);
});

describe('the trace context of a request', () => {
  const query = '{ hello }';

  it('the span of an operation has the parent that the headers of its request name', async () => {
    await post(serve(), { query }, { traceparent: TRACEPARENT, tracestate: 'vendor=1', baggage: 'tenant=7' });
    const [span] = telemetry.named('query');
    expect(span?.spanContext().traceId).toBe(REMOTE_TRACE);
    expect(parentOf(span)).toBe(REMOTE_SPAN);
    expect(span?.spanContext().traceState?.serialize()).toBe('vendor=1');
  });

  it('the baggage of the request headers is active in resolvers', async () => {
    let tenant: string | undefined;
    const root = {
      hello: () => {
        tenant = propagation.getActiveBaggage()?.getEntry('tenant')?.value;
      },
    };
    await post(serve({ rootValue: root }), { query }, { traceparent: TRACEPARENT, baggage: 'tenant=7' });
    expect(tenant).toBe('7');
  });

  it('the trace context in the extensions of an operation has priority over the headers, also in a batch', async () => {
    const other = '4bf92f3577b34da6a3ce929d0e0e4736';
    const own = { query, extensions: { traceparent: `00-${other}-00f067aa0ba902b7-01` } };
    await post(serve({ batching: true }), [own, { query }], { traceparent: TRACEPARENT });
    expect(
      telemetry
        .named('query')
        .map((span) => span.spanContext().traceId)
        .sort(),
    ).toEqual([REMOTE_TRACE, other].sort());
  });

  it.each([
    [{ traceparent: 5 }],
    [{ traceparent: ['00-1'] }],
    [{ traceparent: 'x'.repeat(100_000) }],
    [{ traceparent: `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01` }],
    [JSON.parse('{"__proto__":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}')],
  ])('EspalierInstrumentation ignores a wrong trace context in extensions (%#)', async (extensions) => {
    await post(serve(), { query, extensions }).expect(200);
    const [span] = telemetry.named('query');
    expect(parentOf(span)).toBeUndefined();
  });

  it('an operation is a child of the active span, and a trace context in its extensions is a link', async () => {
    const tracer = telemetry.tracers.getTracer('test');
    let http: Span | undefined;
    const app = express()
      .use((_req, _res, next) => {
        tracer.startActiveSpan('POST', { kind: SpanKind.SERVER }, (span) => {
          http = span;
          next();
        });
      })
      .use('/graphql', graphqlHTTP(schema, { rootValue, graphiql: false }));
    await post(app, { query, extensions: { traceparent: TRACEPARENT } });
    const [span] = telemetry.named('query');
    expect(kindOf(span)).toBe('INTERNAL');
    expect(parentOf(span)).toBe(http?.spanContext().spanId);
    expect(span?.links.map(({ context }) => context.spanId)).toEqual([REMOTE_SPAN]);
  });

  it('EspalierInstrumentation does not record the operations of a request that is not sampled, and they run', async () => {
    const unsampled = TRACEPARENT.replace(/01$/, '00');
    const { body } = await post(serve(), { query }, { traceparent: unsampled });
    expect(body).toEqual({ data: { hello: 'world' } });
    expect(telemetry.names()).toEqual([]);
  });
});

describe('personal data', () => {
  const query =
    'query Echo($text: String, $secret: Int) { echo(text: $text, secret: $secret) other: echo(text: "Ada \\"x\\"", secret: 987654321) }';
  const variables = { text: 'hunter2', secret: 987654321 };

  it('spans contain neither variables nor documents by default', async () => {
    await post(serve(), { query, variables });
    const all = telemetry.spans.getFinishedSpans().map(({ attributes, events }) => [attributes, events]);
    expect(JSON.stringify(all)).not.toMatch(/hunter2|987654321|Ada/);
  });

  it('the option contents adds the named variables and the text of the document without its values to spans', async () => {
    telemetry.instrumentation.setConfig({ contents: ['text'] });
    await post(serve(), { query, variables });
    const [span] = telemetry.named('query');
    expect(span?.attributes).toMatchObject({
      'graphql.variables.text': '"hunter2"',
      'graphql.document':
        'query Echo($text: String, $secret: Int) { echo(text: $text, secret: $secret) other: echo(text: "*", secret: 0) }',
    });
    expect(span?.attributes).not.toHaveProperty(['graphql.variables.secret']);
  });

  it('the option contents: true adds all variables to spans', async () => {
    telemetry.instrumentation.setConfig({ contents: true });
    await post(serve(), { query, variables });
    expect(telemetry.named('query')[0]?.attributes).toMatchObject({
      'graphql.variables.secret': '987654321',
    });
  });
});

it('disable() of EspalierInstrumentation stops the spans, and enable() starts them again', async () => {
  const app = serve();
  telemetry.instrumentation.disable();
  await post(app, { query: '{ hello }' });
  expect(telemetry.names()).toEqual([]);
  telemetry.instrumentation.enable();
  telemetry.instrumentation.enable();
  await post(app, { query: '{ hello }' });
  expect(telemetry.named('query')).toHaveLength(1);
});

it('a span processor that throws does not change the response', async () => {
  const failing = {
    getTracer: () => ({
      startSpan: () => {
        throw new Error('on purpose');
      },
    }),
  };
  telemetry.instrumentation.setTracerProvider(failing);
  const { body } = await post(serve(), { query: '{ hello }' });
  expect(body).toEqual({ data: { hello: 'world' } });
  expect(trace.getActiveSpan()).toBeUndefined();
});
