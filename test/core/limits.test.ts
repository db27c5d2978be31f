/** @tags graphql */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { buildSchema, getIntrospectionQuery } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { inject } from '../../middleware/testing.ts';
import { type Running, run } from '../graphql/server.ts';

const schema = buildSchema(`
  type Query { a(x: Int, in: In, list: [Int], inputs: [In], json: Json): Query b: Query hello: String u: U id(v: Json): Int }
  union U = A | B
  type A { f: U g: Int }
  type B { f: U g: String }
  input In { a: In b: Int c: [In] d: Int! = 1 }
  scalar Json
  type Mutation { login(password: String): Boolean }
`);
let runs = 0;
const rootValue = { hello: () => ++runs, a: () => ({}), id: () => 1, login: () => ++runs };
const times = (count: number, make: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => make(index)).join(' ');
const nested = (count: number, open: string, inner: string, close = '}'): string =>
  open.repeat(count) + inner + close.repeat(count);

let running: Running;
beforeAll(async () => {
  running = await run(graphqlHTTP(schema, { rootValue, batching: true }));
});

async function sendRequest(body: unknown, url = running.url): Promise<{ status: number; text: string }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/graphql-response+json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

it('graphqlHTTP refuses fragments that spread themselves below a field as nested too deeply', async () => {
  const query = '{ ...F } fragment F on Query { a { ...G } } fragment G on Query { b { ...F } }';
  const { status, text } = await sendRequest({ query });
  expect(status).toBe(400);
  expect(text).toMatch(/LIMIT_NESTING/);
});

