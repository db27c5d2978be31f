import {
  buildSchema,
  doTypesOverlap,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  OperationTypeNode,
} from 'graphql';
import { authTypeDefs } from '../../middleware/auth.ts';
import { type Choices, hash } from '../engine/choices.ts';

const SCOPES = ['a', 'b', 'c'];
const POLICIES = ['p', 'q'];

/** A random list of names that is not empty. */
const names = (choices: Choices, all: readonly string[]): string =>
  `[${[choices.pick(all), ...(choices.chance(90) ? [choices.pick(all)] : [])].map((name) => `"${name}"`).join(', ')}]`;

/** The text of a directive with a random requirement, in this many of 256 cases. */
export function directive(choices: Choices, of256: number): string {
  if (!choices.chance(of256)) return '';
  const lists = (all: readonly string[]): string =>
    `[${[names(choices, all), ...(choices.chance(80) ? [names(choices, all)] : [])].join(', ')}]`;
  const one = choices.pick([
    '@authenticated',
    `@requiresScopes(scopes: ${lists(SCOPES)})`,
    `@requiresScopes(scopes: ${lists(SCOPES)})`,
    `@policy(policies: ${lists(POLICIES)})`,
  ]);
  return choices.chance(30) && one !== '@authenticated' ? `@authenticated ${one}` : one;
}

const TYPES = ['String', 'String', 'Leaf', 'Colour', 'A', 'B', 'C', 'Node', 'Named', 'Either'];
/** `_` is a type. */
export const WRAPPERS = ['_', '_', '_', '_!', '[_]', '[_!]', '[_]!', '[_!]!', '[[_!]]'];
const ARGUMENTS = [
  (choices: Choices) => `(x: Int ${directive(choices, 120)}, in: In)`,
  (choices: Choices) => `(colour: Colour, x: Int = 4 ${directive(choices, 60)})`,
];

/** Fields of one type; the names are different in each type, so that selections of different types merge. */
function fields(choices: Choices, prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const type = choices.pick(WRAPPERS).replace('_', choices.pick(TYPES));
    const args = choices.chance(60) ? choices.pick(ARGUMENTS)(choices) : '';
    return `${prefix}${index}${args}: ${type} ${directive(choices, 70)}`;
  });
}

/** Fields of an interface for a type that implements it: without its directives, or with others. */
const implemented = (choices: Choices, of: readonly string[]): string[] =>
  of.map((field) => `${field.replace(/@.*/, '')} ${directive(choices, 40)}`);

/** A random schema with requirements. Fields of interfaces have no arguments. */
export function randomSchema(choices: Choices): GraphQLSchema {
  const simple = (prefix: string): string[] =>
    fields(choices, prefix, 2).map((field) => field.replace(/\([^:]*:.*?\)(?=:)/, ''));
  const node = simple('n');
  const named = simple('m');
  const on = (of256 = 45): string => directive(choices, of256);
  const object = (name: string, interfaces: string, inherited: readonly string[]): string =>
    `type ${name} ${interfaces} ${on()} { ${[
      ...implemented(choices, inherited),
      ...fields(choices, name.toLowerCase(), 3),
    ].join('\n')} }`;
  return buildSchema(
    `${authTypeDefs}
    scalar Leaf ${on(30)}
    enum Colour ${on(30)} { RED BLUE }
    interface Node ${on(25)} { ${node.join('\n')} }
    interface Named implements Node ${on(25)} { ${[...implemented(choices, node), ...named].join('\n')} }
    union Either = A | B
    input In { i: Int ${on(80)} colour: Colour in: In list: [In!] ${on(30)} }
    ${object('A', 'implements Node & Named', [...node, ...named])}
    ${object('B', 'implements Node', node)}
    ${object('C', '', [])}
    type Query ${on(12)} { ${fields(choices, 'q', 7).join('\n')} }`,
    { assumeValid: true },
  );
}

type Value = string | null | readonly Value[] | { readonly __typename: string; readonly id: string };

/** The value at a place of the graph: the same at each call. Each leaf has a text of its own, if its type allows that. */
export function valueAt(schema: GraphQLSchema, type: GraphQLOutputType, id: string): Value {
  const number = hash(id, 1);
  if (!isNonNullType(type) && number % 9 === 0) return null;
  const nullable = getNullableType(type);
  if (isListType(nullable))
    return Array.from({ length: number % 4 }, (_, index) =>
      valueAt(schema, nullable.ofType, `${id}[${index}]`),
    );
  const named = getNamedType(nullable);
  const objects = isAbstractType(named) ? schema.getPossibleTypes(named) : isObjectType(named) ? [named] : [];
  const object = objects[number % objects.length];
  if (object !== undefined) return { __typename: object.name, id };
  return isEnumType(named) ? (number % 2 ? 'RED' : 'BLUE') : id;
}

/** Gives all fields resolvers. Some return promises, if `isAsync`. */
export function addResolvers(schema: GraphQLSchema, isAsync: boolean): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith('__')) continue;
    for (const field of Object.values(type.getFields())) {
      field.resolve = (source) => {
        const id = `${(source as { id?: string } | undefined)?.id ?? ''}.${field.name}`;
        const value = valueAt(schema, field.type, id);
        return isAsync && hash(id, 2) % 3 === 0 ? Promise.resolve(value) : value;
      };
    }
  }
}

