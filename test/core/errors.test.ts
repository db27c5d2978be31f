/** @tags graphql engine */
import diagnostics from 'node:diagnostics_channel';
import { rmdirSync } from 'node:fs';
import {
  buildSchema,
  type ExecutionResult,
  GraphQLBoolean,
  GraphQLEnumType,
  GraphQLError,
  GraphQLFloat,
  GraphQLID,
  GraphQLInputObjectType,
  GraphQLInt,
  GraphQLInterfaceType,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
  graphql,
  type ValidationRule,
} from 'graphql';
import { type ErrorDetails, type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { run } from '../graphql/server.ts';
import { makeFolder } from '../kit.ts';

const SECRET = 'sk-live-123';
const ROW = { id: 7, apiKey: SECRET };

const Color = new GraphQLEnumType({ name: 'Color', values: { RED: {} } });
const Likeness = new GraphQLInputObjectType({
  name: 'Likeness',
  fields: { secretName: { type: GraphQLInt } },
});
const Node = new GraphQLInterfaceType({
  name: 'Node',
  fields: { id: { type: GraphQLID } },
  resolveType: () => SECRET,
});
const Nameless = new GraphQLInterfaceType({
  name: 'Nameless',
  fields: { id: { type: GraphQLID } },
  resolveType: () => undefined,
});
const Thing = new GraphQLObjectType({
  name: 'Thing',
  fields: { id: { type: GraphQLID } },
  interfaces: [Node, Nameless],
  isTypeOf: () => false,
});

const field = (type: GraphQLOutputType, value: unknown) => ({ type, resolve: () => value });
const throwing = (make: () => unknown) => ({
  type: GraphQLString,
  resolve: () => {
    throw make();
  },
});

const schema = new GraphQLSchema({
  types: [Thing],
  query: new GraphQLObjectType({
    name: 'Query',
    fields: {
      hello: field(GraphQLString, 'world'),
      string: field(GraphQLString, ROW),
      int: field(GraphQLInt, `DATABASE_URL=${SECRET}`),
      bigInt: field(GraphQLInt, 2 ** 40),
      float: field(GraphQLFloat, SECRET),
      boolean: field(GraphQLBoolean, SECRET),
      id: field(GraphQLID, ROW),
      color: field(Color, SECRET),
      thing: field(Thing, ROW),
      node: field(Node, ROW),
      nameless: field(Nameless, ROW),
      list: field(new GraphQLList(GraphQLString), 42),
      strings: field(new GraphQLList(GraphQLString), ['a', ROW]),
      later: field(GraphQLString, Promise.resolve(ROW)),
      required: field(new GraphQLNonNull(GraphQLString), null),
      crash: throwing(() => new Error(SECRET)),
      text: throwing(() => SECRET),
      refused: throwing(() => new GraphQLError('not yours', { extensions: { code: 'FORBIDDEN' } })),
      teapot: throwing(() =>
        Object.assign(new Error(SECRET), {
          extensions: { secret: SECRET, http: { status: 418, headers: { 'x-secret': SECRET } } },
        }),
      ),
      struct: throwing(() => Object.assign(new Error(SECRET), { path: ['email'] })),
      getter: throwing(() =>
        Object.defineProperty(new Error(SECRET), 'extensions', {
          get: () => {
            throw new Error(SECRET);
          },
        }),
      ),
      number: throwing(() => Object.assign(new GraphQLError('x'), { message: 42 })),
      sum: { type: GraphQLInt, args: { a: { type: new GraphQLNonNull(GraphQLInt) } }, resolve: () => 1 },
      paint: {
        type: GraphQLInt,
        args: { color: { type: Color }, like: { type: Likeness } },
        resolve: () => 1,
      },
    },
  }),
});

type Report = [error: unknown, details: ErrorDetails];
const environment = process.env['NODE_ENV'];

afterEach(async () => {
  process.env['NODE_ENV'] = environment;
  jest.restoreAllMocks();
});

/** Serves the schema, and collects the reports of unexpected errors. */
async function serve(options: GraphQLOptions = {}) {
  const reports: Report[] = [];
  const handler = graphqlHTTP(schema, { onError: (...report) => void reports.push(report), ...options });
  const server = await run(handler);
  const post = async (body: object) => {
    const headers = { 'content-type': 'application/json', accept: 'application/graphql-response+json' };
    const response = await fetch(server.url, { method: 'POST', headers, body: JSON.stringify(body) });
    return {
      status: response.status,
      headers: response.headers,
      ...((await response.json()) as { errors: GraphQLError[]; data?: object }),
    };
  };
  return { reports, post, url: server.url };
}

describe.each(['compiled', 'graphql-js'] as const)('with the engine %s', (engine) => {
  it.each([
    'string',
    'int',
    'bigInt',
    'float',
    'boolean',
    'id',
    'color',
    'thing',
    'node',
    'nameless',
    'list',
    'strings',
    'later',
    'crash',
    'text',
    'teapot',
    'struct',
  ])('graphqlHTTP hides and reports the error of the field %s in production', async (name) => {
    process.env['NODE_ENV'] = 'production';
    const { post, reports } = await serve({ engine });
    const selection = ['thing', 'node', 'nameless'].includes(name) ? `${name} { id }` : name;
    const { status, headers, errors, data } = await post({ query: `query Q { ${selection} hello }` });
    expect(status).toBe(200);
    expect(headers.get('x-secret')).toBeNull();
    expect(data).toMatchObject({ hello: 'world' });
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({
      message: 'Internal server error',
      extensions: { code: 'INTERNAL_SERVER_ERROR' },
    });
    expect(Object.keys(errors[0]?.extensions ?? {})).toEqual(['code']);
    expect(JSON.stringify(errors)).not.toContain(SECRET);
    expect(reports).toHaveLength(1);
    expect(reports[0]?.[0]).toBeInstanceOf(Error);
    expect(reports[0]?.[1]).toMatchObject({ transport: 'http', operationName: 'Q', socket: undefined });
    expect(reports[0]?.[1].request?.url).toBe('/graphql');
  });

  it('graphqlHTTP reports the path of the field, and the error that the resolver threw', async () => {
    const { post, reports } = await serve({ engine });
    await post({ query: '{ renamed: crash }' });
    expect(reports).toEqual([
      [new Error(SECRET), expect.objectContaining({ path: ['renamed'], operationName: undefined })],
    ]);
  });

  it('graphqlHTTP sends and reports the message about a null for a non-null field', async () => {
    process.env['NODE_ENV'] = 'production';
    const { post, reports } = await serve({ engine });
    const { errors } = await post({ query: '{ required }' });
    expect(errors[0]?.message).toBe('Cannot return null for non-nullable field Query.required.');
    expect(reports).toHaveLength(1);
  });

  it('graphqlHTTP sends a thrown GraphQLError as it is, and does not report it', async () => {
    const { post, reports } = await serve({ engine });
    const { errors } = await post({ query: '{ refused }' });
    expect(errors[0]).toMatchObject({ message: 'not yours', extensions: { code: 'FORBIDDEN' } });
    expect(reports).toEqual([]);
  });

  it('graphqlHTTP sends the message of an unexpected error as extensions.debug outside production', async () => {
    const { post } = await serve({ engine });
    const { errors } = await post({ query: '{ crash }' });
    expect(errors[0]?.extensions).toEqual({ code: 'INTERNAL_SERVER_ERROR', debug: SECRET });
  });

  it.each([undefined, 'production', 'staging'])(
    'extensions.debug needs an explicit NODE_ENV, not %s',
    async (name) => {
      if (name === undefined) delete process.env['NODE_ENV'];
      else process.env['NODE_ENV'] = name;
      const { post } = await serve({ engine });
      const { errors } = await post({ query: '{ crash }' });
      expect(errors[0]?.extensions).toEqual({ code: 'INTERNAL_SERVER_ERROR' });
    },
  );

  it('graphqlHTTP hides and reports an error whose properties cannot be read', async () => {
    process.env['NODE_ENV'] = 'production';
    const { post, reports } = await serve({ engine });
    const { status, errors, data } = await post({ query: '{ hello getter }' });
    expect([status, errors.length, reports.length]).toEqual([200, 1, 1]);
    expect(JSON.stringify(errors)).not.toContain(SECRET);
    // graphql-js 16 gives up the whole operation.
    if (engine === 'compiled') expect(data).toEqual({ hello: 'world', getter: null });
  });

  it('graphqlHTTP sends a message that is not a string as text', async () => {
    const { post } = await serve({ engine });
    expect((await post({ query: '{ number }' })).errors[0]?.message).toBe('42');
  });

  it.each([
    ['a field', { query: '{ helo }' }],
    ['an argument', { query: '{ paint(colour: RED) }' }],
    ['a type', { query: 'query ($c: Colour) { paint(color: $c) }' }],
    ['a fragment type', { query: '{ ... on Querry { hello } }' }],
    ['a value of an enum', { query: '{ paint(color: RAD) }' }],
    ['a value of an enum in quotes', { query: '{ paint(color: "RED") }' }],
    ['a field of an input', { query: '{ paint(like: { secretNam: 1 }) }' }],
    [
      'a value of an enum in a variable',
      { query: 'query ($c: Color) { paint(color: $c) }', variables: { c: 'RAD' } },
    ],
    [
      'a field of an input in a variable',
      { query: 'query ($l: Likeness) { paint(like: $l) }', variables: { l: { secretNam: 1 } } },
    ],
  ])('graphqlHTTP with introspection: false does not suggest the name of %s', async (_what, body) => {
    const suggested = JSON.stringify((await (await serve({ engine })).post(body)).errors);
    const hidden = JSON.stringify((await (await serve({ engine, introspection: false })).post(body)).errors);
    expect(suggested).toMatch(/ Did you mean /);
    expect(hidden).not.toMatch(/Did you mean|secretName\b|"hello/);
  });

  it.each([
    '{ __schema { queryType { name } } }',
    '{ __type(name: "Query") { name } }',
    '{ renamed: __type(name: "Query") { name } }',
    '{ ... { ... on Query { __schema { types { name } } } } }',
    '{ ...F } fragment F on Query { __type(name: "Query") { name } }',
    '{ hello __schema @skip(if: true) { types { name } } }',
  ])('graphqlHTTP with introspection: false refuses %s', async (query) => {
    const { post } = await serve({ engine, introspection: false });
    const { status, errors, data } = await post({ query });
    expect([status, data, errors[0]?.extensions['code']]).toEqual([400, undefined, 'INTROSPECTION_OFF']);
    expect((await post({ query: '{ __typename }' })).data).toEqual({ __typename: 'Query' });
  });

  it.each([
    ['GRAPHQL_PARSE_FAILED', { query: '{' }],
    ['GRAPHQL_VALIDATION_FAILED', { query: '{ nope }' }],
    ['BAD_USER_INPUT', { query: 'query ($a: Int!) { sum(a: $a) }', variables: { a: 'x' } }],
    ['OPERATION_RESOLUTION_FAILURE', { query: 'query A { hello } query B { hello }' }],
    ['OPERATION_RESOLUTION_FAILURE', { query: '{ hello }', operationName: 'A' }],
  ])('graphqlHTTP sends the code %s and 400, and reports nothing', async (code, body) => {
    const { post, reports } = await serve({ engine });
    const { status, errors } = await post(body);
    expect([status, errors[0]?.extensions['code']]).toEqual([400, code]);
    expect(reports).toEqual([]);
  });

  it('graphqlHTTP logs an unexpected error once, with the operation and the path, by default', async () => {
    const log = jest.spyOn(console, 'error').mockImplementation();
    const { post } = await serve({ engine, onError: undefined });
    await post({ query: 'query Named { crash }' });
    expect(log.mock.calls).toEqual([
      [
        expect.stringMatching(/unexpected error in the operation "Named" at "crash" \(http\)/),
        new Error(SECRET),
      ],
    ]);
  });

  it('graphqlHTTP logs nothing with onError: false', async () => {
    const log = jest.spyOn(console, 'error').mockImplementation();
    const { post } = await serve({ engine, onError: false });
    expect((await post({ query: '{ crash }' })).errors).toHaveLength(1);
    expect(log).not.toHaveBeenCalled();
  });
});

it.each([
  [
    'throws',
    () => {
      throw new Error('no disk');
    },
  ],
  ['rejects', () => Promise.reject(new Error('no disk'))],
])('graphqlHTTP logs both errors when onError %s, and sends the response', async (_how, onError) => {
  const log = jest.spyOn(console, 'error').mockImplementation();
  const { post } = await serve({ onError });
  expect((await post({ query: '{ crash hello }' })).data).toEqual({ crash: null, hello: 'world' });
  expect(log.mock.calls.flat()).toEqual(expect.arrayContaining([new Error(SECRET), new Error('no disk')]));
});

it.each([false, true])(
  'graphqlHTTP with introspection: %s decides about suggestions in the messages of graphql',
  async (introspection) => {
    // Some versions of graphql do not know the option hideSuggestions.
    const rule: ValidationRule = (context) => ({
      Document: () => void context.reportError(new GraphQLError('Unknown field. Did you mean "apiKey"?')),
    });
    const { post } = await serve({ validationRules: [rule], introspection });
    const { errors } = await post({ query: '{ hello }' });
    expect(errors[0]?.message).toBe(
      introspection ? 'Unknown field. Did you mean "apiKey"?' : 'Unknown field.',
    );
  },
);

it('an upload that cannot be stored is reported once, and its message is hidden', async () => {
  process.env['NODE_ENV'] = 'production';
  const folder = makeFolder();
  const { url, reports } = await serve({ uploads: { tempDir: folder, memoryBytes: 0 } });
  rmdirSync(folder);
  const form = new FormData();
  form.set('operations', JSON.stringify({ query: '{ hello }', variables: { file: null } }));
  form.set('map', '{"0":["variables.file"]}');
  form.set('0', new Blob(['x'.repeat(100_000)]), 'x.txt');
  const response = await fetch(url, { method: 'POST', body: form });
  const body = await response.text();
  expect([response.status, JSON.parse(body).errors[0].message]).toEqual([500, 'Internal server error']);
  expect(body).not.toContain(folder);
  expect(reports).toEqual([[expect.objectContaining({ code: 'ENOENT' }), expect.anything()]]);
});

describe('an error of the context function', () => {
  const context = (): never => {
    throw new Error(SECRET);
  };

  it('an error of the context function is reported once and hidden on a bare server', async () => {
    process.env['NODE_ENV'] = 'production';
    const { post, reports } = await serve({ context });
    const { status, errors } = await post({ query: 'query Q { hello }' });
    expect([status, errors[0]?.message]).toEqual([500, 'Internal server error']);
    expect(reports).toEqual([[new Error(SECRET), expect.objectContaining({ operationName: 'Q' })]]);
  });

  it('an error of the context function is masked below an Express app too, and reported once', async () => {
    const reports: unknown[] = [];
    const handled: unknown[] = [];
    const handler = graphqlHTTP(schema, { context, onError: (error) => void reports.push(error) });
    const server = await run((req, res) => handler(req, res, (error) => handled.push(error)));
    const response = await fetch(`${server.url}?query={hello}`);
    expect([response.status, response.headers.get('content-type')]).toEqual([
      500,
      'application/json; charset=utf-8',
    ]);
    expect(await response.json()).toMatchObject({
      errors: [{ message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR' } }],
    });
    expect([reports, handled]).toEqual([[new Error(SECRET)], []]);
  });

  it('an error of the context function with a status goes to the error handlers, which log it', async () => {
    const log = jest.spyOn(console, 'error').mockImplementation();
    const error = Object.assign(new Error('no session'), { status: 401 });
    const handled: unknown[] = [];
    const handler = graphqlHTTP(schema, {
      context: () => {
        throw error;
      },
    });
    const server = await run((req, res) =>
      handler(req, res, (passed) => {
        handled.push(passed);
        res.writeHead(401).end();
      }),
    );
    expect((await fetch(`${server.url}?query={hello}`)).status).toBe(401);
    expect(handled).toEqual([error]);
    expect(log).not.toHaveBeenCalled();
  });
});

it.each([
  ['undefined', undefined],
  ['an object with wrong errors', { errors: 'x' }],
])(
  'with cacheControl, an engine function that resolves with %s causes a 500 and no unhandled rejection',
  async (_, value) => {
    const unhandled: unknown[] = [];
    const notice = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', notice);
    const engine: GraphQLOptions['engine'] = async () => value as unknown as ExecutionResult;
    const handler = graphqlHTTP(buildSchema('type Query { a: Int }'), {
      engine,
      httpCache: true,
      onError: false,
    });
    const server = await run((req, res) => handler(req, res));
    try {
      const response = await fetch(`${server.url}?query={a}`);
      expect(response.status).toBe(500);
      await new Promise((resolve) => setImmediate(resolve));
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', notice);
    }
  },
);

describe('errors that wrap other errors', () => {
  const typeDefs = 'type Query { outer: String, direct: String }';
  const inner = buildSchema('type Query { inner: String }');
  const failure = new Error('connect ECONNREFUSED 10.0.0.5:5432');
  const serveWrapped = (wrap: (error: GraphQLError) => unknown) =>
    graphqlHTTP(buildSchema(typeDefs), {
      rootValue: {
        outer: async () => {
          const result = await graphql({
            schema: inner,
            source: '{ inner }',
            rootValue: {
              inner: () => {
                throw failure;
              },
            },
          });
          throw wrap(result.errors?.[0] as GraphQLError);
        },
        direct: () => {
          throw new GraphQLError('Try again later', { originalError: failure });
        },
      },
      onError: (error) => void reported.push(error),
    });
  const reported: unknown[] = [];
  const read = async (handler: ReturnType<typeof graphqlHTTP>, query: string) => {
    reported.length = 0;
    const server = await run((req, res) => handler(req, res));
    const body = (await (await fetch(`${server.url}?query=${query}`)).json()) as {
      errors: { message: string }[];
    };
    await server.close();
    return body.errors[0]?.message;
  };

  it.each<[string, (error: GraphQLError) => unknown]>([
    ['as it is', (error) => error],
    ['in a GraphQLError', (error) => new GraphQLError(error.message, { originalError: error })],
    [
      'in a GraphQLError with a path, as delegation does',
      (error) => new GraphQLError(error.message, { path: ['outer'], originalError: error }),
    ],
  ])('an unexpected error of a nested execution, thrown %s, is masked and reported once', async (_, wrap) => {
    expect(await read(serveWrapped(wrap), '{ outer }')).toBe('Internal server error');
    expect(reported).toEqual([failure]);
  });

  it('a GraphQLError that the application throws around its cause is sent', async () => {
    expect(
      await read(
        serveWrapped((error) => error),
        '{ direct }',
      ),
    ).toBe('Try again later');
    expect(reported).toEqual([]);
  });
});

describe('without NODE_ENV', () => {
  const environment = process.env['NODE_ENV'];
  beforeAll(() => {
    delete process.env['NODE_ENV'];
  });
  afterAll(() => {
    process.env['NODE_ENV'] = environment;
  });

  it('no message of an unexpected error and no suggestion is sent', async () => {
    const handler = graphqlHTTP(buildSchema('type Query { hello: String }'), {
      rootValue: {
        hello: () => {
          throw new Error('database password is hunter2');
        },
      },
      onError: false,
    });
    const server = await run((req, res) => handler(req, res));
    const failed = await (await fetch(`${server.url}?query={hello}`)).text();
    const wrong = await (await fetch(`${server.url}?query={helo}`)).text();
    await server.close();
    expect(failed).toContain('Internal server error');
    expect(failed).not.toContain('hunter2');
    expect(wrong).not.toContain('Did you mean');
  });
});

it('introspection: false hides suggestions', async () => {
  const handler = graphqlHTTP(buildSchema('type Query { hello: String }'), { introspection: false });
  const server = await run((req, res) => handler(req, res));
  const wrong = await (await fetch(`${server.url}?query={helo}`)).text();
  await server.close();
  expect(wrong).toContain('Cannot query field');
  expect(wrong).not.toContain('Did you mean');
});

it.each(['compiled', 'graphql-js'] as const)(
  'a type that is no member of an abstract type is masked, under %s',
  async (engine) => {
    const reports: unknown[] = [];
    const handler = graphqlHTTP(
      buildSchema(
        'type Query { pet: Pet } union Pet = Dog type Dog { name: String } type Cat { name: String }',
      ),
      {
        engine,
        rootValue: { pet: { __typename: 'Cat' } },
        onError: (error) => void reports.push(error),
      },
    );
    const server = await run((req, res) => handler(req, res));
    const body = await (await fetch(`${server.url}?query={pet{__typename}}`)).json();
    await server.close();
    expect(body).toMatchObject({
      data: { pet: null },
      errors: [{ message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR' } }],
    });
    expect(reports).toHaveLength(1);
  },
);

describe('values that JSON cannot represent', () => {
  const big = new GraphQLScalarType({ name: 'Big', serialize: () => 10n });
  const schemaOfBig = new GraphQLSchema({
    query: new GraphQLObjectType({
      name: 'Query',
      fields: {
        big: { type: big, resolve: () => 1 },
        bad: {
          type: GraphQLString,
          resolve: () => {
            throw new GraphQLError('visible', { extensions: { limit: 10n } });
          },
        },
        ok: { type: GraphQLString, resolve: () => 'ok' },
      },
    }),
  });
  const send = async (engine: 'compiled' | 'graphql-js', body: unknown) => {
    const passed: unknown[] = [];
    const handler = graphqlHTTP(schemaOfBig, { engine, batching: true, onError: false });
    const server = await run((req, res) => handler(req, res, (error) => passed.push(error)));
    const response = await fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const json = await response.json();
    await server.close();
    expect(passed).toEqual([]);
    return json;
  };

  it.each(['compiled', 'graphql-js'] as const)(
    'are masked errors as JSON, also in a batch, under %s',
    async (engine) => {
      const masked = { errors: [{ message: 'Internal server error' }] };
      expect(await send(engine, { query: '{ big }' })).toMatchObject(masked);
      expect(
        await send(engine, [{ query: '{ ok }' }, { query: '{ big }' }, { query: '{ ok }' }]),
      ).toMatchObject([{ data: { ok: 'ok' } }, masked, { data: { ok: 'ok' } }]);
      expect(await send(engine, { query: '{ bad ok }' })).toMatchObject({
        ...masked,
        data: { bad: null, ok: 'ok' },
      });
    },
  );
});

describe('masked errors', () => {
  // The members that graphql-js reads when it makes a GraphQLError of an error.
  let read: PropertyKey[] = [];
  const failing = (): never => {
    throw new Proxy(new Error(SECRET), {
      get(target, name, receiver) {
        read.push(name);
        return Reflect.get(target, name, receiver);
      },
    });
  };
  const sdl = buildSchema('type Query { fails: String } type Mutation { fail: String }');
  const rootValue = { fails: failing, fail: failing };
  const ask = async (options: GraphQLOptions, query = '{ fails }', headers: Record<string, string> = {}) => {
    const environment = process.env['NODE_ENV'];
    process.env['NODE_ENV'] = 'production';
    const handler = graphqlHTTP(sdl, {
      rootValue,
      introspection: true,
      getMutations: true,
      onError: () => undefined,
      ...options,
    });
    process.env['NODE_ENV'] = environment;
    read = [];
    const server = await run((req, res) => handler(req, res));
    const response = await fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query }),
    });
    const text = await response.text();
    await server.close();
    expect(text).toContain('Internal server error');
    expect(text).not.toContain(SECRET);
    return read;
  };
  const KEYED = { 'idempotency-key': '1' };

  it.each<[string, GraphQLOptions, string, Record<string, string>]>([
    ['an operation', {}, '{ fails }', {}],
    ['an operation with extensions', { onOperation: () => ({ extensions: { a: 1 } }) }, '{ fails }', {}],
    ['an operation with a cost', { cost: { maxCost: 1000 } }, '{ fails }', {}],
    ['a mutation that is stored', { caller: () => null, idempotency: true }, 'mutation { fail }', KEYED],
    ['a cached operation', { responseCache: true }, '{ fails }', {}],
  ])('GraphQLErrors of %s are not created if nobody reads them', async (_title, options, query, headers) => {
    expect(await ask(options, query, headers)).not.toContain('path');
  });

  it('subscribers of the response channel create the errors by reading them', async () => {
    let errors: unknown[] = [];
    const messages: { readonly errors: readonly Error[] }[] = [];
    const listen = (message: unknown): void => void messages.push(message as (typeof messages)[0]);
    const channel = diagnostics.channel('espalier:graphql:response');
    channel.subscribe(listen);
    expect(await ask({})).not.toContain('path');
    channel.unsubscribe(listen);
    errors = messages.flatMap((message) => message.errors.map(({ message: text }) => text));
    expect([errors, read.includes('path')]).toEqual([[SECRET], true]);
  });
});

describe('the option statusCodes', () => {
  const statusOf = async (options: GraphQLOptions, query: string) => {
    const handler = graphqlHTTP(buildSchema('type Query { hello(a: Int): String }'), {
      onError: false,
      ...options,
    });
    const server = await run((req, res) => handler(req, res));
    const { status } = await fetch(`${server.url}?query=${query}`, {
      headers: { accept: 'application/json' },
    });
    await server.close();
    return status;
  };

  it("'apollo' sends 400 for syntax and validation errors with application/json", async () => {
    expect(await statusOf({ statusCodes: 'apollo' }, '{')).toBe(400);
    expect(await statusOf({ statusCodes: 'apollo' }, '{no}')).toBe(400);
    expect(await statusOf({ statusCodes: 'apollo' }, '{hello}')).toBe(200);
  });

  it('a function chooses the status, and keeps it with undefined or a wrong value', async () => {
    const seen: unknown[] = [];
    const statusCodes: GraphQLOptions['statusCodes'] = ({ status, kind }) => {
      seen.push([status, kind]);
      return kind === 'refused' ? 418 : undefined;
    };
    expect(await statusOf({ statusCodes }, '{no}')).toBe(418);
    expect(await statusOf({ statusCodes }, '{hello}')).toBe(200);
    expect(seen).toEqual([
      [200, 'refused'],
      [200, 'data'],
    ]);
    expect(await statusOf({ statusCodes: () => 99 }, '{hello}')).toBe(200);
  });
});
