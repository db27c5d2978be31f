import {
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isLeafType,
  isObjectType,
} from 'graphql';
import type { Choices } from './choices.ts';

/** A random operation for a schema of random-schema.ts, with variables. */
export interface RandomQuery {
  readonly text: string;
  /** For several requests. */
  readonly variables: readonly Record<string, unknown>[];
  readonly root: string;
}

const HEAD = `($b1: Boolean!, $b2: Boolean = true, $b3: Boolean! = false, $i: Int, $s: String = "from variable", $e: Colour,
  $in: In, $n: Int! = 3, $one: One, $list: [Float!] = [1, 2.5], $any: Any, $id: ID, $unused: Colour = GREEN, $__proto__: String)`;

export function randomQuery(choices: Choices, schema: GraphQLSchema): RandomQuery {
  const fragments: string[] = [];
  const mutation = choices.chance(50);
  const root = mutation ? 'Mutation' : 'Query';
  const selection = selectionOf(choices, schema, schema.getType(root) as GraphQLNamedType, {
    fragments,
    depth: 0,
    depthLimit: choices.pick([5, 5, 5, 3, 12]),
  });
  const text = `${mutation ? 'mutation' : 'query'} Q${HEAD} ${selection}\n${fragments.join('\n')}`;
  return { text, root, variables: [randomVariables(choices), randomVariables(choices)] };
}

interface Place {
  readonly fragments: string[];
  readonly depth: number;
  readonly depthLimit: number;
}

function selectionOf(choices: Choices, schema: GraphQLSchema, type: GraphQLNamedType, place: Place): string {
  const parts: string[] = [];
  const count = 1 + choices.choose(place.depth === 0 ? 5 : 4);
  for (let i = 0; i < count; i++) parts.push(itemOf(choices, schema, type, place));
  return `{ ${parts.join('\n')} }`;
}

function itemOf(choices: Choices, schema: GraphQLSchema, type: GraphQLNamedType, place: Place): string {
  const kind = choices.choose(10);
  if (kind < 7) return fieldOf(choices, schema, type, place);
  const target = choices.pick(conditionsFor(schema, type));
  const inner = selectionOf(choices, schema, schema.getType(target) as GraphQLNamedType, {
    ...place,
    depth: place.depth + 1,
  });
  if (kind < 9) return `... on ${target} ${directiveOf(choices)} ${inner}`;
  const name = `F${place.fragments.length}`;
  place.fragments.push(`fragment ${name} on ${target} ${inner}`);
  return choices.chance(60) ? `...${name} ...${name}` : `...${name} ${directiveOf(choices)}`;
}

function conditionsFor(schema: GraphQLSchema, type: GraphQLNamedType): readonly string[] {
  if (type.name === 'Query' || type.name === 'Mutation') return [type.name];
  if (isAbstractType(type))
    return [type.name, 'Node', 'Named', ...schema.getPossibleTypes(type).map(({ name }) => name)];
  return type.name === 'C' ? [type.name, 'Node'] : [type.name, 'Node', 'Named', 'Either'];
}

function fieldOf(choices: Choices, schema: GraphQLSchema, type: GraphQLNamedType, place: Place): string {
  if (!('getFields' in type)) return '__typename';
  const fields = type.getFields();
  const names = Object.keys(fields);
  const name = choices.pick([...names, '__typename']);
  if (name === '__typename') return `${choices.pick(TYPE_NAMES)}__typename`;
  const field = fields[name] as { type: unknown; args?: readonly unknown[] };
  const variant = choices.pick(VARIANTS);
  const args = (field.args?.length ?? 0) > 0 ? ARGUMENTS[variant] : '';
  const alias = aliasOf(name, variant);
  const named = getNamedType(field.type as Parameters<typeof getNamedType>[0]) as GraphQLNamedType;
  const directive = directiveOf(choices);
  if (isLeafType(named)) return `${alias}${name}${args} ${directive}`;
  const inner =
    place.depth >= place.depthLimit
      ? isObjectType(named)
        ? '{ id }'
        : '{ __typename }'
      : selectionOf(choices, schema, named, { ...place, depth: place.depth + 1 });
  return `${alias}${name}${args} ${directive} ${inner}`;
}

