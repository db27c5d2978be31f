/** @tags graphql engine */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import express from 'express';
import {
  buildSchema,
  type GraphQLObjectType,
  getOperationAST,
  type OperationDefinitionNode,
  parse,
} from 'graphql';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { compileCost, evaluate } from '../../src/cost/operation-cost.ts';
import { type Running, run } from '../graphql/server.ts';
import { atEnd } from '../kit.ts';
import { LEGACY, MODERN, ready } from '../live/client.ts';

const SDL = `
  directive @cost(weight: String!) on FIELD_DEFINITION
  directive @listSize(slicingArguments: [String!], sizedFields: [String!]) on FIELD_DEFINITION
  scalar Any
  type Query {
    cheap: Int
    costly: Int @cost(weight: "600")
    items(first: Int!): [Item!]! @listSize(slicingArguments: ["first"])
    any(first: Any): [Item] @listSize(slicingArguments: ["first"])
  }
  type Mutation { rename: Int }
  type Subscription { ticks(first: Int!): [Item] @listSize(slicingArguments: ["first"]) }
  type Item { id: ID parent: Item }
`;
const schema = buildSchema(SDL);

let executed = 0;
const rootValue = {
  cheap: () => ++executed,
  costly: () => ++executed,
  items: ({ first }: { first: number }) => Array.from({ length: Math.min(first, 3) }, (_, id) => ({ id })),
  rename: () => ++executed,
  async *ticks() {
    yield { ticks: [] };
  },
};

beforeEach(() => {
  executed = 0;
});

interface Refused {
  readonly errors: readonly { readonly extensions: { readonly code: string; readonly cost: number } }[];
}

interface Served extends Running {
  post(body: object, headers?: Record<string, string>): Promise<Response>;
}

