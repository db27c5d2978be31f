import {
  type FieldNode,
  type GraphQLField,
  type GraphQLObjectType,
  getLocation,
  getNamedType,
  isAbstractType,
  isObjectType,
  type Location,
} from 'graphql';
import { compileArguments } from './arguments.ts';
import { mayUseArgument } from './declares.ts';
import { Fixed } from './fixed.ts';
import type { FieldPlan, Place } from './plan.ts';
import type { Program } from './program.ts';

/** What can be known of a field before it is executed. */
export function planField(
  program: Program,
  parentType: GraphQLObjectType,
  definition: GraphQLField<unknown, unknown>,
  { key, nodes }: { key: string; nodes: readonly FieldNode[] },
): FieldPlan {
  const resolve = definition.resolve ?? program.fieldResolver;
  let place: Place | undefined;
  return {
    key: interned(key),
    name: interned(definition.name),
    parentType,
    definition,
    type: definition.type,
    nodes,
    prefix: new Fixed(`,${JSON.stringify(key)}:`),
    resolve,
    args: compileArguments(definition, nodes[0] as FieldNode),
    wantsInfo: (resolve !== undefined && mayUseArgument(resolve, 3)) || typeWantsInfo(program, definition),
    place: () => {
      place ??= placeOf(nodes);
      return place;
    },
  };
}

/** Whether a function that tells object types apart may look at `info`. */
function typeWantsInfo({ schema, typeResolver }: Program, { type }: GraphQLField<unknown, unknown>): boolean {
  const named = getNamedType(type);
  if (isObjectType(named)) return objectWantsInfo(named);
  if (!isAbstractType(named)) return false;
  const resolveType = named.resolveType ?? typeResolver;
  if (resolveType !== undefined && mayUseArgument(resolveType, 2)) return true;
  return schema.getPossibleTypes(named).some(objectWantsInfo);
}

function objectWantsInfo({ isTypeOf }: GraphQLObjectType): boolean {
  return isTypeOf !== undefined && isTypeOf !== null && mayUseArgument(isTypeOf, 2);
}

/** The same text as a property key: names cut from a source are slow as keys. */
function interned(name: string): string {
  return Object.keys({ [name]: 0 })[0] as string;
}

function placeOf(nodes: readonly FieldNode[]): Place {
  const places = nodes.map((node) => node.loc).filter((loc): loc is Location => loc !== undefined);
  if (places.length === 0) {
    return { source: undefined, positions: undefined, locations: undefined, locationsText: '' };
  }
  const locations = places.map((loc) => getLocation(loc.source, loc.start));
  return {
    source: places[0]?.source,
    positions: places.map((loc) => loc.start),
    locations,
    locationsText: `,"locations":${JSON.stringify(locations)}`,
  };
}