describe('a document over a limit is refused before validation', () => {
  const chain = (length: number): string =>
    `{ ...f0 } ${times(length, (i) => `fragment f${i} on Query { a { ...f${i + 1} } }`)} fragment f${length} on Query { hello }`;
  const doubling = (length: number): string =>
    `{ ...f0 } ${times(length, (i) => `fragment f${i} on Query { a { ...f${i + 1} } b { ...f${i + 1} } }`)} fragment f${length} on Query { hello }`;

  it.each([
    [
      'an alias bomb',
      `{ ${nested(
        1,
        'a {',
        times(1001, (i) => `a${i}: hello`),
      )} }`,
      'LIMIT_ALIASES',
    ],
    [
      '500 login attempts by alias',
      `mutation { ${times(500, (i) => `l${i}: login(password: "${i}")`)} }`,
      'LIMIT_ROOT_FIELDS',
    ],
    [
      'root fields in a fragment',
      `{ ...f } fragment f on Query { ${times(101, () => 'hello')} }`,
      'LIMIT_ROOT_FIELDS',
    ],
    ['deep nesting', `{ ${nested(60, 'a {', 'hello')} }`, 'LIMIT_DEPTH'],
    // Whether the tokens or the stack run out first depends on the version of Node.
    ['very deep nesting', `{ ${nested(3000, 'a {', 'hello')} }`, 'LIMIT_TOKENS|LIMIT_NESTING'],
    ['nested inline fragments', `{ ${nested(3000, '... {', 'hello')} }`, 'LIMIT_TOKENS|LIMIT_NESTING'],
    ['depth through fragments', chain(300), 'LIMIT_'],
    [
      'spreads without fields that double',
      `{ hello ...f0 } ${times(40, (i) => `fragment f${i} on Query { ...f${i + 1} ...f${i + 1} }`)} fragment f40 on Query { ...none }`,
      'LIMIT_SELECTIONS',
    ],
    [
      'spreads in introspection that double',
      `{ __schema { ...f0 } } ${times(40, (i) => `fragment f${i} on __Schema { ...f${i + 1} ...f${i + 1} }`)} fragment f40 on __Schema { ...none }`,
      'LIMIT_SELECTIONS',
    ],
    [
      'many fragments that spread a wide one',
      `{ hello } ${times(25, (i) => `fragment g${i} on Query { ...wide }`)} fragment wide on Query { ${times(2400, (i) => `hello${i}`)} }`,
      'LIMIT_MERGES',
    ],
    ['fragments that double', doubling(30), 'LIMIT_FIELDS'],
    ['fragments that double a hundred times', doubling(49), 'LIMIT_FIELDS'],
    ['directives', `{ hello ${times(201, () => '@include(if: true)')} }`, 'LIMIT_DIRECTIVES'],
    ['operations', times(201, (i) => `query q${i} { hello }`), 'LIMIT_OPERATIONS'],
    ['a deep list', `{ id(v: ${nested(1000, '[', '1', ']')}) }`, 'LIMIT_NESTING'],
    ['a deep object', `{ id(v: ${nested(1000, '{a:', '1')}) }`, 'LIMIT_NESTING'],
    ['a deep type', `query ($v: ${nested(1000, '[', 'Int', ']')}) { hello }`, 'LIMIT_NESTING'],
    ['a deep default', `query ($v: Json = ${nested(1000, '[', '1', ']')}) { id(v: $v) }`, 'LIMIT_NESTING'],
    ['a long document', `{ hello } ${'#'.repeat(100_000)}`, 'LIMIT_CHARACTERS'],
    ['lines', `{ hello ${'\n'.repeat(5000)} }`, 'LIMIT_CHARACTERS'],
    [
      'repeated introspection',
      `{ ${times(20, (i) => `s${i}: __schema { types { name } }`)} }`,
      'LIMIT_INTROSPECTION_ALIASES',
    ],
    [
      'repeated introspection of all types',
      `{ __schema { ${times(20, (i) => `t${i}: types { name }`)} } }`,
      'LIMIT_INTROSPECTION_ALIASES',
    ],
    [
      'repeated introspection of all types, by fragments',
      `{ __schema { a: types { ...t } b: types { ...t } } } fragment t on __Type { ${times(5, (i) => `n${i}: name`)} }`,
      'LIMIT_INTROSPECTION_ALIASES',
    ],
    ['3000 equal fields', `{ a { ${times(3000, () => 'hello')} } }`, 'LIMIT_MERGES'],
    [
      'equal fields in fragments',
      `{ a { ${times(400, (i) => `...f${i}`)} } } ${times(400, (i) => `fragment f${i} on Query { a { hello } }`)}`,
      'LIMIT_MERGES',
    ],
    ['fragments', `{ hello } ${times(501, (i) => `fragment f${i} on Query { hello }`)}`, 'LIMIT_FRAGMENTS'],
    ['comments', `{ hello ${'#\n'.repeat(100_000)} }`, 'LIMIT_CHARACTERS'],
    ['many tokens', `{ ${times(5001, () => 'q')} }`, 'LIMIT_TOKENS'],
    ['many tokens before a syntax error at the end', `{ ${times(5001, () => 'q')} "`, 'LIMIT_TOKENS'],
    ['open braces', '{a'.repeat(40_000), 'LIMIT_TOKENS|LIMIT_NESTING'],
  ])('graphqlHTTP refuses a document over a limit: %s', async (_name, query, code) => {
    const before = runs;
    const { status, text } = await sendRequest({ query });
    expect([status, runs]).toEqual([400, before]);
    expect(text).toMatch(new RegExp(code));
    expect(text).not.toMatch(/"data"/);
    expect(JSON.parse(text).errors).toHaveLength(1);
    expect(text.length).toBeLessThan(1000);
  });

  it('graphqlHTTP sends 400 for a document over a limit with both media types', async () => {
    const { status } = await fetch(running.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: `{ ${nested(60, 'a {', 'hello')} }` }),
    });
    expect(status).toBe(400);
  });
});

describe('an ordinary document is accepted', () => {
  it.each([
    ['50 levels', `{ ${nested(49, 'a {', 'hello')} }`],
    ['100 root fields', `{ ${times(100, (i) => `h${i}: hello`)} }`],
    ['1000 fields', `{ ${times(10, (i) => `a${i}: a { ${times(99, (j) => `h${j}: hello`)} }`)} }`],
    [
      'fragments with many fields',
      `{ a { ...f } } fragment f on Query { ${times(150, (i) => `h${i}: hello`)} }`,
    ],
    [
      'introspection below 14 levels',
      `{ __schema { types { fields { type { ${nested(9, 'ofType {', 'name')} } } } } }`,
    ],
    ['introspection of 50 types', `{ ${times(50, (i) => `t${i}: __type(name: "A") { name }`)} }`],
    ['the introspection of every tool', getIntrospectionQuery({ descriptions: true })],
  ])('graphqlHTTP accepts an ordinary document: %s', async (_name, query) => {
    expect(await sendRequest({ query })).toMatchObject({ status: 200 });
  });
});