const TYPE_NAMES = ['', 'kind: ', '__proto__: ', 'constructor: ', 'toString: ', '_1: '];

/** Aliases include the names of properties that every object inherits. */
function aliasOf(name: string, variant: number): string {
  if (variant === 0) return '';
  if (variant === 1 && name === 'id') return 'hasOwnProperty: ';
  if (variant === 1 && name === 'name') return '__defineGetter__: ';
  return `${name}_${variant}: `;
}

/** Each response key has one list of arguments, so that fields merge. */
const ARGUMENTS = [
  '',
  '(i: $i, s: $s, in: $in)',
  '(i: $n, e: RED, s: "lit", in: { n: $n, l: [1, $i], s: { a: $i }, c: [$e, BLUE] })',
  '(one: $one, list: $list, any: $any, must: $id, e: $e)',
  '(one: { list: ["a", "b"] }, list: [1, 2], any: { deep: [$any, 1, null] }, must: 5, e: OPAQUE)',
  '(one: { id: $id }, list: 3, any: $s, in: { n: 1, in: { n: $n, one: { in: { n: 2 } } } }, s: $__proto__)',
  '(i: null, s: null, e: null, in: null, one: null, list: null, any: null)',
  '(any: 1.5, e: NIL)',
];
/** Arguments that mostly fail are rare. */
const VARIANTS = [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 0, 1, 2, 7];

function directiveOf(choices: Choices): string {
  if (!choices.chance(60)) return '';
  return choices.pick([
    '@include(if: $b1)',
    '@skip(if: $b2)',
    '@skip(if: false)',
    '@include(if: false)',
    '@skip(if: $b1) @include(if: $b2)',
    '@include(if: $b3)',
    '@skip(if: $b3)',
  ]);
}

/** For each variable: valid values, invalid values, and values that are valid in some positions. */
const VALUES: Readonly<Record<string, readonly [right: readonly unknown[], wrong: readonly unknown[]]>> = {
  b2: [
    [false, true],
    [null, undefined, 0],
  ],
  b3: [[false, true], [null]],
  i: [
    [1, 0, -5, null, 3, undefined, 2 ** 31 - 1],
    ['wrong', 2 ** 31, 1.5],
  ],
  s: [['text', null, '', 'x', undefined, '☃"'], [5]],
  e: [
    ['RED', 'GREEN', null, 'OPAQUE', 'NIL', 'NONE', undefined],
    ['BLACK', 1],
  ],
  in: [
    [
      { n: 1 },
      { n: 2, d: 'given', l: [1, null] },
      { n: 3, s: { deep: [1] }, l: 4 },
      null,
      { n: 1, in: { n: 2, c: 'RED', d: null } },
      { n: 1, one: { id: 1 } },
      { n: 1, s: undefined, d: undefined },
    ],
    [{}, { n: 1, c: null }, { n: 1, more: 1 }, { n: 1, one: { id: 1, list: [] } }, [{ n: 1 }], 'x'],
  ],
  n: [
    [1, 2, 3, 4],
    [null, undefined, '1'],
  ],
  one: [
    [{ id: 1 }, { list: 'a' }, null, { in: { n: 1 } }],
    [{ list: ['a', null] }, {}, { id: null }, { id: 1, in: { n: 1 } }],
  ],
  list: [
    [[1, 2], 5, [], null],
    [[null], 'x'],
  ],
  any: [[{ a: [1] }, null, undefined, 0, 'text'], ['refused']],
  id: [
    ['a', 7],
    [null, 1.5],
  ],
  unused: [['RED'], ['BLACK']],
};

function randomVariables(choices: Choices): Record<string, unknown> {
  const variables: Record<string, unknown> = { b1: choices.chance(200), id: 'given' };
  for (const [name, [right, wrong]] of Object.entries(VALUES)) {
    if (choices.chance(110)) variables[name] = choices.pick(choices.chance(12) ? wrong : right);
  }
  if (choices.chance(40)) variables['more'] = [1];
  if (choices.chance(40)) Object.defineProperty(variables, '__proto__', { value: 'own', enumerable: true });
  if (choices.chance(4)) delete variables['b1'];
  return variables;
}
