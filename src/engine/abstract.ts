import {
  defaultTypeResolver,
  type GraphQLAbstractType,
  GraphQLError,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  isObjectType,
} from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import type { Execution } from './execution.ts';
import { makeInfo } from './info.ts';
import { inspect } from './inspect.ts';
import { completeObject } from './instances.ts';
import { type Complete, type FieldPlan, isThenable, type ResponsePath } from './plan.ts';
import type { Program } from './program.ts';
import { subscribe } from './settling.ts';

type TypeName = (
  ex: Execution,
  value: unknown,
  path: ResponsePath,
  info: GraphQLResolveInfo | undefined,
) => unknown;

/** Completes a value of an interface or union: the object type is found, then it is an object of that type. */
export function completeAbstract(program: Program, plan: FieldPlan, type: GraphQLAbstractType): Complete {
  const typeName = typeNameOf(program, plan, type);
  const known = new Map<unknown, Complete>();
  const completeAs = (name: unknown, value: unknown): Complete => {
    let complete = known.get(name);
    if (complete === undefined) {
      complete = completeObject(program, plan, runtimeType(program, plan, type, { name, value }));
      known.set(name, complete);
    }
    return complete;
  };
  return (ex, value, path, info) => {
    const name = typeName(ex, value, path, info);
    if (!isThenable(name)) return completeAs(name, value)(ex, value, path, info);
    return (slot) => {
      slot.layers++;
      subscribe(
        slot,
        name,
        (later, resolved, at) => completeAs(resolved, value)(later, value, at, info),
        info,
      );
    };
  };
}

/** The default looks at `__typename` first; only what comes after that needs `info`. */
function typeNameOf(program: Program, plan: FieldPlan, type: GraphQLAbstractType): TypeName {
  const resolveType = type.resolveType ?? program.typeResolver;
  if (resolveType !== undefined && resolveType !== defaultTypeResolver) {
    return (ex, value, _path, info) => resolveType(value, ex.inputs.contextValue, info as never, type);
  }
  return (ex, value, path, info) => {
    if (typeof value === 'object' && value !== null) {
      const name = (value as { __typename?: unknown }).__typename;
      if (typeof name === 'string') return name;
    }
    return defaultTypeResolver(
      value,
      ex.inputs.contextValue,
      info ?? makeInfo(ex, plan, pathOfField(path)),
      type,
    );
  };
}

/** `info.path` is the field's, for the items of its lists too. */
function pathOfField(path: ResponsePath): ResponsePath {
  let at = path;
  while (typeof at.key === 'number' && at.prev !== undefined) at = at.prev;
  return at;
}

interface Answer {
  readonly name: unknown;
  readonly value: unknown;
}

/** The object type of that name, if values of the abstract type can be of it. */
function runtimeType(
  { schema }: Program,
  plan: FieldPlan,
  type: GraphQLAbstractType,
  { name, value }: Answer,
): GraphQLObjectType {
  const { nodes } = plan;
  if (typeof name !== 'string') throw noName(plan, type, { name, value });
  const found = schema.getType(name);
  if (found === undefined || found === null) {
    const message = `Abstract type "${type.name}" was resolved to a type "${name}" that does not exist inside the schema.`;
    throw new GraphQLError(message, { nodes });
  }
  if (!isObjectType(found)) {
    const message = `Abstract type "${type.name}" was resolved to a non-object type "${name}".`;
    throw new GraphQLError(message, { nodes });
  }
  if (!schema.isSubType(type, found)) {
    const message = `Runtime Object type "${found.name}" is not a possible type for "${type.name}".`;
    throw new GraphQLError(message, { nodes });
  }
  return found;
}

function noName(plan: FieldPlan, type: GraphQLAbstractType, { name, value }: Answer): GraphQLError {
  const must = `Abstract type "${type.name}" must resolve to an Object type at runtime for field "${plan.parentType.name}.${plan.name}"`;
  if (name === null || name === undefined) {
    const how = `Either the "${type.name}" type should provide a "resolveType" function or each possible type should provide an "isTypeOf" function.`;
    return new GraphQLError(`${must}. ${how}`, { nodes: plan.nodes });
  }
  if (!V17 && isObjectType(name)) {
    return new GraphQLError(
      'Support for returning GraphQLObjectType from resolveType was removed in graphql-js@16.0.0 please return type name instead.',
    );
  }
  const received = `${must} with value ${inspect(value)}, received "${inspect(name)}"`;
  return new GraphQLError(`${received}${V17 ? ', which is not a valid Object type name' : ''}.`);
}
