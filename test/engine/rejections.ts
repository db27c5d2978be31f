// Run by rejections.test.ts, which reads how many rejections were unhandled in each case.
import { tracingChannel } from 'node:diagnostics_channel';
import { buildSchema, type GraphQLObjectType, type GraphQLScalarType } from 'graphql';
import { selectEngine } from '../../src/core/engines.ts';
import { compiledIncrementally } from '../../src/engine/index.ts';
import { executeIncrementally } from '../../src/execution/graphql-js.ts';
import { V17 } from '../../src/execution/graphql-version.ts';
import type { Engine } from '../../src/execution/types.ts';
import { engines, prepare } from './compare.ts';

// The rules of these directives are those of graphql 17, which finds them by their names.
const DIRECTIVES = `
  directive @defer(if: Boolean! = true, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT
  directive @stream(initialCount: Int! = 0, if: Boolean! = true, label: String) on FIELD
`;
const TYPES = `
  scalar Any
  scalar Strict
  interface Being { name: String }
  type Dog implements Being { name: String calm: String must: String! strict: Strict! stricts: [Strict!]
    friends: [Dog] puppies: [Dog!] litter: [Dog!]! sized(min: Int! = 1): String! }
  type Cat implements Being { name: String }
  type Query {
    user: String! now: String! items: [Dog] names: [String!] nested: [[String!]] required: [[String!]!] dog: Dog dogs: [Dog!]
    being: Being text: String set: [String!] any: Any anys: [Any!] slow: String resolved: String
  }
  type Mutation { first: String! second: [String] dogs: [Dog!] }
`;
const THEN = 'then';
const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
};
const rejects = (): Promise<never> => Promise.reject(new Error('unused'));
const rejectsLater = (): Promise<never> => turns(3).then(rejects);
const fails = (): never => {
  throw new Error('fails');
};
const later = async <T>(make: () => T): Promise<T> => {
  await turns(4);
  return make();
};

/** Yields each value after some iterations of the event loop. */
async function* slowly(...makers: (() => unknown)[]): AsyncGenerator<unknown> {
  for (const make of makers) {
    await turns(3);
    yield make();
  }
  await turns(3);
}