async function serve(options: GraphQLOptions, served = schema): Promise<Served> {
  const handler = graphqlHTTP(served, { rootValue, batching: true, ...options });
  const server = await run(express().use('/graphql', handler));
  const subscriptions = attachSubscriptions(server.server, handler, { path: '/graphql' });
  atEnd(async () => {
    await subscriptions.close();
  });
  const post = (body: object, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  return { ...server, post };
}

describe.each(['compiled', 'graphql-js'] as const)('the option cost with the engine %s', (engine) => {
  it('an operation above maxCost is refused with COST_LIMIT and not executed', async () => {
    const { post } = await serve({ engine, cost: { maxCost: 500 } });
    const response = await post({ query: '{ costly }' });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      errors: [
        {
          message: 'The operation costs 600; the maximum is 500. Select fewer fields or shorter lists',
          extensions: { code: 'COST_LIMIT', cost: 600, maxCost: 500 },
        },
      ],
    });
    expect(executed).toBe(0);
    expect(await (await post({ query: '{ cheap }' })).json()).toEqual({ data: { cheap: 1 } });
  });

  it('the cost of an operation depends on the variables of each request', async () => {
    const { post } = await serve({ engine, cost: { maxCost: 10 } });
    const query = 'query ($n: Int!) { items(first: $n) { id parent { id } } }';
    for (const [n, status] of [
      [5, 200],
      [6, 400],
      [4, 200],
    ] as const) {
      const response = await post({ query, variables: { n } });
      expect([response.status, response.headers.get('graphql-cost')]).toEqual([status, `${n * 2};max=10`]);
    }
  });

  it('the error of an invalid variable is sent before the cost is computed', async () => {
    const { post } = await serve({ engine, cost: true });
    const query = 'query ($n: Int!) { items(first: $n) { id } }';
    const response = await post({ query, variables: { n: 'many' } });
    expect(await response.json()).toMatchObject({ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
  });
});

describe('the option cost', () => {
  it('an object as the variable of a list size is an error of the client', async () => {
    const { post } = await serve({ cost: true });
    const query = 'query ($n: Any) { any(first: $n) { id } }';
    for (const n of [{ valueOf: 1, toString: 1 }, { toString: null }, {}]) {
      const response = await post({ query, variables: { n } });
      expect(await response.json()).toMatchObject({ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
    }
  });

  it('the cost of a large variable is computed once for all fields that use it', () => {
    const types = buildSchema('input In { a: Int } type Query { set(in: [In]): Query }');
    const source = `query ($in: [In]) { ${Array.from({ length: 90 }, (_, i) => `f${i}: set(in: $in)`)} }`;
    const document = parse(source);
    const operation = getOperationAST(document) as OperationDefinitionNode;
    const defaults = { listSize: 10, mutation: 10, requiresSlicing: true };
    const formula = compileCost({ schema: types, document, operation }, defaults);
    let read = 0;
    const item = {
      get a() {
        read += 1;
        return 1;
      },
    };
    expect(evaluate(formula, { in: [item, item] })).toBe(90 * 3);
    expect(read).toBe(2);
  });

  it('infinite sizes do not exceed maxCost unnoticed, alone or in a batch', async () => {
    const { post } = await serve({ cost: { maxCost: 1000 } });
    const infinite = {
      query: 'query ($n: Any) { any(first: $n) { id } costly }',
      variables: { n: 'Infinity' },
    };
    const alone = await post(infinite);
    expect([alone.status, alone.headers.get('graphql-cost')]).toEqual([400, '9007199254740991;max=1000']);
    const batch = await post([infinite, { query: '{ costly }' }, { query: '{ costly }' }]);
    const codes = ((await batch.json()) as { errors?: [{ extensions: { code: string } }] }[]).map(
      ({ errors }) => errors?.[0].extensions.code,
    );
    expect(codes).toEqual(['COST_LIMIT', undefined, 'COST_LIMIT']);
    expect(executed).toBe(1);
  });

  it('trusted documents are priced when they are loaded, and requests only evaluate the formula', async () => {
    const own = buildSchema(SDL);
    const query = 'query Items($n: Int!) { items(first: $n) { id parent { id } } }';
    const { post } = await serve({ cost: { maxCost: 10 }, documents: { from: { items: query } } }, own);
    // A cost is compiled from the fields of the types.
    const root = own.getQueryType() as GraphQLObjectType;
    const { getFields } = root;
    let reads = 0;
    root.getFields = () => {
      reads++;
      return getFields.call(root);
    };
    const codeAndCost = async (body: object): Promise<unknown> => {
      const { errors } = (await (await post({ ...body, variables: { n: 6 } })).json()) as Refused;
      return [errors[0]?.extensions.code, errors[0]?.extensions.cost];
    };
    expect(await codeAndCost({ documentId: 'items' })).toEqual(['COST_LIMIT', 12]);
    expect(reads).toBe(0);
    expect(await codeAndCost({ query })).toEqual(['COST_LIMIT', 12]);
    expect(reads).toBeGreaterThan(0);
  });

  it('the operations of a batch share maxCost', async () => {
    const { post } = await serve({ cost: { maxCost: 1000 } });
    const response = await post([{ query: '{ costly }' }, { query: '{ costly }' }]);
    expect(await response.json()).toMatchObject([
      { data: { costly: 1 } },
      {
        errors: [
          { message: expect.stringContaining('The batch costs 1200'), extensions: { code: 'COST_LIMIT' } },
        ],
      },
    ]);
  });

  it('the header GraphQL-Cost of a batch has the cost of all its operations', async () => {
    const batch = [{ query: '{ costly }' }, { query: '{ costly }' }];
    const refusing = await serve({ cost: { maxCost: 1000 } });
    expect((await refusing.post(batch)).headers.get('graphql-cost')).toBe('1200;max=1000');
    const reporting = await serve({ cost: { maxCost: 5, reportOnly: true } });
    expect((await reporting.post(batch)).headers.get('graphql-cost')).toBe('1200;max=5');
  });

  it.each<[string, GraphQLOptions]>([
    ['the header GraphQL-Cost', { cost: true }],
    ['the headers of a budget', { budget: { limit: 10_000 } }],
  ])(
    'a batch as JSON lines has all results although the first line is sent before %s',
    async (_, options) => {
      const reports: unknown[] = [];
      const { post } = await serve({ onError: (error) => void reports.push(error), ...options });
      const batch = [{ query: '{ cheap }' }, { query: 'mutation { rename }' }, { query: '{ cheap }' }];
      const text = await (await post(batch, { accept: 'application/jsonl' })).text();
      const lines = text
        .trim()
        .split('\n')
        .map((line): object => JSON.parse(line));
      expect(lines).toEqual([
        { requestIndex: 0, data: { cheap: 1 } },
        { requestIndex: 1, data: { rename: 2 } },
        { requestIndex: 2, data: { cheap: 3 } },
      ]);
      expect(reports).toEqual([]);
    },
  );

  it('reportOnly refuses no operation, and the header and the diagnostics channel show the cost', async () => {
    const events: unknown[] = [];
    const listen = (event: unknown): void => void events.push(event);
    subscribe('espalier:graphql:cost', listen);
    try {
      const { post } = await serve({ cost: { maxCost: 5, reportOnly: true } });
      const response = await post({ query: '{ costly }' });
      expect(response.headers.get('graphql-cost')).toBe('600;max=5');
      expect(await response.json()).toEqual({ data: { costly: 1 } });
      expect(events).toEqual([
        { source: expect.anything(), operation: expect.anything(), cost: 600, maxCost: 5, refused: false },
      ]);
    } finally {
      unsubscribe('espalier:graphql:cost', listen);
    }
  });

  it('the diagnostics channel shows operations that are refused for their cost', async () => {
    const costs: unknown[] = [];
    const listen = (event: unknown): void => void costs.push(event);
    subscribe('espalier:graphql:cost', listen);
    const { post } = await serve({ cost: { maxCost: 5 } });
    await post({ query: '{ costly }' });
    unsubscribe('espalier:graphql:cost', listen);
    expect(costs).toEqual([expect.objectContaining({ cost: 600, refused: true })]);
  });

  it('onOperation is not called for an operation above maxCost', async () => {
    let called = 0;
    const { post } = await serve({ cost: { maxCost: 5 }, onOperation: () => void called++ });
    await post({ query: '{ costly }' });
    await post({ query: '{ cheap }' });
    expect(called).toBe(1);
  });

  it('graphqlHTTP sends no cost header and limits no cost without the option cost', async () => {
    const { post } = await serve({});
    const response = await post({ query: '{ a: costly b: costly c: costly }' });
    expect(response.headers.get('graphql-cost')).toBeNull();
    expect(response.status).toBe(200);
  });

  it.each([MODERN, LEGACY])(
    'an operation above maxCost gets an error over %s, and the socket stays open',
    async (protocol) => {
      const { port } = await serve({ cost: { maxCost: 10 } });
      const client = await ready(`ws://127.0.0.1:${port}/graphql`, protocol);
      const [type, next] = protocol === MODERN ? ['subscribe', 'next'] : ['start', 'data'];
      client.send({ id: '1', type, payload: { query: 'subscription { ticks(first: 50) { id } }' } });
      client.send({ id: '2', type, payload: { query: 'subscription { ticks(first: 5) { id } }' } });
      const messages = await client.until(({ id }) => id === '2');
      expect(JSON.stringify(messages.find(({ id }) => id === '1'))).toContain('COST_LIMIT');
      expect(messages.find(({ id }) => id === '2')?.['type']).toBe(next);
      await client.close();
    },
  );

  it('graphqlHTTP refuses a schema with a wrong weight', () => {
    const wrong = buildSchema(
      'directive @cost(weight: String!) on FIELD_DEFINITION type Query { a: Int @cost(weight: "much") }',
    );
    expect(() => graphqlHTTP(wrong, { cost: true })).toThrow(
      'the argument "weight" of @cost of "a" has a wrong value; accepted: a number, or a string with a number',
    );
    expect(() => graphqlHTTP(wrong)).not.toThrow();
  });
});
