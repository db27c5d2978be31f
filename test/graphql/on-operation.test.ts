/** @tags graphql engine */
import { once } from 'node:events';
import express from 'express';
import fc from 'fast-check';
import {
  buildSchema,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import {
  type ErrorDetails,
  type GraphQLOptions,
  graphqlHTTP,
  type OperationDetails,
} from '../../middleware/graphql.ts';
import { createSchema } from '../uploads/schema.ts';
import { post, type Running, run, wire } from './server.ts';

const environment = process.env['NODE_ENV'];
beforeAll(() => {
  process.env['NODE_ENV'] = 'production';
});
afterAll(() => {
  process.env['NODE_ENV'] = environment;
});

const TYPES = `
  type Query { add(a: Int!, b: Int = 2): Int, later: String, fails: String, list(length: Int!): [String] }
  type Mutation { count: Int }
`;

interface Served extends Running {
  readonly schema: GraphQLSchema;
  /** The number of executed mutations. */
  mutations(): number;
  /** The errors that `onError` got, with their details. */
  readonly reports: (readonly [error: Error, details: ErrorDetails])[];
  send(body: object, headers?: Record<string, string>): Promise<Response>;
  /** Sends an operation; resolves with status and body. */
  execute(query: string, variables?: object): Promise<{ status: number; body: Record<string, unknown> }>;
}

async function serve(options: GraphQLOptions): Promise<Served> {
  const schema = buildSchema(TYPES);
  let mutations = 0;
  const rootValue = {
    add: ({ a, b }: { a: number; b: number }) => a + b,
    later: async () => 'later',
    fails: () => {
      throw new GraphQLError('on purpose');
    },
    list: ({ length }: { length: number }) => Array.from({ length }, (_, index) => `item ${index}`),
    count: () => ++mutations,
  };
  const reports: [Error, ErrorDetails][] = [];
  const onError = (error: unknown, details: ErrorDetails): void =>
    void reports.push([error as Error, details]);
  const handler = graphqlHTTP(schema, { rootValue, batching: true, onError, ...options });
  const app = express().use('/graphql', handler);
  app.use(
    ((_error, _req, res, _next) => void res.status(500).end('forwarded')) as express.ErrorRequestHandler,
  );
  const server = await run(app);
  const send = (body: object, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  return {
    ...server,
    schema,
    mutations: () => mutations,
    reports,
    send,
    async execute(query, variables) {
      const response = await send({ query, variables });
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    },
  };
}

const forbidden = (): GraphQLError =>
  new GraphQLError('not today', { extensions: { code: 'FORBIDDEN', http: { status: 403 } } });

describe.each(['compiled', 'graphql-js'] as const)('onOperation with the engine %s', (engine) => {
  it('onOperation gets each operation once, with its document, variables, request and context', async () => {
    const seen: OperationDetails[] = [];
    const { schema, send, execute } = await serve({
      engine,
      context: async () => ({ user: 'ada' }),
      onOperation: (operation) => void seen.push(operation),
    });
    const query = 'query Sum($a: Int!, $b: Int = 3) { add(a: $a, b: $b) } query Other { later }';
    const response = await send({ query, variables: { a: 1 }, operationName: 'Sum' }, { 'x-test': 'yes' });
    expect(await response.json()).toEqual({ data: { add: 4 } });
    expect(seen).toHaveLength(1);
    const [details] = seen as [OperationDetails];
    expect(details).toMatchObject({
      operationName: 'Sum',
      variables: { a: 1 },
      coercedVariables: { a: 1, b: 3 },
      context: { user: 'ada' },
      transport: 'http',
      request: { method: 'POST', headers: { 'x-test': 'yes' } },
    });
    expect(details.schema).toBe(schema);
    const { definitions }: DocumentNode = details.document;
    expect(definitions).toHaveLength(2);
    expect(details.operation).toBe(definitions[0] as OperationDefinitionNode);
    // From the document cache.
    expect(await execute('{ later }')).toEqual({ status: 200, body: { data: { later: 'later' } } });
    expect(await execute('{ later }')).toEqual({ status: 200, body: { data: { later: 'later' } } });
    expect(seen.map(({ operationName }) => operationName)).toEqual(['Sum', undefined, undefined]);
    expect(seen[1]).toMatchObject({ variables: {}, coercedVariables: {} });
  });

  it.each([
    ['a syntax error', '{', undefined],
    ['a validation error', '{ unknown }', undefined],
    ['a missing variable', 'query ($a: Int!) { add(a: $a) }', {}],
    ['a variable of a wrong type', 'query ($a: Int!) { add(a: $a) }', { a: 'x' }],
  ])('onOperation is not called for %s, and the response stays the same', async (_, query, variables) => {
    let calls = 0;
    const plain = await serve({ engine });
    const hooked = await serve({ engine, onOperation: () => void calls++ });
    for (const accept of ['application/json', 'application/graphql-response+json']) {
      const [first, second] = await Promise.all(
        [plain, hooked].map(({ send }) => send({ query, variables }, { accept })),
      );
      expect(second?.status).toBe(first?.status);
      expect(await second?.text()).toBe(await first?.text());
    }
    expect(calls).toBe(0);
  });

  const throws = (): never => {
    throw forbidden();
  };
  it.each<[string, GraphQLOptions['onOperation']]>([
    ['throws', throws],
    ['rejects', async () => throws()],
    ['returns errors', () => ({ errors: [forbidden()] })],
    ['resolves with errors', async () => ({ errors: [forbidden()], extensions: { ignored: true } })],
  ])('an operation is refused with code and status when onOperation %s', async (_, onOperation) => {
    const { execute, mutations, reports } = await serve({ engine, onOperation });
    expect(await execute('mutation { count }')).toEqual({
      status: 403,
      body: { errors: [{ message: 'not today', extensions: { code: 'FORBIDDEN' } }] },
    });
    expect(mutations()).toBe(0);
    expect(reports).toEqual([]);
  });

  it('onOperation refuses with the status of an invalid request if its error has none', async () => {
    const { send } = await serve({ engine, onOperation: () => ({ errors: [new GraphQLError('no')] }) });
    const statusFor = async (accept: string): Promise<number> =>
      (await send({ query: '{ later }' }, { accept })).status;
    expect(await statusFor('application/json')).toBe(200);
    expect(await statusFor('application/graphql-response+json')).toBe(400);
  });

  it('an empty list of errors, empty extensions and no return value change nothing', async () => {
    const decisions = [undefined, {}, { errors: [] }, { extensions: {} }, { errors: [], extensions: {} }];
    for (const decision of decisions) {
      const { execute } = await serve({ engine, onOperation: () => decision });
      expect(await execute('{ add(a: 1) }')).toEqual({ status: 200, body: { data: { add: 3 } } });
    }
  });

  it.each([
    ['data', '{ add(a: 1) }'],
    ['data of asynchronous resolvers', '{ later }'],
    ['data with errors', '{ fails add(a: 1) }'],
    ['long data', '{ list(length: 20000) }'],
    ['the data of a mutation', 'mutation { count }'],
  ])('extensions of onOperation are added to %s', async (_, query) => {
    const plain = await serve({ engine });
    const expected = await plain.execute(query);
    const extensions = { cost: 7, nested: [{ 'ü"': null }] };
    for (const onOperation of [() => ({ extensions }), async () => ({ extensions })]) {
      const { execute } = await serve({ engine, onOperation });
      const { status, body } = await execute(query);
      expect(status).toBe(expected.status);
      expect(body).toEqual({ ...expected.body, extensions });
      expect(Object.keys(body).at(-1)).toBe('extensions');
    }
  });

  it('any extensions with a JSON form are added to the unchanged response', async () => {
    let extensions: object = {};
    const { execute } = await serve({ engine, onOperation: () => ({ extensions: { ...extensions } }) });
    const plain = await serve({ engine });
    const documents = ['{ add(a: 1) }', '{ later fails }', '{ list(length: 300) }'];
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue()),
        fc.constantFrom(...documents),
        async (generated, query) => {
          extensions = JSON.parse(JSON.stringify(generated));
          const [expected, actual] = await Promise.all([plain.execute(query), execute(query)]);
          const added = Object.keys(extensions).length === 0 ? {} : { extensions: { ...extensions } };
          expect(actual).toEqual({ status: expected.status, body: { ...expected.body, ...added } });
        },
      ),
      { numRuns: 60 },
    );
  });

  it('onOperation runs for each operation of a batch, and a refused one leaves the others alone', async () => {
    const { send, mutations } = await serve({
      engine,
      onOperation: async ({ operationName, operation }) => {
        if (operation.operation === 'mutation') throw forbidden();
        return { extensions: { operationName } };
      },
    });
    const response = await send([
      { query: 'query A { add(a: 1) }' },
      { query: 'mutation B { count }' },
      { query: 'query C { later }' },
    ]);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual([
      { data: { add: 3 }, extensions: { operationName: 'A' } },
      { errors: [{ message: 'not today', extensions: { code: 'FORBIDDEN' } }] },
      { data: { later: 'later' }, extensions: { operationName: 'C' } },
    ]);
    expect(mutations()).toBe(0);
  });

  it.each<[string, GraphQLOptions['onOperation']]>([
    [
      'throws',
      () => {
        throw new Error('secret');
      },
    ],
    ['rejects', () => Promise.reject(new Error('secret'))],
  ])('an unexpected error is masked and goes to onError once when onOperation %s', async (_, onOperation) => {
    const { send, mutations, reports } = await serve({ engine, onOperation });
    const response = await send({ query: 'mutation Named { count }' });
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ errors: [{ message: 'Internal server error' }] });
    expect(mutations()).toBe(0);
    expect(reports).toMatchObject([
      [{ message: 'secret' }, { transport: 'http', operationName: 'Named', request: { method: 'POST' } }],
    ]);
  });

  it('the message of an error in the list that is not a GraphQLError is masked and reported', async () => {
    const errors = [new TypeError('secret') as GraphQLError, forbidden()];
    const { execute, reports } = await serve({ engine, onOperation: () => ({ errors }) });
    expect(await execute('{ later }')).toEqual({
      status: 403,
      body: {
        errors: [
          { message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR' } },
          { message: 'not today', extensions: { code: 'FORBIDDEN' } },
        ],
      },
    });
    expect(reports).toMatchObject([[{ message: 'secret' }, { transport: 'http' }]]);
  });

  it.each([
    ['true', true],
    ['a GraphQLError', forbidden()],
    ['a list of errors', [forbidden()]],
    ['a misspelt member', { error: [forbidden()] }],
    ['a single error', { errors: forbidden() }],
    ['messages', { errors: ['no'] }],
    ['extensions that are a list', { extensions: [1] }],
    ['extensions whose JSON is not an object', { extensions: { toJSON: () => 1 } }],
    ['extensions without JSON', { extensions: { cost: 1n } }],
  ])('an operation does not run when onOperation returns %s', async (_, returned) => {
    for (const onOperation of [() => returned, async () => returned]) {
      const { send, mutations, reports } = await serve({
        engine,
        onOperation: onOperation as GraphQLOptions['onOperation'],
      });
      expect((await send({ query: 'mutation { count }' })).status).toBe(500);
      expect(mutations()).toBe(0);
      expect(reports).toHaveLength(1);
    }
  });

  it('a mutation does not run when its client disconnects while onOperation waits', async () => {
    let proceed: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => {
      proceed = resolve;
    });
    let called: () => void = () => undefined;
    const calling = new Promise<void>((resolve) => {
      called = resolve;
    });
    const { server, port, mutations, reports } = await serve({
      engine,
      onOperation: () => {
        called();
        return waiting;
      },
    });
    const arrived = once(server, 'request');
    const client = wire(port);
    client.write(post('{"query":"mutation { count }"}'));
    const [, res] = await arrived;
    await calling;
    const left = once(res, 'close');
    client.socket.resetAndDestroy();
    await left;
    proceed();
    await new Promise((resolve) => setImmediate(resolve));
    expect(mutations()).toBe(0);
    expect(reports).toEqual([]);
  });
});

