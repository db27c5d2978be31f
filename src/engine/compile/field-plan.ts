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
import type { Compiler } from '../complete/compiler.ts';
import { StaticText } from '../json/static-text.ts';
import type { FieldLocation } from '../run/field-error.ts';
import type { FieldPlan, Resolver } from '../run/plan.ts';
import type { Program } from '../run/program.ts';
import { compileArguments } from './arguments.ts';
import { mayReadArgument } from './function-arity.ts';

/** Collects the properties of a field that do not depend on an execution. */
export function planField(
  { program, snapshot }: Compiler,
  parentType: GraphQLObjectType,
  definition: GraphQLField<unknown, unknown>,
  { key, nodes }: { key: string; nodes: readonly FieldNode[] },
): FieldPlan {
  const resolve = definition.resolve ?? program.fieldResolver;
  let location: FieldLocation | undefined;
  return {
    key: internalized(key),
    name: internalized(definition.name),
    parentType,
    definition,
    type: definition.type,
    nodes,
    keyText: new StaticText(`,${JSON.stringify(key)}:`),
    resolve: resolve as Resolver | undefined,
    args: compileArguments(definition, nodes[0] as FieldNode, snapshot),
    needsInfo: (resolve !== undefined && mayReadArgument(resolve, 3)) || typeNeedsInfo(program, definition),
    location: () => {
      location ??= locationOf(nodes);
      return location;
    },
  };
}

/** Whether a function that determines object types of the field may read `info`. */
function typeNeedsInfo({ schema, typeResolver }: Program, { type }: GraphQLField<unknown, unknown>): boolean {
  const named = getNamedType(type);
  if (isObjectType(named)) return typeCheckNeedsInfo(named);
  if (!isAbstractType(named)) return false;
  const resolveType = named.resolveType ?? typeResolver;
  if (resolveType !== undefined && mayReadArgument(resolveType, 2)) return true;
  return schema.getPossibleTypes(named).some(typeCheckNeedsInfo);
}

function typeCheckNeedsInfo({ isTypeOf }: GraphQLObjectType): boolean {
  return isTypeOf !== undefined && isTypeOf !== null && mayReadArgument(isTypeOf, 2);
}

/** V8 reads properties faster by internalized strings than by substrings of the document. */
function internalized(name: string): string {
  return Object.keys({ [name]: 0 })[0] as string;
}

function locationOf(nodes: readonly FieldNode[]): FieldLocation {
  const nodeLocations = nodes.map((node) => node.loc).filter((loc): loc is Location => loc !== undefined);
  if (nodeLocations.length === 0) {
    return { source: undefined, positions: undefined, locations: undefined };
  }
  const locations = nodeLocations.map((loc) => getLocation(loc.source, loc.start));
  return {
    source: nodeLocations[0]?.source,
    positions: nodeLocations.map((loc) => loc.start),
    locations,
  };
}
