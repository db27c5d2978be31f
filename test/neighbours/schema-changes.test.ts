/** @tags graphql */
import { type Change, diff } from '@graphql-inspector/core';
import fc from 'fast-check';
import { buildSchema, type GraphQLSchema, isRequiredArgument } from 'graphql';
import { findChanges } from '../../src/cli/check-schema.ts';

// The verdicts and coordinates of espalier check, next to those of graphql-inspector.

/** What graphql-js does not compare, or only from version 17 on. */
const UNSEEN = /DEFAULT|^SCHEMA_|^DIRECTIVE_ARGUMENT_TYPE|^DIRECTIVE_USAGE|^ARG_CHANGED_KIND @/;

/** What inspector judges otherwise than graphql-js. */
function levelOf({ type, criticality, path = '', meta }: Change, later: GraphQLSchema): string {
  // A document may use the directive twice.
  if (type === 'DIRECTIVE_REPEATABLE_REMOVED') return 'breaking';
  if (type === 'DIRECTIVE_ARGUMENT_ADDED') {
    const name = (meta as { readonly addedDirectiveArgumentName: string }).addedDirectiveArgumentName;
    const argument = later.getDirective(path.slice(1))?.args.find((one) => one.name === name);
    // It may be non-null and have a default value.
    if (argument !== undefined && !isRequiredArgument(argument)) return 'non_breaking';
  }
  const isNew = later.getType(path.replace(/\..*/, '')) === undefined;
  if (type === 'INPUT_FIELD_ADDED' && !isNew && criticality.level === 'NON_BREAKING') return 'dangerous';
  return criticality.level.toLowerCase();
}

async function verdicts(before: string, after: string) {
  const [earlier, later] = [buildSchema(before, LOOSE), buildSchema(after, LOOSE)];
  const known = (path: string) =>
    !path.includes('.') || earlier.getType(path.replace(/\..*/, '')) !== undefined;
  const inspected = (await diff(earlier, later))
    .filter(({ type }) => !UNSEEN.test(type))
    .filter(({ path = '' }) => path.startsWith('@') || known(path))
    .map((change) => `${levelOf(change, later)} ${change.path ?? ''}`)
    .filter((verdict) => !verdict.startsWith('non_breaking'));
  const found = findChanges(earlier, later)
    .filter(({ type, coordinate }) => !UNSEEN.test(`${type} ${coordinate}`))
    .map(({ level, type, coordinate = '?' }) => {
      const path = coordinate.replace(/\((\w+):\)/, '.$1');
      // Inspector names the directive when it gets an argument.
      return `${level} ${type.includes('DIRECTIVE_ARG_ADDED') ? path.replace(/\..*/, '') : path}`;
    });
  return { inspected: [...new Set(inspected)].sort(), found: [...new Set(found)].sort() };
}

const LOOSE = { assumeValid: true };

const FIELDS = 'type Query { a(b: In, c: Int): A e: E u: U } union U = A | B type A implements I { a: Int }';
const OTHERS =
  'type B { a: Int } interface I { a: Int } enum E { X Y } input In { a: Int b: Int = 1 c: Int }';
const BEFORE = `${FIELDS} ${OTHERS} type M { a: Int } schema { query: Query mutation: M }
  directive @d(a: Int, b: Int = 1) repeatable on FIELD | QUERY`;