describe('introspection has a depth of its own', () => {
  const types = 'fragment T on __Type { kind name ofType { ...U } } fragment U on __Type { name }';
  const ofTypes = (levels: number): string => nested(levels, 'ofType {', 'name');
  const low = (query: string) =>
    inject(graphqlHTTP(schema, { limits: { depth: 3 }, rootValue, onError: false }), { query });

  it.each([
    ['the standard query', getIntrospectionQuery({ inputValueDeprecation: true, oneOf: true })],
    ['fields', `{ __schema { types { fields { type { ${ofTypes(9)} } } } } }`],
    ['a named fragment', `{ __schema { types { fields { type { ...T } } } } } ${types}`],
    [
      'inline fragments',
      '{ t: __type(name: "A") { ... on __Type { fields { ... { type { ofType { name } } } } } } }',
    ],
    [
      'a fragment on Query',
      `{ ...Q } fragment Q on Query { a { hello } __schema { types { ...T } } } ${types}`,
    ],
    [
      'a fragment that is measured first',
      `${types} query { __schema { queryType { fields { type { ...T } } } } }`,
    ],
  ])('a low limit of depth lets pass introspection by %s', async (_name, query) => {
    expect(await low(query)).toMatchObject({ status: 200, data: {} });
  });

  const chain = times(30, (i) => `fragment t${i} on __Type { ofType { ...t${i + 1} } }`);
  it.each([
    ['fields', `{ __schema { types { ${ofTypes(30)} } } }`, 'LIMIT_INTROSPECTION'],
    [
      'fragments',
      `{ __schema { types { ...t0 } } } ${chain} fragment t30 on __Type { name }`,
      'LIMIT_INTROSPECTION',
    ],
    [
      'a fragment that a chain continues',
      `{ __schema { types { ${nested(20, 'ofType {', '...F')} } } } fragment F on __Type { ${ofTypes(6)} }`,
      'LIMIT_INTROSPECTION',
    ],
    [
      'aliases in a fragment',
      `{ __schema { types { ...F } } } fragment F on __Type { ${times(11, (i) => `n${i}: name`)} }`,
      'LIMIT_INTROSPECTION_ALIASES',
    ],
    ['a cycle', '{ __schema { types { ...F } } } fragment F on __Type { ofType { ...F } }', 'LIMIT_NESTING'],
    ['fields beside it', '{ __schema { types { name } } a { a { a { hello } } } }', 'LIMIT_DEPTH'],
    [
      'an ordinary fragment',
      `{ __schema { types { ...T } } ...F } ${types} fragment F on Query { a { a { a { hello } } } }`,
      'LIMIT_DEPTH',
    ],
    [
      'an ordinary fragment in it',
      '{ __schema { types { ...F } } } fragment F on Query { a { a { a { hello } } } }',
      'LIMIT_DEPTH',
    ],
    [
      'a fragment on another type with underscores',
      '{ a { ...F } } fragment F on __Other { a { a { a { hello } } } }',
      'LIMIT_DEPTH',
    ],
  ])('it is refused where it hides depth: %s', async (_name, query, code) => {
    const { data, errors } = await low(query);
    expect(data).toBeUndefined();
    expect(errors?.[0]?.extensions).toEqual({ code });
  });
});