/** Unlike a generator, yields promises as they are. */
function promised(...makers: (() => unknown)[]): AsyncIterable<unknown> {
  const left = [...makers];
  const next = async (): Promise<IteratorResult<unknown>> => {
    await turns(2);
    const make = left.shift();
    return make === undefined ? { done: true, value: undefined } : { done: false, value: make() };
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

/** A promise of another library. */
const thenable = (make: () => Promise<unknown>): object => ({
  [THEN]: (...handlers: Parameters<Promise<unknown>['then']>) => make().then(...handlers),
});

/** Calls its handler with the value, also if that is a thenable. */
const unassimilated = (make: () => unknown): object => ({
  [THEN]: (onValue: (value: unknown) => unknown) => onValue(make()),
});

/** Each step of the iterator is a thenable of another library. It resolves after some iterations of the event loop. */
function thenableSteps(
  make: () => unknown,
  wrap = (step: () => unknown): unknown => step(),
): AsyncIterable<unknown> {
  let left = 1;
  const step = async (): Promise<IteratorResult<unknown>> => {
    await turns(6);
    left -= 1;
    return left < 0 ? { done: true, value: undefined } : { done: false, value: make() };
  };
  const next = () => wrap(() => thenable(step)) as Promise<IteratorResult<unknown>>;
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

/** Each step of the iterator is a promise that is resolved already. */
function steps(...values: unknown[]): AsyncIterable<unknown> {
  const left = values[Symbol.iterator]();
  return { [Symbol.asyncIterator]: () => ({ next: async () => left.next() }) };
}

function schemaOf(directives: string) {
  const schema = buildSchema(`${directives} ${TYPES}`);
  const strict = schema.getType('Strict') as GraphQLScalarType;
  const convert = (value: unknown): unknown => {
    if (value === 'later') return rejectsLater();
    return value === 'bad' ? fails() : value;
  };
  Object.assign(strict, { serialize: convert, coerceOutputValue: convert });
  const isTypeOf = (name: string, result: (value: object) => unknown): void => {
    Object.assign(schema.getType(name) as GraphQLObjectType, { isTypeOf: result });
  };
  isTypeOf('Dog', (value) => {
    if ('typed' in value) return (value as { typed: () => unknown }).typed();
    if ('checkedLater' in value) return later(() => true);
    return 'checked' in value ? rejects() : true;
  });
  isTypeOf('Cat', (value) => 'checked' in value);
  const resolve = ({ resolved }: { resolved: () => unknown }): unknown => resolved();
  Object.assign(schema.getQueryType()?.getFields()['resolved'] as object, { resolve });
  const dog = schema.getType('Dog') as GraphQLObjectType;
  Object.assign(dog.getFields()['calm'] as object, {
    resolve: ({ calm }: { calm?: () => unknown }) => calm?.(),
  });
  return schema;
}
const schema = schemaOf('');

interface RejectionCase {
  readonly query: string;
  readonly root: () => unknown;
  /** No resolver has returned the promise: graphql-js, with its guard too, leaves it to the application. */
  readonly unreturned?: true;
  /** graphql 16 completes no asynchronous iterables. */
  readonly since17?: boolean;
  /** The client disconnects after this many iterations of the event loop, while resolvers wait. */
  readonly abort?: number;
}

/** Without a method `return`, so graphql-js cannot close it. */
const iteratorOf = (...values: unknown[]): object => ({ [Symbol.iterator]: () => values[Symbol.iterator]() });

const CASES: Readonly<Record<string, RejectionCase>> = {
  'a proxy of an array with an invalid item': {
    query: '{ names }',
    root: () => ({ names: () => new Proxy(['first', null, rejects(), rejectsLater()], {}) }),
  },
  'an iterator with an invalid item': {
    query: '{ names }',
    root: () => ({ names: () => iteratorOf('first', null, rejects(), rejectsLater()) }),
  },
  'a proxy of an array and an iterator that arrive after a sibling failed': {
    query: '{ user names set }',
    root: () => ({
      user: rejects,
      names: () => later(() => iteratorOf('first', rejects(), rejectsLater())),
      set: () => later(() => new Proxy([rejects(), rejectsLater()], {})),
    }),
  },
  'promises in lists of a list after an item that fails': {
    query: '{ required }',
    root: () => ({ required: () => [['first', null], ['second', rejects()], [rejectsLater()]] }),
  },
  'an asynchronous iterable in a list whose items fail': {
    query: '{ required }',
    root: () => ({ required: () => [promised(() => 'first', rejects, rejectsLater), steps('second')] }),
    since17: true,
  },
  'a list of promises that resolves after the execution': {
    query: '{ user items { name } }',
    root: () => ({ user: rejects, items: () => later(() => [rejects(), rejectsLater()]) }),
  },
  'an object with promises that resolves after the execution': {
    query: '{ user dog { name } }',
    root: () => ({
      user: rejects,
      dog: () => later(() => ({ name: rejects(), friends: [{ name: rejects() }] })),
    }),
    unreturned: true,
  },
  'a promise after an invalid item of a list': {
    query: '{ names }',
    root: () => ({ names: () => [null, rejects(), rejectsLater()] }),
  },
  'promises after an invalid item of a nested list': {
    query: '{ nested }',
    root: () => ({ nested: () => [[null, rejects()], [rejectsLater()]] }),
  },
  'promises in later items of a generator': {
    query: '{ names }',
    root: () => ({
      *names() {
        yield null;
        yield [rejects()];
      },
    }),
    unreturned: true,
  },
  'promises after an invalid item of a set': {
    query: '{ set }',
    root: () => ({ set: () => new Set([null, rejects(), rejectsLater()]) }),
  },
  'promised properties after a field that fails': {
    query: '{ dog { must name } }',
    root: () => ({ dog: { must: fails, name: rejects() } }),
    unreturned: true,
  },
  'promised properties of later items': {
    query: '{ dogs { must name } }',
    root: () => ({ dogs: () => [{ must: fails }, { must: rejects(), name: rejects() }] }),
    unreturned: true,
  },
  'promised properties of the root value': {
    query: '{ now text }',
    root: () => ({ now: fails, text: rejects() }),
    unreturned: true,
  },
  'a list in place of a string': {
    query: '{ text }',
    root: () => ({ text: () => [rejects(), { deep: rejectsLater() }] }),
    unreturned: true,
  },
  'a list whose type cannot be determined': {
    query: '{ being { name } }',
    root: () => ({ being: () => ({ name: rejects(), __typename: 'Unknown' }) }),
    unreturned: true,
  },
  'promised properties of an object whose type check rejects': {
    query: '{ dog { name } }',
    root: () => ({ dog: () => ({ typed: rejects, name: rejects() }) }),
    unreturned: true,
  },
  'promised properties of an object of the wrong type': {
    query: '{ dog { name } }',
    root: () => ({ dog: () => ({ typed: async () => false, name: rejects() }) }),
    unreturned: true,
  },
  'promised properties of items whose type check rejects late': {
    query: '{ items { name } slow }',
    root: () => ({
      items: () => [{ typed: rejectsLater, name: later(rejects) }],
      slow: () => later(() => later(() => 'slow')),
    }),
    unreturned: true,
  },
  'promised properties of an object whose type is determined late and unknown': {
    query: '{ being { name } }',
    root: () => ({ being: () => ({ typed: async () => false, name: rejects() }) }),
    unreturned: true,
  },
  'a mutation that stops': {
    query: 'mutation { first second }',
    root: () => ({ first: rejectsLater, second: rejects }),
  },
  'a mutation that stops after its first field': {
    query: 'mutation { second dogs { must name } }',
    root: () => ({
      second: () => later(() => []),
      dogs: () => [
        { must: fails, name: rejects() },
        { must: rejects(), name: rejectsLater() },
      ],
    }),
    unreturned: true,
  },
  'values that resolve after an abort': {
    query: '{ items { name } dog { name } text }',
    root: () => ({
      items: () => later(() => [rejects(), later(rejects)]),
      dog: () => later(() => ({ name: rejects() })),
      text: rejectsLater,
    }),
    abort: 1,
    unreturned: true,
  },
  'a field that fails next to pending promises': {
    query: '{ text dog { friends { name } } now }',
    root: () => ({
      text: rejectsLater,
      dog: { friends: () => later(() => [{ name: rejects() }]) },
      now: fails,
    }),
  },
  'items that reject one after the other': {
    query: '{ names dogs { must } }',
    root: () => ({
      names: () => [rejectsLater(), later(rejects), rejects()],
      dogs: () => [{ must: rejectsLater() }, { must: later(rejects) }],
    }),
  },
  'a promised object with a leaf that has no output': {
    query: '{ dog { strict name } slow }',
    root: () => ({
      dog: () => later(() => ({ strict: 'bad', name: rejects() })),
      slow: () => turns(20),
    }),
    unreturned: true,
  },
  'promised items with a leaf that has no output': {
    query: '{ dogs { strict name } slow }',
    root: () => ({
      dogs: () => [later(() => ({ strict: later(() => 'bad'), name: rejectsLater() }))],
      slow: () => turns(20),
    }),
  },
  'a type check whose result is not needed': {
    query: '{ being { name } }',
    root: () => ({ being: () => ({ checked: true, name: 'Tom' }) }),
  },
  'promised properties of the root value of a mutation that waits for its first field': {
    query: 'mutation { second first }',
    root: () => ({ second: () => later(() => []), first: rejects() }),
    unreturned: true,
  },
  'promised properties of an object whose type is a promise': {
    query: '{ being { name } }',
    root: () => ({ being: () => ({ checkedLater: true, name: rejects() }) }),
    unreturned: true,
  },
  'a list that fails within a list that fails': {
    query: '{ dogs { litter { must } } }',
    root: () => ({ dogs: [{ litter: [{ must: rejectsLater }, { must: fails }] }] }),
  },
  'a list that fails after a promise of the object that contains it': {
    query: '{ dogs { name litter { must } } }',
    root: () => ({ dogs: [{ name: later(() => 'Rex'), litter: [{ must: rejectsLater }, { must: fails }] }] }),
  },
  'a list that fails after a promise that a type check returned': {
    query: '{ dogs { friends { name } litter { must } } }',
    root: () => ({
      dogs: [{ friends: [{ checked: true }], litter: [{ must: rejectsLater }, { must: fails }] }],
    }),
  },
  'a list that fails after a promise in an earlier item': {
    query: '{ dogs { litter { must litter { must } } } }',
    root: () => ({
      dogs: [
        { litter: [{ must: 'first', litter: [{ must: rejectsLater }, { must: 'second' }] }] },
        { litter: [{ must: rejectsLater, litter: [] }] },
        { litter: [{ must: 'third', litter: [{ must: rejectsLater }, { must: fails }] }] },
      ],
    }),
  },
  'a list that fails in a promised object of a list': {
    query: '{ dogs { litter { litter { must } } must } }',
    root: () => ({
      dogs: [
        later(() => ({ litter: [{ litter: [{ must: rejectsLater }, { must: fails }] }], must: rejects() })),
        later(() => ({ litter: [{ litter: [{ must: rejectsLater }] }, null], must: rejects() })),
      ],
    }),
    unreturned: true,
  },
  'a list whose item is an error': {
    query: '{ dogs { litter { must } } }',
    root: () => ({
      dogs: [{ litter: [{ must: rejectsLater }, new Error('no dog'), { must: rejects() }] }],
    }),
    unreturned: true,
  },
  'an item with a promise of a resolver in a list that fails': {
    query: '{ dogs { calm must } }',
    root: () => ({
      dogs: [
        { calm: () => later(() => 'calm'), must: fails },
        { calm: () => 'calm', must: fails },
      ],
    }),
  },
  'an item with a promise of a resolver before a required field of a fragment': {
    query: '{ dogs { ...Selected } } fragment Selected on Dog { calm must }',
    root: () => ({ dogs: [{ calm: () => later(() => 'calm'), must: fails }, { must: fails }] }),
  },
  'an item with a promise of a resolver before a required field of the same key': {
    query: '{ dogs { litter { calm } litter { must } } }',
    root: () => ({ dogs: [{ litter: [{ calm: () => later(() => 'calm'), must: fails }, { must: fails }] }] }),
  },
  'an item with a promise of a resolver before a required list': {
    query: '{ dogs { friends { calm } litter { must } } }',
    root: () => ({
      dogs: [
        { friends: [{ calm: () => later(() => 'calm') }], litter: [{ must: fails }] },
        { friends: [], litter: [{ must: fails }] },
      ],
    }),
  },
  'items that fail in a promised object': {
    query: '{ dog { friends { must name } } slow }',
    root: () => ({
      dog: () =>
        later(() => ({
          friends: [{ must: fails, name: rejects() }],
        })),
      slow: () => turns(20),
    }),
    unreturned: true,
  },
  'items whose getters throw in a promised object': {
    query: '{ dog { friends { must name } } slow }',
    root: () => ({
      dog: () =>
        later(() => ({
          friends: [
            {
              get must() {
                return fails();
              },
              name: rejects(),
            },
          ],
        })),
      slow: () => turns(20),
    }),
    unreturned: true,
  },
  'an optional list that fails within a list': {
    query: '{ dogs { puppies { must name } litter { must } } }',
    root: () => ({
      dogs: [{ puppies: [{ must: rejectsLater }, { must: fails, name: rejects() }], litter: [] }],
    }),
    unreturned: true,
  },
  'an object that a resolver of a string returns in a promise': {
    query: '{ resolved }',
    root: () => ({ resolved: () => later(() => ({ deep: [rejects(), rejectsLater()] })) }),
    unreturned: true,
  },
  'an object that a resolver of a string returns after the execution': {
    query: '{ user resolved }',
    root: () => ({ user: rejects, resolved: () => later(() => [rejects(), rejectsLater()]) }),
    unreturned: true,
  },
  'promises in the value of a custom scalar': {
    query: '{ any dog { name } }',
    root: () => ({ any: { deep: [rejects(), { deeper: rejectsLater() }] }, dog: { name: 'Rex' } }),
    unreturned: true,
  },
  'promises in the values of a custom scalar in lists': {
    query: '{ anys dogs { strict stricts } }',
    root: () => ({
      anys: [{ deep: rejects() }, later(() => ({ deep: rejects() }))],
      dogs: [{ strict: { deep: rejects() }, stricts: () => [[rejects()]] }],
    }),
    unreturned: true,
  },
  'promises in the promised value of a custom scalar': {
    query: '{ any slow }',
    root: () => ({
      any: () => later(() => [{ deep: rejects() }, new Map([['key', rejects()]]), new Set([rejects()])]),
      slow: () => later(() => later(() => 'slow')),
    }),
    unreturned: true,
  },
  'a scalar that converts a value to a promise in a list that fails': {
    query: '{ dogs { strict must } }',
    root: () => ({
      dogs: [
        { strict: 'later', must: 'first' },
        { strict: 'good', must: fails },
      ],
    }),
    unreturned: true,
  },
  'an argument that is null': {
    query: 'query ($min: Int = null) { dog { sized(min: $min) name } }',
    root: () => ({ dog: { sized: rejects(), name: rejects() } }),
    unreturned: true,
  },
  'properties whose getters throw': {
    query: '{ dogs { name must } }',
    root: () => ({
      dogs: [
        {
          get name() {
            return fails();
          },
          must: rejectsLater(),
        },
        {
          get must() {
            return fails();
          },
          name: rejects(),
        },
      ],
    }),
  },
  'many items after one that failed': {
    query: '{ dogs { must name } }',
    root: () => ({
      dogs: () => Array.from({ length: 20_000 }, (_, i) => (i === 0 ? { must: fails } : { name: rejects() })),
    }),
    unreturned: true,
  },
  'a scalar that converts items of an open asynchronous iterable to promises': {
    query: '{ dog { stricts } }',
    root: () => ({
      dog: {
        stricts: () =>
          slowly(
            () => 'later',
            () => 'good',
            () => 'good',
          ),
      },
    }),
    since17: true,
  },
  'items that fail while their asynchronous iterable is open': {
    query: '{ dogs { must name } }',
    root: () => ({
      async *dogs() {
        yield { must: rejects, name: rejects() };
        yield* slowly(() => ({ must: rejectsLater }));
      },
    }),
    since17: true,
  },
  'promised items of an open asynchronous iterable': {
    query: '{ names }',
    root: () => ({
      names: () =>
        promised(
          rejects,
          rejectsLater,
          () => 'name',
          () => later(() => null),
        ),
    }),
    since17: true,
  },
  'a thenable in a set whose list resolves after an abort': {
    query: '{ nested }',
    root: () => ({
      nested: () => new Set([[], thenable(() => later(() => ['first', rejects(), rejectsLater()]))]),
    }),
    abort: 1,
    unreturned: true,
  },
  'a thenable in an asynchronous iterable that resolves after the execution': {
    query: '{ user nested }',
    root: () => ({
      user: () => turns(4).then(rejects),
      nested: () =>
        steps(
          thenable(async () => {
            await turns(6);
            return ['first', rejects(), rejectsLater()];
          }),
        ),
    }),
    since17: true,
    unreturned: true,
  },
  'an asynchronous iterable whose steps are thenables': {
    query: '{ user nested }',
    root: () => ({
      user: () => turns(4).then(rejects),
      nested: () => thenableSteps(() => ['first', rejects(), rejectsLater()]),
    }),
    since17: true,
    unreturned: true,
  },
  'an asynchronous iterable whose steps are thenables of thenables': {
    query: '{ user nested }',
    root: () => ({
      user: () => turns(4).then(rejects),
      nested: () => thenableSteps(() => ['first', rejects(), rejectsLater()], unassimilated),
    }),
    since17: true,
    unreturned: true,
  },
  'an asynchronous iterable that resolves later': {
    query: '{ dogs { must name } }',
    root: () => ({ dogs: () => later(() => slowly(() => ({ must: rejects, name: rejects() }))) }),
    since17: true,
  },
  'an asynchronous iterable that is open when the execution ends': {
    query: '{ user dogs { must name } }',
    root: () => ({
      user: rejectsLater,
      dogs: () => slowly(...Array.from({ length: 5 }, () => () => ({ must: rejectsLater, name: rejects() }))),
    }),
    since17: true,
  },
  'an asynchronous iterable of a client that disconnects': {
    query: '{ dogs { must name } names }',
    root: () => ({
      dogs: () => slowly(...Array.from({ length: 5 }, () => () => ({ must: () => turns(6) }))),
      names: () => promised(...Array.from({ length: 5 }, () => () => later(() => 'name'))),
    }),
    since17: true,
    abort: 8,
  },
  'an asynchronous iterable that fails': {
    query: '{ dogs { must name } }',
    root: () => ({
      dogs: () => slowly(() => ({ must: rejectsLater, name: rejects() }), rejects),
    }),
    since17: true,
  },
};

/** The execution fails some microtasks before or after the end of a list, whose last item rejects later. */
const AT_THE_END: Readonly<Record<string, RejectionCase>> = Object.fromEntries(
  [1, 2, 3, 4, 5].map((microtasks) => [
    `an asynchronous iterable that ends when a field fails after ${microtasks} microtasks`,
    {
      query: '{ names user }',
      root: () => ({
        names: () => steps('first', 'second', later(rejects)),
        user: async () => {
          for (let microtask = 0; microtask < microtasks; microtask++) await undefined;
          return fails();
        },
      }),
      since17: true,
    },
  ]),
);

/** Cases with deferred parts. `payloads`: the client disconnects after this many. */
const INCREMENTAL_CASES: Readonly<Record<string, RejectionCase & { readonly payloads?: number }>> = {
  'a deferred part that fails': {
    query: '{ text ... @defer { dog { must name friends { name } } dogs { must name } } }',
    root: () => ({
      dog: () => later(() => ({ must: rejects, name: rejects(), friends: [{ name: rejects() }] })),
      dogs: () => [
        { must: fails, name: rejects() },
        { must: rejectsLater(), name: rejects() },
      ],
    }),
  },
  'a deferred part whose required field fails': {
    query: '{ text ... @defer { now dogs { must name } items { name } } }',
    root: () => ({
      now: rejectsLater,
      dogs: () => slowly(...Array.from({ length: 5 }, () => () => ({ must: rejectsLater, name: rejects() }))),
      items: () => later(() => [rejects(), { name: rejects() }]),
    }),
  },
  'a first result that fails before its deferred parts': {
    query: '{ dog { must ... @defer { name friends { name } } } }',
    root: () => ({ dog: () => ({ must: rejectsLater, name: rejects(), friends: [rejects()] }) }),
  },
  'a stream whose items fail': {
    query: '{ dogs @stream(initialCount: 2) { must name } names @stream }',
    root: () => ({
      dogs: () => slowly(...Array.from({ length: 5 }, () => () => ({ must: rejectsLater, name: rejects() }))),
      names: () => [rejects(), rejectsLater(), null, rejects()],
    }),
  },
  'a stream whose later items fail': {
    query: '{ dogs @stream(initialCount: 1) { must name } }',
    root: () => ({
      dogs: () =>
        slowly(
          () => ({ must: 'first' }),
          () => ({ must: 'second' }),
          () => ({ must: rejectsLater, name: rejects() }),
        ),
    }),
  },
  'a stream of a client that disconnects': {
    query:
      '{ dogs @stream(initialCount: 1) { must ... @defer { name puppies { must } } } ... @defer { text } }',
    root: () => ({
      dogs: () =>
        slowly(
          ...Array.from({ length: 9 }, () => () => ({
            must: 'first',
            name: rejectsLater,
            puppies: () => slowly(() => ({ must: rejectsLater }), rejects),
          })),
        ),
      text: () => later(rejects),
    }),
    payloads: 2,
  },
};

const EXECUTORS = { 'the engine': engines.compiled, "engine: 'graphql-js'": selectEngine('graphql-js') };

const INCREMENTAL_EXECUTORS = { 'the engine': compiledIncrementally, 'graphql-js': executeIncrementally };

let unhandled = 0;
process.on('unhandledRejection', () => unhandled++);
const result: Record<string, number> = {};
await executeCases('');
await executeIncrementalCases('');
if (V17) {
  for (const name of ['execute', 'execute:rootSelectionSet']) {
    const ignore = (): void => undefined;
    const handlers = { start: ignore, end: ignore, asyncStart: ignore, asyncEnd: ignore, error: ignore };
    tracingChannel(`graphql:${name}`).subscribe(handlers);
  }
  await executeCases(', while the tracing channels have subscribers');
  await executeIncrementalCases(', while the tracing channels have subscribers');
}
process.stdout.write(JSON.stringify(result));

async function executeCases(circumstances: string): Promise<void> {
  for (const [executor, engine] of Object.entries(EXECUTORS)) {
    for (const [title, rejectionCase] of Object.entries({ ...CASES, ...AT_THE_END })) {
      if (rejectionCase.since17 === true && !V17) continue;
      if (rejectionCase.unreturned === true && engine !== engines.compiled) continue;
      result[`${executor} leaves no unhandled rejection for ${title}${circumstances}`] = await countUnhandled(
        engine,
        rejectionCase,
      );
    }
  }
}

async function executeIncrementalCases(circumstances: string): Promise<void> {
  if (!V17) return;
  for (const format of ['v0.2', '20220824'] as const) {
    for (const [executor, executeParts] of Object.entries(INCREMENTAL_EXECUTORS)) {
      const engine: Engine = (operation, settings) => executeParts(operation, settings, format);
      for (const [title, rejectionCase] of Object.entries(INCREMENTAL_CASES)) {
        const payloads = rejectionCase.payloads ?? Number.POSITIVE_INFINITY;
        result[
          `${executor} leaves no unhandled rejection in the format ${format} for ${title}${circumstances}`
        ] = await countUnhandled(engine, rejectionCase, payloads);
      }
    }
  }
}

async function countUnhandled(
  engine: Engine,
  { query, root, abort }: RejectionCase,
  payloads?: number,
): Promise<number> {
  unhandled = 0;
  const controller = new AbortController();
  const disconnect = (): void => controller.abort(new Error('disconnected'));
  const run = prepare(engine, payloads === undefined ? schema : schemaOf(DIRECTIVES), query);
  const outcome = Promise.resolve(run({ rootValue: root(), signal: controller.signal })).catch(
    () => undefined,
  );
  await turns(abort ?? 1);
  if (abort !== undefined) disconnect();
  const rest = (await outcome)?.rest;
  for (let read = 1; rest !== undefined && (await rest.next()).done !== true; read++) {
    if (read !== payloads) continue;
    disconnect();
    await rest.return();
    break;
  }
  await turns(40);
  return unhandled;
}
