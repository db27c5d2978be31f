import { tracingChannel } from 'node:diagnostics_channel';
import { runInThisContext } from 'node:vm';
import { buildSchema, type GraphQLResolveInfo, versionInfo } from 'graphql';
import { mayReadArgument } from '../../src/engine/compile/function-arity.ts';
import { engines, prepare } from './compare.ts';

const DEFER = 'directive @defer(if: Boolean, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT';
const SDL = 'type Query { who: String, other: Query, list(n: Int = 1): [String] }';

/** Who executes: the compiled engine answers with bytes, graphql-js with text. */
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

describe('what graphql-js executes', () => {
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
  ])('is not %s', async (_title, query, variables, expected) => {
    expect(await executor(query, variables)).toBe(expected);
  });

  it('is a document with @defer', async () => {
    const deferred = '{ ... @defer(if: false) { other { who } } who }';
    expect(await executor(deferred, undefined, `${DEFER} ${SDL}`)).toBe('graphql-js');
  });

  it('is a condition that is no boolean', async () => {
    const query = 'query ($a: Boolean = true) { who @include(if: $a) }';
    const answers = await Promise.all(
      Object.values(engines).map(async (engine) => {
        const outcome = await prepare(
          engine,
          buildSchema(SDL),
          query,
        )({ rootValue: {}, variableValues: { a: null } });
        return outcome.body.toString();
      }),
    );
    expect(answers[0]).toBe(answers[1]);
  });

  it('are more combinations of conditions than are kept', async () => {
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

  it('is everything while graphql 17 is traced', async () => {
    const channel = tracingChannel('graphql:execute');
    const handlers = { start: () => undefined, end: () => undefined } as never;
    channel.subscribe(handlers);
    const traced = await executor('{ who }');
    channel.unsubscribe(handlers);
    expect(traced).toBe(versionInfo.major >= 17 ? 'graphql-js' : 'compiled');
    expect(await executor('{ who }')).toBe('compiled');
  });
});

/** As libraries compiled for old engines do. */
const readsArguments = runInThisContext('(function () { return arguments; })');

describe('info', () => {
  it('has every property graphql-js gives it, in its order', async () => {
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
    ['rest parameters', (...all: unknown[]) => all, true],
    ['a default in front', (_a: unknown, _b = {}, _c: unknown, _info: unknown) => undefined, true],
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
  ])('is made for %s', (_title, fn, expected) => {
    expect(mayReadArgument(fn as (...args: never[]) => unknown, 3)).toBe(expected);
  });
});
