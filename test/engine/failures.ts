import { GraphQLError, parse } from 'graphql';
import { hash } from './choices.ts';

const NODE = parse('{ far { away } }').definitions[0];
const SHARED = new Error('one error for all');
const LOCATED = new GraphQLError('knows its place', NODE === undefined ? {} : { nodes: NODE });

/** Ways to fail: resolvers may throw or return anything. */
const FAILURES: readonly ((id: string) => unknown)[] = [
  (id) => new Error(`returned ${id}`),
  (id) => {
    throw new GraphQLError(`graphql ${id}`, { extensions: { code: 'E', list: [1, { deep: null }] } });
  },
  (id) => {
    throw `text ${id}`;
  },
  (id) => {
    throw Object.assign(new Error(`extended ${id}`), { extensions: { from: id } });
  },
  (id) => {
    throw new GraphQLError(`placed ${id}`, { path: ['elsewhere', 1] });
  },
  () => {
    throw null;
  },
  () => {
    throw undefined;
  },
  () => {
    throw { message: 'no error at all' };
  },
  () => {
    throw SHARED;
  },
  () => {
    throw LOCATED;
  },
  (id) => {
    throw Object.freeze(new TypeError(`frozen ${id} "quoted" \u2028 ☃`));
  },
  (id) => {
    throw Object.assign(new Error(''), { path: id, locations: 'nowhere', code: 7 });
  },
  (id) => {
    throw new GraphQLError(`wraps ${id}`, { originalError: new RangeError('original') });
  },
  (id) => {
    throw new GraphQLError('☃'.repeat(3000 + id.length));
  },
];

/** Fails in a way that depends on the id; most failures are plain errors. */
export function failure(id: string, seed: number): unknown {
  const kind = hash(`failure:${id}`, seed) % (FAILURES.length * 2);
  const fail = FAILURES[kind];
  if (fail === undefined) throw new Error(`thrown ${id}`);
  return fail(id);
}