describe('input that is expensive for validation or coercion', () => {
  it.each([
    ['circular fragments', { query: '{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }' }],
    [
      'a circle of 400 fragments',
      {
        query: `{ ...f0 } ${times(400, (i) => `fragment f${i} on Query { a { ...f${(i + 1) % 400} } }`)}`,
      },
    ],
    [
      'fragments that spread one another',
      {
        query: `{ ...f0 } ${times(60, (i) => `fragment f${i} on Query { ${times(60, (j) => `...f${j}`)} }`)}`,
      },
    ],
    ['operations of one name', { query: times(900, () => 'query q { hello }'), operationName: 'q' }],
    ['operations without a name', { query: times(1200, () => '{ hello }') }],
    ['variables of one name', { query: `query (${times(300, () => '$v: Int')}) { id }` }],
    ['equal arguments', { query: `{ a(${times(300, () => 'x: 1')}) { hello } }` }],
    ['unknown arguments', { query: `{ a(${times(1500, (i) => `q${i}: 1`)}) { hello } }` }],
    ['unknown directives', { query: `{ a { ${times(190, () => 'hello @x')} } }` }],
    ['a list of wrong values', { query: `{ a(list: [${times(4900, () => '"x"')}]) { hello } }` }],
    ['type definitions', { query: times(900, (i) => `type T${i} { a: Int }`) }],
    ['fields that conflict', { query: `{ a { ${times(150, (i) => `h: ${i % 2 ? 'hello' : 'id'}`)} } }` }],
    [
      'fields whose sub-fields conflict',
      {
        query: `{ x: a { ${times(300, (i) => `h${i}: hello`)} } x: a { ${times(300, (i) => `h${i}: id`)} } }`,
      },
    ],
    ['a fragment of itself', { query: '{ ...a } fragment a on Query { a { ...a } }' }],
    ['fields repeated 300 times', { query: `{ a { ${times(300, () => 'hello')} nope } }` }],
    ['2000 unknown fields', { query: `{ a { ${times(2000, (i) => `q${i}`)} } }` }],
    ['errors after 4900 lines', { query: `${'\n'.repeat(4900)}{ a { ${times(50, (i) => `q${i}`)} } }` }],
    [
      'deep introspection',
      { query: `{ __schema { types { ${nested(4, 'fields { type {', 'name', '} }')} } } }` },
    ],
    [
      'unknown input keys',
      {
        query: 'query ($i: In) { a(in: $i) { hello } }',
        variables: { i: Object.fromEntries(Array.from({ length: 1900 }, (_, i) => [`k${i}`, 1])) },
      },
    ],
    [
      'a long wrong value',
      { query: 'query ($x: Int) { a(x: $x) { hello } }', variables: { x: 'x'.repeat(90_000) } },
    ],
    [
      'a wrong list',
      { query: 'query ($l: [Int]) { a(list: $l) { hello } }', variables: { l: Array(15_000).fill('x') } },
    ],
    ['a long name', { query: `{ ${'a'.repeat(90_000)} }` }],
    ['a huge number', { query: `{ a(x: ${'9'.repeat(90_000)}) { hello } }` }],
    [
      'a huge number in the variables',
      '{"query":"query ($x: Int) { a(x: $x) { hello } }","variables":{"x":1e400}}',
    ],
  ])('graphqlHTTP sends a short 400 for %s', async (_name, body) => {
    const { status, text } = await sendRequest(body);
    expect(status).toBe(400);
    const { errors } = JSON.parse(text) as { errors: { locations?: unknown[] }[] };
    expect(errors.length).toBeLessThanOrEqual(10);
    for (const { locations = [] } of errors) expect(locations.length).toBeLessThanOrEqual(10);
    expect(text.length).toBeLessThan(15_000);
  });
});

describe('variables', () => {
  const query = 'query ($v: Json, $i: In) { id(v: $v) a(in: $i) { b { hello } } }';
  const deep = (levels: number): string =>
    `{"query":"${query}","variables":{"v":${nested(levels, '[', '1', ']')}}}`;

  it.each([
    ['too many values', { query, variables: { v: Array(20_001).fill(1) } }],
    ['too many empty objects', { query, variables: { v: Array(20_001).fill({}) } }],
    [
      'an object with too many members',
      { query, variables: { v: Object.fromEntries(Array.from({ length: 2001 }, (_, i) => [`k${i}`, 1])) } },
    ],
    ['lists too deep', deep(250)],
    ['lists far too deep', deep(100_000)],
    ['objects far too deep', `{"query":"${query}","variables":{"i":${nested(50_000, '{"a":', '{}')}}}`],
    ['too many values over a batch', Array(10).fill({ query, variables: { v: Array(2500).fill(1) } })],
  ])('graphqlHTTP sends 400 for variables with %s', async (_name, body) => {
    const { status, text } = await sendRequest(body);
    expect(status).toBe(400);
    expect(text).toMatch(/LIMIT_VARIABLES|LIMIT_JSON/);
  });

  it('graphqlHTTP accepts variables within the limits', async () => {
    expect(await sendRequest({ query, variables: { v: Array(15_000).fill(1) } })).toMatchObject({
      status: 200,
    });
    expect(await sendRequest(deep(150))).toMatchObject({ status: 200 });
  });
});

