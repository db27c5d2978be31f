/** @tags node graphql engine */
import { type ExecutionResult, GraphQLError, parse, subscribe } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { schemaOf } from '../engine/cases/case.ts';
import { LEGACY, listen, MODERN, ready } from './client.ts';

const SDL = /* GraphQL */ `
  type Event { n: Int must: Int! late: String seen: String masked: String list: [Event!] by: String }
  type Query { none: Int }
  type Subscription { event(from: Int!): Event mustEvent(from: Int!): Event! }
`;

const visible = (text: string): GraphQLError => new GraphQLError(text, { extensions: { code: 'VISIBLE' } });

/** The engine that called the resolver. */
function caller(): string {
  return /[\\/]src[\\/]engine[\\/]/.test(new Error().stack ?? '') ? 'compiled' : 'graphql-js';
}

const whole = { n: 1, must: 1, late: async () => 'late', list: [{ must: 2 }, Promise.resolve({ must: 3 })] };
const EVENTS: readonly unknown[] = [
  whole,
  { n: 'no number', must: 1, late: () => Promise.reject(visible('rejected')), seen: visible('returned') },
  { n: 1, must: null },
  { n: 2, must: 1, list: [{ must: 1 }, { must: async () => null }] },
  null,
  Promise.resolve({ ...whole, list: null }),
];

async function* events(_source: unknown, { from }: { from: number }): AsyncGenerator<unknown> {
  for (const event of EVENTS.slice(from)) yield { event, mustEvent: event };
}

const schema = schemaOf(SDL, {
  'Event.by': caller,
  'Event.masked': () => {
    throw new TypeError('a secret');
  },
});
for (const field of Object.values(schema.getSubscriptionType()?.getFields() ?? {})) field.subscribe = events;

/** The message that clients get for an unexpected error. */
const MASK = 'Internal server error';
const CODE = 'INTERNAL_SERVER_ERROR';
const FIELDS = '{ n must late seen list { must late } }';
const servers: { close(): unknown }[] = [];
// Development adds the hidden messages to the extensions.
process.env['NODE_ENV'] = 'production';
afterAll(() => Promise.all(servers.map((server) => server.close())));

/** The payloads of one subscription. */
async function payloads(
  engine: 'compiled' | 'graphql-js',
  query: string,
  protocol = MODERN,
): Promise<Record<string, unknown>[]> {
  const { server, url } = await listen();
  const subscriptions = attachSubscriptions(
    server,
    graphqlHTTP(schema, { engine, graphiql: false, onError: false }),
  );
  servers.push(server, subscriptions);
  const client = await ready(url, protocol);
  const payload = { query, variables: { from: 0 } };
  client.send({ id: '1', type: protocol === MODERN ? 'subscribe' : 'start', payload });
  const messages = await client.until(({ type }) => type === 'complete' || type === 'error');
  await client.close();
  return messages
    .filter(({ type }) => type === 'next' || type === 'data')
    .map(({ payload }) => payload as Record<string, unknown>);
}

/** The results of graphql-js's `subscribe`, with unexpected errors masked. */
async function reference(query: string): Promise<unknown[]> {
  const results: unknown[] = [];
  const stream = await subscribe({ schema, document: parse(query), variableValues: { from: 0 } });
  const shown = (error: GraphQLError): object =>
    error.extensions['code'] === 'VISIBLE'
      ? error.toJSON()
      : { ...error.toJSON(), message: messageOf(error), extensions: { code: CODE } };
  for await (const result of stream as AsyncIterable<ExecutionResult>) {
    const errors = result.errors === undefined ? {} : { errors: result.errors.map(shown) };
    results.push(JSON.parse(JSON.stringify({ ...result, ...errors })));
  }
  return results;
}

const messageOf = ({ message }: GraphQLError): string =>
  message.startsWith('Cannot return null') ? message : MASK;

describe.each(['compiled', 'graphql-js'] as const)('events under %s', (engine) => {
  it('an event is executed by the engine that the handler uses', async () => {
    const results = await payloads(engine, 'subscription ($from: Int!) { event(from: $from) { by } }');
    // The first execution of a document may not be compiled.
    expect(results.at(-1)).toEqual({ data: { event: { by: engine } } });
  });

  it.each([
    ['event', MODERN],
    ['mustEvent', MODERN],
    ['event', LEGACY],
  ])('events have the results of graphql-js: field %s over %s', async (field, protocol) => {
    const query = `subscription ($from: Int!) { ${field}(from: $from) ${FIELDS} }`;
    const expected = await reference(query);
    expect(expected).toHaveLength(EVENTS.length);
    expect(await payloads(engine, query, protocol)).toEqual(expected);
  });

  it('an event propagates null to the nearest nullable field and lists its errors', async () => {
    const received = await payloads(engine, `subscription ($from: Int!) { event(from: $from) ${FIELDS} }`);
    const locations = (column: number) => [{ line: 1, column }];
    const nullError = (path: unknown[], place: object[]) => ({
      message: 'Cannot return null for non-nullable field Event.must.',
      path,
      locations: place,
      extensions: { code: CODE },
    });
    expect(received.slice(1, 4)).toEqual([
      {
        data: { event: { n: null, must: 1, late: null, seen: null, list: null } },
        errors: [
          {
            message: MASK,
            extensions: { code: CODE },
            path: ['event', 'n'],
            locations: locations(51),
          },
          {
            message: 'returned',
            path: ['event', 'seen'],
            locations: locations(63),
            extensions: { code: 'VISIBLE' },
          },
          {
            message: 'rejected',
            path: ['event', 'late'],
            locations: locations(58),
            extensions: { code: 'VISIBLE' },
          },
        ],
      },
      {
        data: { event: null },
        errors: [nullError(['event', 'must'], locations(53))],
      },
      {
        data: { event: { n: 2, must: 1, late: null, seen: null, list: null } },
        errors: [nullError(['event', 'list', 1, 'must'], locations(75))],
      },
    ]);
  });

  it('an event hides the message of an unexpected error', async () => {
    const [first] = await payloads(engine, 'subscription ($from: Int!) { event(from: $from) { n masked } }');
    expect(JSON.stringify(first)).not.toContain('secret');
    expect(first).toMatchObject({
      data: { event: { n: 1, masked: null } },
      errors: [{ path: ['event', 'masked'] }],
    });
  });
});
