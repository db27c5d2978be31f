import {
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isLeafType,
  isObjectType,
} from 'graphql';
import type { Tape } from './tape.ts';

/** A random operation for a schema of world.ts, and variables for it. */
export interface RandomQuery {
  readonly text: string;
  readonly variables: Record<string, unknown>;
}

const HEAD =
  '($b1: Boolean!, $b2: Boolean = true, $i: Int, $s: String = "from variable", $e: Colour, $in: In, $n: Int! = 3)';

export function randomQuery(tape: Tape, schema: GraphQLSchema): RandomQuery {
  const fragments: string[] = [];
  const mutation = tape.chance(50);
  const root = mutation ? 'Mutation' : 'Query';
  const selection = selectionOf(tape, schema, schema.getType(root) as GraphQLNamedType, {
    fragments,
    depth: 0,
  });
  const text = `${mutation ? 'mutation' : 'query'} Q${HEAD} ${selection}\n${fragments.join('\n')}`;
  return { text, variables: randomVariables(tape) };
}

interface Place {
  readonly fragments: string[];
  readonly depth: number;
}

function selectionOf(tape: Tape, schema: GraphQLSchema, type: GraphQLNamedType, place: Place): string {
  const parts: string[] = [];
  const count = 1 + tape.choose(place.depth === 0 ? 5 : 4);
  for (let i = 0; i < count; i++) parts.push(itemOf(tape, schema, type, place));
  return `{ ${parts.join('\n')} }`;
}

function itemOf(tape: Tape, schema: GraphQLSchema, type: GraphQLNamedType, place: Place): string {
  const kind = tape.choose(10);
  if (kind < 7) return fieldOf(tape, schema, type, place);
  const target = tape.pick(conditionsFor(schema, type));
  const inner = selectionOf(tape, schema, schema.getType(target) as GraphQLNamedType, {
    ...place,
    depth: place.depth + 1,
  });
  if (kind < 9) return `... on ${target} ${directiveOf(tape)} ${inner}`;
  const name = `F${place.fragments.length}`;
  place.fragments.push(`fragment ${name} on ${target} ${inner}`);
  return tape.chance(60) ? `...${name} ...${name}` : `...${name} ${directiveOf(tape)}`;
}

function conditionsFor(schema: GraphQLSchema, type: GraphQLNamedType): readonly string[] {
  if (type.name === 'Query' || type.name === 'Mutation') return [type.name];
  if (isAbstractType(type)) return [type.name, ...schema.getPossibleTypes(type).map(({ name }) => name)];
  return [type.name, 'Node'];
}

function fieldOf(tape: Tape, schema: GraphQLSchema, type: GraphQLNamedType, place: Place): string {
  if (!('getFields' in type)) return '__typename';
  const fields = type.getFields();
  const names = Object.keys(fields);
  const name = tape.pick([...names, '__typename']);
  if (name === '__typename') return tape.chance(128) ? 'kind: __typename' : '__typename';
  const field = fields[name] as { type: unknown; args?: readonly unknown[] };
  const variant = tape.choose(3);
  const args = (field.args?.length ?? 0) > 0 ? ARGUMENTS[variant] : '';
  const alias = variant === 0 ? '' : `${name}_${variant}: `;
  const named = getNamedType(field.type as Parameters<typeof getNamedType>[0]) as GraphQLNamedType;
  const directive = directiveOf(tape);
  if (isLeafType(named)) return `${alias}${name}${args} ${directive}`;
  const inner =
    place.depth >= 5
      ? isObjectType(named)
        ? '{ id }'
        : '{ __typename }'
      : selectionOf(tape, schema, named, { ...place, depth: place.depth + 1 });
  return `${alias}${name}${args} ${directive} ${inner}`;
}

/** Each response key goes with one list of arguments, so that fields merge. */
const ARGUMENTS = [
  '',
  '(i: $i, s: $s, in: $in)',
  '(i: $n, e: RED, s: "lit", in: { n: $n, l: [1, $i], s: { a: $i } })',
];

function directiveOf(tape: Tape): string {
  if (!tape.chance(60)) return '';
  return tape.pick([
    '@include(if: $b1)',
    '@skip(if: $b2)',
    '@skip(if: false)',
    '@include(if: false)',
    '@skip(if: $b1) @include(if: $b2)',
  ]);
}

function randomVariables(tape: Tape): Record<string, unknown> {
  const variables: Record<string, unknown> = { b1: tape.chance(200) };
  const maybe = (name: string, values: readonly unknown[]): void => {
    if (tape.chance(128)) variables[name] = tape.pick(values);
  };
  maybe('b2', [false, true, false, true, null]);
  maybe('i', [1, 0, -5, null, 3, 'wrong']);
  maybe('s', ['text', null, '', 'x', 5]);
  maybe('e', ['RED', 'GREEN', null, 'RED', 'NONE']);
  maybe('in', [{ n: 1 }, { n: 2, d: 'given', l: [1, null] }, { n: 3, s: { deep: [1] }, l: 4 }, null, {}]);
  maybe('n', [1, 2, 3, 4]);
  if (tape.chance(4)) delete variables['b1'];
  return variables;
}
