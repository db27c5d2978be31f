import {
  defaultFieldResolver,
  type FieldNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  getLocation,
  getNamedType,
  isAbstractType,
  isObjectType,
  type Location,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
} from 'graphql';
import { resolveChannel, type TraceContext, trace } from '../../execution/tracing.ts';
import { compilePosition } from '../complete/position.ts';
import { StaticText, writeStatic } from '../json/buffer.ts';
import type { FieldLocation } from '../run/field-error.ts';
import type { Compiler, FieldPlan, FieldRun, Resolver } from '../run/plan.ts';
import type { Program } from '../run/program.ts';
import { keysOf } from '../run/resolve-info.ts';
import { compileArguments } from './arguments.ts';
import { mayReadArgument } from './function-arity.ts';
import { leafPropertyField, propertyField, resolverField } from './run-fields.ts';

/** Compiles a field of an object type under one response key; undefined if the type has no such field. */
export function compileField(
  compiler: Compiler,
  parentType: GraphQLObjectType,
  key: string,
  nodes: readonly FieldNode[],
): FieldRun | undefined {
  const { program, snapshot } = compiler;
  const definition = definitionOf(program.schema, parentType, (nodes[0] as FieldNode).name.value);
  if (definition === undefined) return undefined;
  snapshot.addField(definition);
  const plan = planField(compiler, parentType, definition, { key, nodes });
  return taggedField(program, plan, countedField(program, plan, compileRun(compiler, plan)));
}

function compileRun(compiler: Compiler, plan: FieldPlan): FieldRun {
  const { program } = compiler;
  if (program.tracesResolvers) {
    return resolverField(plan, tracedResolver(plan, program), compilePosition(compiler, plan));
  }
  if (plan.definition === TypeNameMetaFieldDef) return typeNameField(plan);
  const position = compilePosition(compiler, plan);
  if (plan.resolve !== undefined) return resolverField(plan, plan.resolve, position);
  return leafPropertyField(plan, position) ?? propertyField(plan, position);
}

/**
 * Counts the executions of a field for its cache policy, if its resolver or a method of its parent value may
 * replace its hint by `info.cacheControl`.
 */
function countedField(
  { operation, rootType, settings: { caching } }: Program,
  { definition, parentType, resolve, needsInfo }: FieldPlan,
  run: FieldRun,
): FieldRun {
  const mayReplaceHint = resolve === undefined || needsInfo;
  if (caching === undefined || operation.operation !== 'query' || !mayReplaceHint) return run;
  if (!caching.isCounted(definition, parentType === rootType)) return run;
  return (ex, source, parent) => {
    ex.inputs.caching?.count(definition, parent === undefined);
    run(ex, source, parent);
  };
}

/** Adds the tags of the object that a field belongs to, if its type has some. */
function taggedField(
  { settings: { caching } }: Program,
  { definition, parentType }: FieldPlan,
  run: FieldRun,
): FieldRun {
  const tags = caching?.objectTagsOf(parentType, definition);
  if (tags === undefined) return run;
  return (ex, source, parent) => {
    ex.inputs.caching?.addObjectTags(tags, source);
    run(ex, source, parent);
  };
}

function definitionOf(
  schema: GraphQLSchema,
  parentType: GraphQLObjectType,
  name: string,
): GraphQLField<unknown, unknown> | undefined {
  if (name === TypeNameMetaFieldDef.name) return TypeNameMetaFieldDef;
  if (schema.getQueryType() === parentType) {
    if (name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
    if (name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
  }
  return parentType.getFields()[name];
}

function typeNameField(plan: FieldPlan): FieldRun {
  const text = new StaticText(`,${JSON.stringify(plan.key)}:${JSON.stringify(plan.parentType.name)}`);
  return (ex) => writeStatic(ex, text);
}

/** Calls the resolver of a field as graphql-js does, and publishes the call. */
function tracedResolver({ definition }: FieldPlan, { fieldResolver }: Program): Resolver {
  const isDefaultResolver = definition.resolve === undefined;
  const resolve = (definition.resolve ?? fieldResolver ?? defaultFieldResolver) as Resolver;
  return (source, args, context, info) =>
    trace(resolveChannel, resolveContext(args, info as GraphQLResolveInfo, isDefaultResolver), () =>
      resolve(source, args, context, info),
    );
}

function resolveContext(
  args: Record<string, unknown>,
  { fieldName, path, parentType, returnType }: GraphQLResolveInfo,
  isDefaultResolver: boolean,
): TraceContext {
  let fieldPath: string | undefined;
  return {
    fieldName,
    alias: String(path.key),
    parentType: parentType.name,
    fieldType: String(returnType),
    args,
    isDefaultResolver,
    get fieldPath() {
      fieldPath ??= keysOf(path).join('.');
      return fieldPath;
    },
  };
}

/** Collects the properties of a field that do not depend on an execution. */
function planField(
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
    needsInfo:
      program.tracesResolvers ||
      (resolve !== undefined && mayReadArgument(resolve, 3)) ||
      typeNeedsInfo(program, definition),
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
