/** @tags node graphql */
import { buildSchema, GraphQLError, type GraphQLScalarType } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import { listen } from '../kit.ts';
import { open } from '../live/serve-streams.ts';
import { until } from '../until.ts';
import { DIRECTIVES, V17 } from './incremental-schema.ts';
import { jsonLines, type Payload } from './merge.ts';

const ENGINES = ['compiled', 'graphql-js'] as const;
const FORMATS = [
  'multipart/mixed;incrementalSpec=v0.2',
  'multipart/mixed;deferSpec=20220824',
  'text/event-stream',
  'application/jsonl',
];

const reported: unknown[] = [];

afterEach(() => {
  reported.length = 0;
});

/** Serves a schema with values that JSON cannot represent; returns the URL. */
async function serve(options: GraphQLOptions): Promise<string> {
  process.env['NODE_ENV'] = 'production';
  const schema = buildSchema(`${V17 ? DIRECTIVES : ''}
    scalar Any
    type Query { hello: String sibling: String other: String big: Any circular: Any throwing: Any badExtensions: String }
    type Mutation { set: Any }
  `);
  const convert = (value: unknown): unknown => value;
  Object.assign(schema.getType('Any') as GraphQLScalarType, {
    serialize: convert,
    coerceOutputValue: convert,
  });
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  const rootValue = {
    hello: 'world',
    sibling: async () => 'here',
    other: 'too',
    big: async () => 1n,
    circular,
    throwing: {
      toJSON() {
        throw new Error('secret detail');
      },
    },
    badExtensions: () => {
      throw new GraphQLError('on purpose', { extensions: { code: 1n } });
    },
    set: 1n,
  };
  const onError = (error: unknown): void => void reported.push(error);
  const handler = graphqlHTTP(schema, { graphiql: false, rootValue, onError, ...options });
  return (await listen((req, res) => handler(req, res), '/graphql')).url;
}

async function read(url: string, params: object, accept: string) {
  const reading = await open(url, { params, headers: { accept } });
  await until(() => reading.ended);
  return reading;
}

const MASKED = [expect.objectContaining({ message: 'Internal server error' })];

if (V17)
  describe.each(ENGINES)('deferred values that JSON cannot represent, with the engine %s', (engine) => {
    it.each(FORMATS)('are masked errors to Accept: %s', async (accept) => {
      const url = await serve({ engine });
      const query = '{ hello ... @defer(label: "a") { other big } ... @defer(label: "b") { sibling } }';
      const { status, body } = await read(url, { query }, accept);
      expect(status).toBe(200);
      const payloads = jsonLines(body);
      expect(payloads[0]).toMatchObject({ data: { hello: 'world' }, hasNext: true });
      expect(payloads.at(-1)).toMatchObject({ hasNext: false });
      expect(payloads.slice(0, -1).every(({ hasNext }) => hasNext)).toBe(true);
      expect(idsOf(payloads, 'completed')).toEqual(idsOf(payloads, 'pending'));
      const parts = payloads.flatMap(({ incremental = [] }) => incremental);
      const failures = [...parts, ...payloads.flatMap(({ completed = [] }) => completed)];
      const errors = [...failures, payloads.at(-1)].flatMap((failure) => failure?.errors ?? []);
      // graphql-js does not know which value it is, so its other parts may fail too.
      if (engine === 'compiled') {
        expect(parts).toContainEqual(expect.objectContaining({ data: { sibling: 'here' } }));
        expect(errors).toEqual(MASKED);
      } else {
        expect(errors.length).toBeGreaterThan(0);
        for (const error of errors) expect(error).toEqual(MASKED[0]);
      }
      expect(body).not.toContain('BigInt');
      expect(reported).toHaveLength(1);
    });
  });

if (V17)
  describe.each(ENGINES)(
    'a formatError that throws for a part of an incremental response, with the engine %s',
    (engine) => {
      it.each(FORMATS)('masks the error in its part to Accept: %s', async (accept) => {
        const failure = new Error('formatError is broken: secret');
        const formatError = (): never => {
          throw failure;
        };
        const url = await serve({ engine, formatError });
        const query =
          '{ hello ... @defer(label: "a") { first: badExtensions } ... @defer(label: "b") { sibling badExtensions } }';
        const { status, body } = await read(url, { query }, accept);
        expect(status).toBe(200);
        const payloads = jsonLines(body);
        expect(payloads[0]).toMatchObject({ data: { hello: 'world' }, hasNext: true });
        expect(payloads.at(-1)).toMatchObject({ hasNext: false });
        expect(idsOf(payloads, 'completed').toSorted()).toEqual(idsOf(payloads, 'pending').toSorted());
        const parts = payloads.flatMap(({ incremental = [], completed = [] }) => [
          ...incremental,
          ...completed,
        ]);
        expect(parts).toContainEqual(
          expect.objectContaining({ data: { sibling: 'here', badExtensions: null }, errors: MASKED }),
        );
        expect(parts.flatMap(({ errors = [] }) => errors)).toEqual([...MASKED, ...MASKED]);
        expect(body).not.toMatch(/secret|BigInt|on purpose/);
        // The error of the field is reported as well, as in any response.
        expect(reported.filter((error) => error === failure)).toHaveLength(2);
      });
    },
  );

const idsOf = (payloads: readonly Payload[], member: 'pending' | 'completed'): readonly string[] =>
  payloads.flatMap((payload) => (payload[member] ?? []).map(({ id }) => id));

describe.each(ENGINES)('values that JSON cannot represent, with the engine %s', (engine) => {
  it.each(['big', 'circular', 'throwing', 'badExtensions'])(
    'leave the other results of a batch as they are: %s',
    async (field) => {
      const url = await serve({ engine, batching: true });
      const batch = [{ query: '{ hello }' }, { query: `{ ${field} other }` }, { query: 'mutation { set }' }];
      const { status, res, body } = await read(url, batch, 'application/json');
      expect([status, res.headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
      const results: { data: unknown; errors?: object[] }[] = JSON.parse(body);
      expect(results).toHaveLength(3);
      expect(results[0]).toEqual({ data: { hello: 'world' } });
      expect(results[1]?.errors).toEqual(MASKED);
      expect(results[2]?.errors).toEqual(MASKED);
      expect(body).not.toMatch(/BigInt|circular structure|secret|<html/i);
    },
  );

  it.each(['big', 'circular', 'throwing', 'badExtensions'])(
    'are masked errors to Accept: text/event-stream: %s',
    async (field) => {
      const url = await serve({ engine });
      const { status, res, body } = await read(url, { query: `{ ${field} other }` }, 'text/event-stream');
      expect(status).toBe(200);
      expect(res.headers['content-type']).toContain('text/event-stream');
      const [result] = jsonLines(body);
      expect(result?.errors).toEqual(MASKED);
      expect(body).toContain('event: complete');
      expect(body).not.toMatch(/BigInt|circular structure|secret|<html/i);
    },
  );
});
