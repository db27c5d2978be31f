import {
  defaultTypeResolver,
  type GraphQLAbstractType,
  GraphQLError,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  isObjectType,
  type ResponsePath,
} from 'graphql';
import { V17 } from '../../execution/graphql-version.ts';
import { isThenable } from '../../execution/types.ts';
import type { Execution } from '../run/execution.ts';
import type { Compiler, Complete, FieldPlan } from '../run/plan.ts';
import type { Program } from '../run/program.ts';
import { subscribe } from '../run/promises.ts';
import { createInfo } from '../run/resolve-info.ts';
import { inspect } from './leaf-output.ts';
import { completeObject } from './object-type.ts';

type TypeNameResolver = (
  ex: Execution,
  value: unknown,
  path: ResponsePath,
  info: GraphQLResolveInfo | undefined,
) => unknown;

/** A type resolver as the engine calls it: `info` is missing if the function cannot read it. */
type ResolveType = (
  value: unknown,
  context: unknown,
  info: GraphQLResolveInfo | undefined,
  type: GraphQLAbstractType,
) => unknown;

/** Completes a value of an interface or union: resolves its object type, then completes it as that type. */
export function completeAbstract(compiler: Compiler, plan: FieldPlan, type: GraphQLAbstractType): Complete {
  const resolveTypeName = typeNameResolver(compiler.program, plan, type);
  const byTypeName = new Map<unknown, Complete>();
  const completeAs = (name: unknown, value: unknown): Complete => {
    let complete = byTypeName.get(name);
    if (complete === undefined) {
      const objectType = objectTypeNamed(compiler.program, plan, type, { name, value });
      complete = completeObject(compiler, plan, objectType);
      byTypeName.set(name, complete);
    }
    return complete;
  };
  return (ex, value, path, info) => {
    const name = resolveTypeName(ex, value, path, info);
    if (!isThenable(name)) return completeAs(name, value)(ex, value, path, info);
    return (pending) => {
      pending.promiseDepth++;
      const complete: Complete = (later, resolved, at) => completeAs(resolved, value)(later, value, at, info);
      subscribe(pending, name, complete, info, value);
    };
  };
}

/** The default resolver reads `__typename` first and needs `info` only if that is missing. */
function typeNameResolver(program: Program, plan: FieldPlan, type: GraphQLAbstractType): TypeNameResolver {
  const resolveType = type.resolveType ?? program.typeResolver;
  if (resolveType !== undefined && resolveType !== defaultTypeResolver) {
    const call = resolveType as ResolveType;
    return (ex, value, _path, info) => call(value, ex.inputs.contextValue, info, type);
  }
  return (ex, value, path, info) => {
    if (typeof value === 'object' && value !== null) {
      const name = (value as { __typename?: unknown }).__typename;
      if (typeof name === 'string') return name;
    }
    const fieldInfo = info ?? createInfo(ex, plan, pathOfField(path));
    return defaultTypeResolver(value, ex.inputs.contextValue, fieldInfo, type);
  };
}

/** `info.path` is the path of the field, also for list items. */
function pathOfField(path: ResponsePath): ResponsePath {
  let at = path;
  while (typeof at.key === 'number' && at.prev !== undefined) at = at.prev;
  return at;
}

/** The result of a type resolver, and the value that it was called with. */
interface ResolvedName {
  readonly name: unknown;
  readonly value: unknown;
}

/** Returns the object type of that name. Throws if values of the abstract type cannot have it. */
function objectTypeNamed(
  { schema }: Program,
  plan: FieldPlan,
  type: GraphQLAbstractType,
  { name, value }: ResolvedName,
): GraphQLObjectType {
  const { nodes } = plan;
  if (typeof name !== 'string') throw noNameError(plan, type, { name, value });
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

/** The messages equal those of graphql-js. */
function noNameError(
  plan: FieldPlan,
  type: GraphQLAbstractType,
  { name, value }: ResolvedName,
): GraphQLError {
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