describe('tokens', () => {
  const handler = graphqlHTTP(schema, { rootValue, limits: { tokens: 4 } });

  it.each([
    ['as many tokens as allowed', '{ hello b }', /"data"|Field/],
    ['comments and commas', '{ #x\n hello,,, b, } #}}}}', /"data"|Field/],
    ['one token too many', '{ hello b id }', /LIMIT_TOKENS/],
    ['one token too many, and a syntax error there', '{ hello b id ]', /LIMIT_TOKENS/],
    ['one token too many, and a syntax error before', '{ hello ] id }', /Syntax Error/],
    ['a syntax error at the last allowed token', '{ hello id ]', /Syntax Error/],
    ['an invalid token after the last allowed one', '{ hello b id "', /Syntax Error/],
    ['an invalid token', '{ hello "', /Syntax Error/],
    ['a string, which counts as one token', '{ a(s: "x"', /LIMIT_TOKENS/],
  ])('the limit of tokens handles %s', async (_what, query, expected) => {
    const strict = await run(handler);
    const { status, text } = await sendRequest({ query }, strict.url);
    expect(text).toMatch(expected);
    expect(status).toBe(/data/.test(text) ? 200 : 400);
  });
});

describe('a batch', () => {
  const one = { query: '{ hello }' };

  it('graphqlHTTP sends the results of a batch in order', async () => {
    const { status, text } = await sendRequest([
      { query: '{ id }' },
      { query: '{ nope }' },
      { query: '{ a { hello } }' },
    ]);
    expect(status).toBe(200);
    expect(JSON.parse(text)).toEqual([
      { data: { id: 1 } },
      { errors: [expect.objectContaining({ message: expect.stringMatching(/nope/) })] },
      { data: { a: { hello: null } } },
    ]);
  });

  it.each([
    ['without operations', [], 400],
    ['of 11 operations', Array(11).fill(one), 413],
    ['of values that are not operations', [1], 400],
    ['of batches', [[one]], 400],
  ])('graphqlHTTP refuses a batch %s', async (_name, body, status) => {
    expect(await sendRequest(body)).toMatchObject({ status });
  });

  it('graphqlHTTP calls the context function for each valid operation of a batch, with the same request', async () => {
    const made: { req: unknown; state: unknown }[] = [];
    const seen: unknown[] = [];
    const server = await run(
      graphqlHTTP(schema, {
        batching: true,
        context: async (req) => {
          made.push({ req, state: req.state });
          return { number: made.length };
        },
        rootValue: { hello: (_args: unknown, context: unknown) => `${seen.push(context)}` },
      }),
    );
    const { status } = await sendRequest([one, { query: '{ nope }' }, { query: '{' }, one], server.url);
    expect([status, made.length, seen]).toEqual([200, 2, [{ number: 1 }, { number: 2 }]]);
    expect(made[0]?.req).toBe(made[1]?.req);
    expect(made[0]?.state).toBe(made[1]?.state);
  });

  it('graphqlHTTP serves other requests between the long documents of a batch', async () => {
    const parsed: number[] = [];
    let turns = 0;
    let running = true;
    const turn = (): void => {
      turns += 1;
      if (running) setImmediate(turn);
    };
    const remember = (): void => {
      if (parsed.length === 0) turn();
      parsed.push(turns);
    };
    subscribe('espalier:graphql:parse', remember);
    await sendRequest(
      Array.from({ length: 10 }, (_, i) => ({ query: `{ hello } #${i}${'x'.repeat(2000)}` })),
    );
    running = false;
    unsubscribe('espalier:graphql:parse', remember);
    expect(new Set(parsed).size).toBe(10);
  });

  it('the operations of a batch share the limits of one operation', async () => {
    const many = { query: `{ ${times(60, (i) => `h${i}: hello`)} }` };
    const [first, second] = JSON.parse((await sendRequest([many, many])).text);
    expect(first.data.h0).toBeDefined();
    expect(second.errors[0].extensions).toEqual({ code: 'LIMIT_ROOT_FIELDS' });
  });

  it('graphqlHTTP refuses a batch with batching: false', async () => {
    const off = await run(graphqlHTTP(schema, { rootValue }));
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(off.url, { method: 'POST', headers, body: JSON.stringify([one]) });
    expect([response.status, await response.text()]).toEqual([400, expect.stringMatching(/BATCHING_OFF/)]);
  });
});

it('the option limits changes and disables limits', async () => {
  const limits = { depth: 2, tokens: Number.POSITIVE_INFINITY };
  const strict = await run(graphqlHTTP(schema, { rootValue, limits }));
  const get = async (query: string) =>
    (await fetch(`${strict.url}?query=${encodeURIComponent(query)}`)).text();
  expect(await get('{ a { hello } }')).toMatch(/"data"/);
  expect(await get('{ a { a { hello } } }')).toMatch(/nested deeper than 2 levels/);
  expect(await get('{ __schema { types { fields { name } } } }')).toMatch(/"data"/);
});
