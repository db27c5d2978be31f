/** @tags graphql */
import { type Change, diff } from '@graphql-inspector/core';
import fc from 'fast-check';
import {
  buildSchema,
  type GraphQLInputField,
  type GraphQLSchema,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
} from 'graphql';
import { findChanges } from '../../src/cli/check-schema.ts';

// The verdicts of espalier check, next to those of graphql-inspector.

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
  // Operations that do not give the value are invalid.
  if (type.includes('DEFAULT') && isRequiredNow(path, later)) return 'breaking';
  const isNew = later.getType(path.replace(/\..*/, '')) === undefined;
  if (type === 'INPUT_FIELD_ADDED' && !isNew && criticality.level === 'NON_BREAKING') return 'dangerous';
  return criticality.level.toLowerCase();
}

/** Whether an argument or an input field has to be given. */
function isRequiredNow(path: string, schema: GraphQLSchema): boolean {
  const [name = '', member = '', argument] = path.split('.');
  if (name.startsWith('@'))
    return (
      schema
        .getDirective(name.slice(1))
        ?.args.some((one) => one.name === member && isRequiredArgument(one)) === true
    );
  const type = schema.getType(name);
  if (isInputObjectType(type)) return isRequiredInputField(type.getFields()[member] as GraphQLInputField);
  const args = isObjectType(type) || isInterfaceType(type) ? type.getFields()[member]?.args : undefined;
  return args?.some((one) => one.name === argument && isRequiredArgument(one)) === true;
}

/** Inspector names the directive when it gets an argument, and no type when another one becomes a root type. */
const PLACES: Record<string, (path: string) => string> = {
  DIRECTIVE_ARG_ADDED: (path) => path.replace(/\..*/, ''),
  ROOT_TYPE_CHANGED: () => '',
};

async function verdicts(before: string, after: string) {
  const [earlier, later] = [buildSchema(before, LOOSE), buildSchema(after, LOOSE)];
  const known = (path: string) =>
    !path.includes('.') || earlier.getType(path.replace(/\..*/, '')) !== undefined;
  const inspected = (await diff(earlier, later))
    // Of directives at definitions, of which clients can observe @oneOf only.
    .filter(({ type, path = '' }) => !type.startsWith('DIRECTIVE_USAGE') || path.endsWith('@oneOf'))
    .filter(({ path = '' }) => path.startsWith('@') || known(path))
    .map((change) => `${levelOf(change, later)} ${(change.path ?? '').replace('.@oneOf', '')}`)
    .filter((verdict) => !verdict.startsWith('non_breaking'));
  const found = findChanges(earlier, later).map(({ level, type, coordinate = '?' }) => {
    const path = coordinate.replace(/\((\w+):\)/, '.$1');
    const place = type.includes('DIRECTIVE_ARG_ADDED') ? PLACES['DIRECTIVE_ARG_ADDED'] : PLACES[type];
    return `${level} ${place?.(path) ?? path}`;
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
  ['an argument gets a default value', ', c: Int', ', c: Int = 1'],
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
  ['the default value of an input field changes', 'b: Int = 1', 'b: Int = 2'],
  ['the default value of an input field is removed', 'b: Int = 1', 'b: Int'],
  ['an input type becomes @oneOf', 'input In {', 'input In @oneOf {'],
  ['a type is removed', 'type M { a: Int } schema { query: Query mutation: M }', ''],
  ['a type changes its kind', 'enum E { X Y }', 'scalar E'],
  ['there are no mutations any more', 'mutation: M', ''],
  ['there are other mutations', 'mutation: M', 'mutation: A'],
  ['there are subscriptions', 'mutation: M', 'mutation: M subscription: A'],
  ['a directive is removed', /directive @d.*/s, ''],
  ['a location of a directive is removed', 'FIELD | QUERY', 'FIELD'],
  ['a directive is no longer repeatable', 'repeatable', ''],
  ['a required argument of a directive is added', '@d(', '@d(c: Int!, '],
  ['an argument of a directive is removed', '@d(a: Int,', '@d('],
  ['the type of an argument of a directive changes', '@d(a: Int,', '@d(a: [Int],'],
  ['an argument of a directive becomes required', '@d(a: Int,', '@d(a: Int!,'],
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