describe('onOperation', () => {
  it('onOperation gets the files of an upload in its variables', async () => {
    const seen: unknown[] = [];
    const handler = graphqlHTTP(createSchema([]), {
      onOperation: ({ variables }) => void seen.push(variables['file']),
    });
    const server = await run((req, res) => handler(req, res));
    const form = new FormData();
    const query = 'mutation ($file: Upload!) { one(file: $file) { text } }';
    form.set('operations', JSON.stringify({ query, variables: { file: null } }));
    form.set('map', '{"0":["variables.file"]}');
    form.set('0', new File(['hello'], 'a.txt'));
    const headers = { 'graphql-require-preflight': '1' };
    const response = await fetch(server.url, { method: 'POST', body: form, headers });
    expect(await response.json()).toEqual({ data: { one: { text: 'hello' } } });
    expect(seen).toMatchObject([{ filename: 'a.txt' }]);
  });

  it('extensions of onOperation join those of an engine function', async () => {
    const { execute } = await serve({
      engine: () => ({ data: { later: 'x' }, extensions: { from: 'engine', cost: 1 } }),
      onOperation: () => ({ extensions: { cost: 7 } }),
    });
    expect((await execute('{ later }')).body).toEqual({
      data: { later: 'x' },
      extensions: { from: 'engine', cost: 7 },
    });
  });

  it('onOperation runs for a query over GET', async () => {
    const { url } = await serve({ onOperation: () => ({ extensions: { cost: 1 } }) });
    const response = await fetch(`${url}?query={later}`);
    expect(await response.json()).toEqual({ data: { later: 'later' }, extensions: { cost: 1 } });
  });
});
