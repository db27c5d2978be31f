/** @tags node graphql */
// Mistakes of clients, on every transport: the client can read what is wrong, and the operator gets no report.
import { makeExecutableSchema } from '@graphql-tools/schema';
import { GraphQLScalarType } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import { atEnd } from '../kit.ts';
import { LEGACY, MODERN, ready } from '../live/client.ts';
import { inProduction } from '../live/serve.ts';
import { run } from './server.ts';

const toDay = (value: unknown): Date => {
  if (typeof value !== 'string') throw new TypeError('a day is written as "2026-01-31"');
  return new Date(value);
};
const Day = new GraphQLScalarType({
  name: 'Day',
  parseValue: toDay,
  parseLiteral: (node) => toDay('value' in node && node.kind === 'StringValue' ? node.value : undefined),
});
const schema = makeExecutableSchema({
  typeDefs: `
    scalar Day
    input Span { from: Day!, to: Day = "2026-01-31" }
    type Query { at(day: Day): String, each(days: [Day!]): String, within(span: Span): String }
    type Subscription { ticks(from: Day): String, tocks: String }
  `,
  resolvers: {
    Day,
    Query: { at: () => 'at', each: () => 'each', within: () => 'within' },
    Subscription: Object.fromEntries(
      ['ticks', 'tocks'].map((name) => [
        name,
        {
          async *subscribe() {
            yield { [name]: name };
          },
        },
      ]),
    ),
  },
});

inProduction();
type Params = { readonly query: string; readonly variables?: object; readonly operationName?: string };
type Send = (params: Params) => Promise<string>;

/** Sends an operation over one transport, and returns everything that the client gets. */
async function transports(options: GraphQLOptions = {}) {
  const reports: unknown[] = [];
  const handler = graphqlHTTP(schema, { onError: (error) => void reports.push(error), ...options });
  const running = await run((req, res) => void handler(req, res));
  attachSubscriptions(running.server, handler, { path: '/graphql' });
  atEnd(() => running.close());
  const post =
    (accept: string): Send =>
    async (params) => {
      const response = await fetch(running.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept },
        body: JSON.stringify(params),
      });
      return response.text();
    };
  const socket =
    (protocol: string, type: string): Send =>
    async (payload) => {
      const client = await ready(running.url.replace('http', 'ws'), protocol);
      client.send({ id: '1', type, payload });
      const messages: unknown[] = [];
      for (;;) {
        const message = await client.next();
        messages.push(message);
        if (['complete', 'error'].includes(message['type'] as string)) break;
      }
      await client.close();
      return JSON.stringify(messages);
    };
  const send: Record<string, Send> = {
    HTTP: post('application/json'),
    'an event stream': post('text/event-stream'),
    'a multipart stream': post('multipart/mixed;subscriptionSpec=1.0, application/json'),
    [MODERN]: socket(MODERN, 'subscribe'),
    [LEGACY]: socket(LEGACY, 'start'),
  };
  return { send, reports };
}

const NAMES = ['HTTP', 'an event stream', 'a multipart stream', MODERN, LEGACY];
const STREAMS = NAMES.slice(1);

describe.each(NAMES)('over %s', (name) => {
  it.each([
    ['a literal of an argument', { query: '{ at(day: 5) }' }],
    ['a literal in a list', { query: '{ each(days: ["2026-01-31", 5]) }' }],
    ['a literal in an input object', { query: '{ within(span: { from: 5 }) }' }],
    ['the default of a variable', { query: 'query ($day: Day = 5) { at(day: $day) }' }],
    ['a variable', { query: 'query ($day: Day) { at(day: $day) }', variables: { day: 5 } }],
    [
      'a variable in an input object',
      { query: 'query ($span: Span) { within(span: $span) }', variables: { span: { from: 5 } } },
    ],
  ])('a scalar that throws a TypeError for %s is a mistake of the client', async (_title, params) => {
    const { send, reports } = await transports();
    const text = await send[name]?.(params);
    expect(text).toContain('a day is written as');
    expect(text).toMatch(/GRAPHQL_VALIDATION_FAILED|BAD_USER_INPUT/);
    expect(text).not.toContain('Internal server error');
    expect(reports).toEqual([]);
  });

  it('an empty query is missing', async () => {
    const { send, reports } = await transports();
    expect(await send[name]?.({ query: '' })).toContain('The parameter \\"query\\" is missing');
    expect(reports).toEqual([]);
  });

  it('an empty operationName is absent', async () => {
    const { send, reports } = await transports();
    expect(await send[name]?.({ query: '{ at }', operationName: '' })).toContain('"at":"at"');
    expect(await send[name]?.({ query: 'query A { at } query B { each }', operationName: '' })).toMatch(
      /Must provide operation name|operationName/,
    );
    expect(reports).toEqual([]);
  });
});

describe.each(STREAMS)('over %s', (name) => {
  it.each([
    ['a literal', { query: 'subscription { ticks(from: 5) }' }],
    ['a variable', { query: 'subscription ($day: Day) { ticks(from: $day) }', variables: { day: 5 } }],
  ])('%s of a subscription that its scalar refuses is a mistake of the client', async (_title, params) => {
    const { send, reports } = await transports();
    expect(await send[name]?.(params)).toContain('a day is written as');
    expect(reports).toEqual([]);
  });

  it.each([
    ['@skip', { query: 'subscription { tocks @skip(if: true) }' }],
    [
      'a variable',
      { query: 'subscription ($on: Boolean!) { tocks @include(if: $on) }', variables: { on: false } },
    ],
    [
      'the default of a variable',
      { query: 'subscription ($off: Boolean = true) { ... @skip(if: $off) { tocks } }' },
    ],
    [
      'a fragment',
      { query: 'subscription { ...Tocks @include(if: false) } fragment Tocks on Subscription { tocks }' },
    ],
    [
      'a field in a fragment',
      { query: 'subscription { ...Tocks } fragment Tocks on Subscription { tocks @skip(if: true) }' },
    ],
  ])(
    'a subscription that selects no field because of %s is a mistake of the client',
    async (_title, params) => {
      const { send, reports } = await transports();
      const text = await send[name]?.(params);
      expect(text).toMatch(/GRAPHQL_VALIDATION_FAILED|BAD_USER_INPUT/);
      expect(text).not.toContain('Internal server error');
      expect(reports).toEqual([]);
    },
  );
});

it('a bug of the application in a subscribe resolver is still reported', async () => {
  const reports: unknown[] = [];
  const broken = makeExecutableSchema({
    typeDefs: 'type Query { a: Int } type Subscription { t: Int }',
    resolvers: { Subscription: { t: { subscribe: () => 5 } } },
  });
  const handler = graphqlHTTP(broken, { onError: (error) => void reports.push(error) });
  const running = await run((req, res) => void handler(req, res));
  atEnd(() => running.close());
  const response = await fetch(`${running.url}?query=subscription{t}`, {
    headers: { accept: 'text/event-stream' },
  });
  expect(await response.text()).toContain('Internal server error');
  expect(reports).toHaveLength(1);
});
