/** @tags graphql */
import { runInThisContext } from 'node:vm';
import { buildSchema, type GraphQLResolveInfo } from 'graphql';
import { mayReadArgument } from '../../src/engine/compile.ts';
import { engines, prepare } from './compare.ts';

const DEFER = 'directive @defer(if: Boolean, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT';
const SDL = 'type Query { who: String, other: Query, list(n: Int = 1): [String] }';

/** Returns the engine that executed a query: the body of the compiled engine is a Buffer, that of graphql-js a string. */
async function executor(query: string, variables?: Record<string, unknown>, sdl = SDL): Promise<unknown> {
  const outcome = await prepare(
    engines.compiled,
    buildSchema(sdl),
    query,
  )({
    rootValue: {},
    variableValues: variables,
  });
  return Buffer.isBuffer(outcome.body) ? 'compiled' : 'graphql-js';
}

describe('delegation to graphql-js', () => {
  it.each([
    ['a plain query', '{ who }', undefined, 'compiled'],
    ['conditions by variable', 'query ($a: Boolean!) { who @include(if: $a) }', { a: true }, 'compiled'],
    [
      'a condition with a default',
      'query ($a: Boolean = true) { who @include(if: $a) }',
      undefined,
      'compiled',
    ],
    ['introspection', '{ who __schema { types { name } } }', undefined, 'compiled'],
  ])('the compiled engine executes %s', async (_title, query, variables, expected) => {
    expect(await executor(query, variables)).toBe(expected);
  });

  it('the compiled engine executes a document with @defer in one piece', async () => {
    const deferred = '{ ... @defer { other { who } } who }';
    expect(await executor(deferred, undefined, `${DEFER} ${SDL}`)).toBe('compiled');
  });

  it('graphql-js executes a document with a condition that is not a boolean', async () => {
    const query = 'query ($a: Boolean = true) { who @include(if: $a) }';
    const bodies = await Promise.all(
      Object.values(engines).map(async (engine) => {
        const outcome = await prepare(
          engine,
          buildSchema(SDL),
          query,
        )({ rootValue: {}, variableValues: { a: null } });
        return outcome.body.toString();
      }),
    );
    expect(bodies[0]).toBe(bodies[1]);
  });

  it('graphql-js executes combinations of conditions beyond the first 64', async () => {
    const names = Array.from({ length: 7 }, (_, index) => `v${index}`);
    const query = `query (${names.map((name) => `$${name}: Boolean!`).join(' ')}) {
      who ${names.map((name) => `${name}: who @include(if: $${name})`).join(' ')} }`;
    const run = prepare(engines.compiled, buildSchema(SDL), query);
    const seen: string[] = [];
    for (let bits = 0; bits < 128; bits++) {
      const variableValues = Object.fromEntries(
        names.map((name, index) => [name, (bits & (1 << index)) !== 0]),
      );
      const outcome = await run({ rootValue: {}, variableValues });
      const { data } = JSON.parse(outcome.body.toString());
      expect(Object.keys(data).length - 1).toBe(bits.toString(2).replaceAll('0', '').length);
      seen.push(Buffer.isBuffer(outcome.body) ? 'compiled' : 'graphql-js');
    }
    expect(seen.filter((who) => who === 'compiled')).toHaveLength(64);
    expect(seen.filter((who) => who === 'graphql-js')).toHaveLength(64);
  });
});

/** Code that was compiled for old engines reads `arguments`. */
const readsArguments = runInThisContext('(function () { return arguments; })');

describe('info', () => {
  it('the info argument has the same properties as that of graphql-js, in the same order', async () => {
    const schema = buildSchema(SDL);
    const seen: GraphQLResolveInfo[] = [];
    Object.assign(schema.getQueryType()?.getFields()['who'] ?? {}, {
      resolve: (_source: unknown, _args: unknown, _context: unknown, info: GraphQLResolveInfo) => {
        seen.push(info);
        return 'x';
      },
    });
    const query = 'query Q($i: Int = 3) { a: other { ...F } list(n: $i) } fragment F on Query { b: who }';
    const rootValue = { other: {} };
    for (const engine of Object.values(engines)) await prepare(engine, schema, query)({ rootValue });
    const [ours, theirs] = seen as [GraphQLResolveInfo, GraphQLResolveInfo];
    expect(Object.keys(ours)).toEqual(Object.keys(theirs));
    const plain = (info: GraphQLResolveInfo) => JSON.parse(JSON.stringify({ ...info, schema: undefined }));
    expect(plain(ours)).toEqual(plain(theirs));
    expect(ours.schema).toBe(schema);
    expect(ours.path).toEqual({
      prev: { prev: undefined, key: 'a', typename: 'Query' },
      key: 'b',
      typename: 'Query',
    });
    expect(ours.rootValue).toBe(rootValue);
  });

  it.each([
    ['a declared parameter', (_a: unknown, _b: unknown, _c: unknown, info: unknown) => info, true],
    ['fewer parameters', (a: unknown, _b: unknown, c: unknown) => [a, c], false],
    ['patterns', (_a: unknown, { b }: { b: number }, { c, d }: { c: number; d: number }) => [b, c, d], false],
    ['rest parameters', (...all: unknown[]) => all, true],
    [
      'an earlier parameter with a default',
      (_a: unknown, _b = {}, _c: unknown, _info: unknown) => undefined,
      true,
    ],
    ['arguments', readsArguments, true],
    ['a bound function', ((a: unknown) => a).bind(null), true],
    ['a proxy', new Proxy((a: unknown) => a, {}), true],
    [
      'an asynchronous method',
      {
        async method(a: unknown) {
          return a;
        },
      }.method,
      false,
    ],
    ['destructuring with a default', ({ a }: { a: number }, _b = {}, _c: unknown, _d: unknown) => a, true],
  ])('mayReadArgument returns the expected result for %s', (_title, fn, expected) => {
    expect(mayReadArgument(fn as (...args: never[]) => unknown, 3)).toBe(expected);
  });
});
