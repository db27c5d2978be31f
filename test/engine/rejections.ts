// Run by rejections.test.ts, which reads how many rejections were unhandled in each case.
import { buildSchema } from 'graphql';
import type { Engine } from '../../src/execution/engine.ts';
import { engines, guardedGraphqlJs, prepare } from './compare.ts';

const schema = buildSchema(`
  scalar Any
  interface Being { name: String }
  type Dog implements Being { name: String must: String! friends: [Dog] }
  type Query {
    user: String! now: String! items: [Dog] names: [String!] nested: [[String!]] dog: Dog dogs: [Dog!]
    being: Being text: String set: [String!] any: Any
  }
  type Mutation { first: String! second: [String] }
`);
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

interface RejectionCase {
  readonly query: string;
  readonly root: () => unknown;
  /** graphql 17 reads the rest of a generator, so that its guard never sees these values. */
  readonly compiledOnly?: boolean;
  /** The client disconnects while resolvers wait. */
  readonly abort?: boolean;
}

const CASES: Readonly<Record<string, RejectionCase>> = {
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
    compiledOnly: true,
  },
  'promises after an invalid item of a set': {
    query: '{ set }',
    root: () => ({ set: () => new Set([null, rejects(), rejectsLater()]) }),
  },
  'promised properties after a field that fails': {
    query: '{ dog { must name } }',
    root: () => ({ dog: { must: fails, name: rejects() } }),
  },
  'promised properties of later items': {
    query: '{ dogs { must name } }',
    root: () => ({ dogs: () => [{ must: fails }, { must: rejects(), name: rejects() }] }),
  },
  'promised properties of the root value': {
    query: '{ now text }',
    root: () => ({ now: fails, text: rejects() }),
  },
  'a list in place of a string': {
    query: '{ text }',
    root: () => ({ text: () => [rejects(), { deep: rejectsLater() }] }),
  },
  'a list whose type cannot be determined': {
    query: '{ being { name } }',
    root: () => ({ being: () => ({ name: rejects(), __typename: 'Unknown' }) }),
  },
  'a mutation that stops': {
    query: 'mutation { first second }',
    root: () => ({ first: rejectsLater, second: rejects }),
  },
  'values that resolve after an abort': {
    query: '{ items { name } dog { name } text }',
    root: () => ({
      items: () => later(() => [rejects(), later(rejects)]),
      dog: () => later(() => ({ name: rejects() })),
      text: rejectsLater,
    }),
    abort: true,
  },
};

const EXECUTORS = {
  'the engine': engines.compiled,
  'graphql-js, when the engine calls it,': guardedGraphqlJs,
};

let unhandled = 0;
process.on('unhandledRejection', () => unhandled++);
const result: Record<string, number> = {};
for (const [executor, engine] of Object.entries(EXECUTORS)) {
  for (const [title, rejectionCase] of Object.entries(CASES)) {
    if (rejectionCase.compiledOnly === true && engine !== engines.compiled) continue;
    result[`${executor} leaves no unhandled rejection for ${title}`] = await countUnhandled(
      engine,
      rejectionCase,
    );
  }
}
process.stdout.write(JSON.stringify(result));

async function countUnhandled(engine: Engine, { query, root, abort }: RejectionCase): Promise<number> {
  unhandled = 0;
  const controller = new AbortController();
  const outcome = Promise.resolve(
    prepare(engine, schema, query)({ rootValue: root(), signal: controller.signal }),
  ).catch(() => undefined);
  await turns(1);
  if (abort === true) controller.abort(new Error('disconnected'));
  await outcome;
  await turns(20);
  return unhandled;
}