const CONDITIONS = [
  '',
  '',
  '',
  '',
  '@include(if: $yes)',
  '@skip(if: $yes)',
  '@skip(if: $no)',
  '@include(if: false)',
];
const VARIABLES = {
  yes: 'Boolean!',
  no: 'Boolean = false',
  in: 'In',
  x: 'Int',
  colour: 'Colour = BLUE',
};
/** Each alias has one list of arguments. */
const GIVEN: Readonly<Record<string, readonly string[]>> = {
  in: [
    '',
    '(in: { i: 1 })',
    '(in: $in, x: 2)',
    '(x: $x)',
    '(in: { in: { list: { colour: RED } } })',
    '(in: { i: $x, in: $in })',
    '(in: null)',
  ],
  colour: ['', '(colour: RED)', '(x: 1)', '(colour: $colour)', '(colour: null, x: $x)'],
};

type Field = GraphQLField<unknown, unknown>;

/** The text of arguments, and an alias that only fields with this text have. */
export interface Given {
  readonly alias: string;
  readonly text: string;
}

const COMPOSITES = ['Query', 'A', 'B', 'C', 'Node', 'Named', 'Either'];

function overlaps(schema: GraphQLSchema, ...names: readonly string[]): boolean {
  const [one, other] = names.map((name) => schema.getType(name) as GraphQLCompositeType);
  return one !== undefined && other !== undefined && doTypesOverlap(schema, one, other);
}

/** One of the lists of arguments of a field, with an alias of its own. */
function knownArguments(choices: Choices, { name, args }: Field): Given {
  const given = GIVEN[args.find((arg) => arg.name in GIVEN)?.name ?? ''] ?? [''];
  const variant = choices.choose(given.length);
  return { alias: variant === 0 ? '' : `${name}_${variant}: `, text: given[variant] ?? '' };
}

/** A random operation of the schema, with fragments, conditions, aliases and arguments. */
export function randomDocument(
  choices: Choices,
  schema: GraphQLSchema,
  giveArguments: typeof knownArguments = knownArguments,
  operation: OperationTypeNode = OperationTypeNode.QUERY,
): string {
  const fragments: string[] = [];
  const select = (name: string, depth: number): string => {
    const type = schema.getType(name);
    const items = Array.from({ length: (depth === 0 ? 3 : 1) + choices.choose(depth < 3 ? 4 : 2) }, () => {
      const condition = choices.pick(CONDITIONS);
      if (choices.chance(50)) {
        const target = choices.pick(
          [...new Set([...COMPOSITES, name])].filter((other) => overlaps(schema, name, other)),
        );
        const inner = select(target, depth + 1);
        if (choices.chance(128)) return `... on ${target} ${condition} ${inner}`;
        fragments.push(`fragment F${fragments.length} on ${target} ${inner}`);
        return `...F${fragments.length - 1} ${condition}`;
      }
      const all = isObjectType(type) || isInterfaceType(type) ? Object.values(type.getFields()) : [];
      const field = all[choices.choose(all.length + 1)];
      if (field === undefined) return choices.pick(['__typename', 'kind: __typename']);
      const { alias, text } = giveArguments(choices, field);
      const inner = getNamedType(field.type);
      const selection = isCompositeType(inner) ? leafOr(inner.name, depth) : '';
      return `${alias}${field.name}${text} ${condition} ${selection}`;
    });
    return `{ ${items.join('\n')} }`;
  };
  const leafOr = (name: string, depth: number): string =>
    depth > 4 ? '{ __typename }' : select(name, depth + 1);
  const selection = select(schema.getRootType(operation)?.name ?? '', 0);
  const text = [selection, ...fragments].join('\n');
  const variables = Object.entries(VARIABLES).filter(([name]) => text.includes(`$${name}`));
  const definitions = variables.map(([name, type]) => `$${name}: ${type}`).join(', ');
  if (definitions !== '') return `${operation} (${definitions}) ${text}`;
  return operation === OperationTypeNode.QUERY ? text : `${operation} ${text}`;
}

export const randomVariables = (choices: Choices): Record<string, unknown> => ({
  yes: choices.chance(128),
  ...(choices.chance(128) && { no: choices.chance(128) }),
  ...(choices.chance(128) && {
    in: choices.pick([null, {}, { i: 2 }, { in: { list: [{ colour: 'RED' }] } }]),
  }),
  ...(choices.chance(128) && { x: choices.pick([null, 3]) }),
  ...(choices.chance(128) && { colour: choices.pick([null, 'RED']) }),
});

/** A random caller: what the header `x-scopes` says, where policies stand as scopes. */
export function randomCaller(choices: Choices): string | undefined {
  if (choices.chance(60)) return undefined;
  return [...SCOPES, ...POLICIES].filter(() => choices.chance(128)).join(' ');
}

/** The policies that a caller of `randomCaller` meets. */
export const policiesOf = (scopes: readonly string[] | null): string[] =>
  POLICIES.filter((policy) => scopes?.includes(policy) === true);