it.each([
  ['a field is removed', ' e: E', ''],
  ['a field is added', ' e: E', ' e: E f: Int'],
  ['the type of a field changes', ' e: E', ' e: Int'],
  ['a field becomes non-null', ' e: E', ' e: E!'],
  ['an argument is removed', ', c: Int', ''],
  ['an optional argument is added', ', c: Int', ', c: Int, d: Int'],
  ['a required argument is added', ', c: Int', ', c: Int, d: Int!'],
  ['a required argument with a default value is added', ', c: Int', ', c: Int, d: Int! = 1'],
  ['an argument becomes required', ', c: Int', ', c: Int!'],
  ['an argument becomes a list', ', c: Int', ', c: [Int]'],
  ['a member of a union is removed', 'A | B', 'A'],
  ['a member of a union is added', 'A | B', 'A | B | M'],
  ['an interface is removed', 'implements I', ''],
  ['an interface is added', 'type B', 'type B implements I'],
  ['an enum value is removed', 'X Y', 'X'],
  ['an enum value is added', 'X Y', 'X Y Z'],
  ['an input field is removed', ' c: Int }', ' }'],
  ['an optional input field is added', ' c: Int }', ' c: Int d: Int }'],
  ['a required input field is added', ' c: Int }', ' c: Int d: Int! }'],
  ['an input field becomes required', ' c: Int }', ' c: Int! }'],
  ['a type is removed', 'type M { a: Int } schema { query: Query mutation: M }', ''],
  ['a type changes its kind', 'enum E { X Y }', 'scalar E'],
  ['there are subscriptions', 'mutation: M', 'mutation: M subscription: A'],
  ['a directive is removed', /directive @d.*/s, ''],
  ['a location of a directive is removed', 'FIELD | QUERY', 'FIELD'],
  ['a directive is no longer repeatable', 'repeatable', ''],
  ['a required argument of a directive is added', '@d(', '@d(c: Int!, '],
  ['an argument of a directive is removed', '@d(a: Int,', '@d('],
])('espalier check agrees with graphql-inspector when %s', async (_title, pattern, replacement) => {
  const after = BEFORE.replace(pattern, replacement);
  expect(after).not.toBe(BEFORE);
  const { found, inspected } = await verdicts(BEFORE, after);
  expect(found).toEqual(inspected);
});

/** A random schema with few names, so that two of them have much in common. */
function schemaOf(numbers: readonly number[]): string {
  let next = 0;
  const upTo = (count: number): number => (numbers[next++ % numbers.length] ?? 0) % count;
  const some = <T>(values: readonly T[]): T[] => values.filter(() => upTo(3) > 0);
  const one = <T>(values: readonly T[]): T => values[upTo(values.length)] as T;
  const wrap = (name: string): string => one([name, `${name}!`, `[${name}]`, `[${name}!]`, `[[${name}]!]!`]);
  const outputs = ['Int', 'ID', 'A', 'I', 'U', 'E', 'S'];
  const input = (name: string): string => {
    const isNumber = upTo(2) === 0;
    const type = isNumber ? one(['Int', 'Int!']) : wrap(one(['Int', 'In', 'E', 'S', 'String']));
    return `${name}: ${type}${isNumber ? one(['', ' = 1', ' = 2']) : ''}`;
  };
  const args = (): string => {
    const given = some(['a', 'b']).map(input);
    return given.length === 0 ? '' : `(${given.join(', ')})`;
  };
  const fields = (): string =>
    `{ id: ID ${some(['a', 'b', 'c'])
      .map((name) => `${name}${args()}: ${wrap(one(outputs))}`)
      .join(' ')} }`;
  const parts = [
    `type Query ${fields()}`,
    `type A ${one(['', 'implements I'])} ${fields()}`,
    `type B ${one(['', 'implements I'])} ${fields()}`,
    `interface I ${fields()}`,
    `union U = ${one(['A', 'B', 'A | B', 'A | Query'])}`,
    one(['enum E { X }', 'enum E { X Y }', 'enum E { Y Z }', 'scalar E']),
    one(['scalar S', 'scalar S', 'enum S { X }']),
    `input In ${one(['', '', '@oneOf'])} { z: Int ${some(['a', 'b']).map(input).join(' ')} }`,
    ...some([`type M ${fields()}`, 'scalar T']),
    ...some([`directive @d${args()} ${one(['', 'repeatable'])} on ${one(['FIELD', 'QUERY | FIELD'])}`]),
  ];
  if (parts.some((part) => part.startsWith('type M')))
    parts.push(`schema { query: ${one(['Query', 'A'])} mutation: M }`);
  return parts.join('\n');
}

it('espalier check agrees with graphql-inspector on random changes', async () => {
  const numbers = fc.array(fc.nat(1000), { minLength: 20, maxLength: 80 });
  await fc.assert(
    fc.asyncProperty(numbers, numbers, async (one, other) => {
      const { found, inspected } = await verdicts(schemaOf(one), schemaOf(other));
      expect(found).toEqual(inspected);
    }),
    { numRuns: 300 },
  );
});
