/*
 * `extensions: { resolveMany }` of a field: a resolver that is called once for all objects of an execution that reach the
 * field in the same turn of the event loop. For both engines it is a resolver like any other, which returns a promise for
 * each object.
 */
import {
  type FieldNode,
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLInterfaceType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  isInterfaceType,
  isObjectType,
} from 'graphql';
import type { ResolveMany } from '../../types/graphql.ts';
import { formatValue, optionError, wrongArgument } from '../options/rules.ts';
import { RESOLVE_MANY, RESOLVE_REFERENCES } from '../options/scopes.ts';
import { getOrCreate } from '../options/values.ts';
import { UnusedValues } from './unused-values.ts';

type Field = GraphQLField<unknown, unknown>;
type Resolver = GraphQLFieldResolver<unknown, unknown>;

/** The member of the extensions of a field: a function, or `false` for a field that loads its values one by one. */
const memberOf = ({ extensions }: Field): unknown => extensions?.['resolveMany'];

const usesBatches = new WeakMap<GraphQLSchema, boolean>();

/**
 * Whether a field of a schema has a batch resolver.
 *
 * @throws TypeError (code `ERR_OPTION`) for a wrong one.
 */
export function hasBatchResolvers(schema: GraphQLSchema): boolean {
  let found = usesBatches.get(schema);
  if (found === undefined) {
    found = false;
    for (const type of Object.values(schema.getTypeMap())) {
      if (isInterfaceType(type)) assertNowhere(type, schema);
      if (!isObjectType(type)) continue;
      for (const field of Object.values(type.getFields())) {
        if (batchResolverOf(field, type) === undefined) continue;
        assertAlone(field, `${type.name}.${field.name}`);
        found = true;
      }
    }
    usesBatches.set(schema, found);
  }
  return found;
}

/** Fields of an interface are never resolved. Tools may have copied its members to those of the object types. */
function assertNowhere(type: GraphQLInterfaceType, schema: GraphQLSchema): void {
  const isGiven = (field: Field | undefined): boolean =>
    field !== undefined && (memberOf(field) ?? null) !== null;
  for (const field of Object.values(type.getFields())) {
    if (!isGiven(field)) continue;
    const missing = schema.getPossibleTypes(type).find((each) => !isGiven(each.getFields()[field.name]));
    if (missing === undefined) continue;
    const [own, other] = [type, missing].map(({ name }) => `${name}.${field.name}`);
    throw optionError(
      RESOLVE_MANY,
      `${own} is a field of an interface, which has no resolver; set it on the fields of the object types, such as ${other}`,
    );
  }
}

/** A library that wraps `resolve`, for example to check the caller, would have no effect. */
function assertAlone(field: Field, coordinate: string): void {
  if (!field.resolve) return;
  throw optionError(
    RESOLVE_MANY,
    `${coordinate} has "resolve" too; remove one of them. Libraries that wrap resolvers add "resolve" and do not know resolveMany`,
  );
}

/** The objects for which a resolver is called once, and the settlers of their promises. */
interface Batch {
  readonly args: Record<string, unknown>;
  readonly context: unknown;
  readonly info: GraphQLResolveInfo & { readonly cacheControl?: { executions?: number } };
  readonly parents: unknown[];
  readonly calls: { resolve(value: unknown): void; reject(reason: unknown): void }[];
}

/** The batches of one execution and turn, by the first node of their field. */
type Batches = Map<FieldNode, Batch[]>;

/** Returns the resolver that collects the objects of a field with `resolveMany`; undefined for any other field. */
export function batchResolverOf(field: Field, parentType: { readonly name: string }): Resolver | undefined {
  const resolveMany = memberOf(field);
  if (resolveMany === undefined || resolveMany === null || resolveMany === false) return undefined;
  const coordinate = `${parentType.name}.${field.name}`;
  if (typeof resolveMany !== 'function') {
    const accepted = 'a function (parents, args, context, info) that returns an array, or false';
    throw optionError(
      RESOLVE_MANY,
      `that of ${coordinate} is ${formatValue(resolveMany)}; accepted: ${accepted}`,
    );
  }
  const collect = collector(resolveMany as ResolveMany, [`resolveMany of ${coordinate}`, 'parent']);
  return (source, args, context, info) => {
    assertAlone(field, coordinate);
    return collect(source, args, context, info);
  };
}

/**
 * Returns the resolver of one reference, such as `__resolveReference`, which collects those of one use of a field.
 *
 * @throws TypeError (code `ERR_OPTION`) for another value than a function.
 */
export function referenceResolver(resolveMany: unknown) {
  if (typeof resolveMany !== 'function') {
    const accepted = 'a function (references, context, info) that returns an array';
    throw wrongArgument(RESOLVE_REFERENCES, 'resolveMany', resolveMany, accepted);
  }
  const collect = collector(
    (references, _args, context, info) => resolveMany(references, context, info),
    ['The function of resolveReferences', 'reference'],
  );
  return (reference: unknown, context: unknown, info: GraphQLResolveInfo): Promise<unknown> =>
    collect(reference, {}, context, info);
}

type Collect = (...args: Parameters<Resolver>) => Promise<unknown>;

/** A function and what it gets a list of, for messages. */
type Words = readonly [name: string, item: string];

/** Calls a function once for all objects of an execution that reach a field in one turn. */
function collector(resolveMany: ResolveMany, words: Words): Collect {
  const open = new Map<object, Batches>();
  return (source, args, context, info) => {
    // The variables are created for each execution. A function of the option `engine` may pass none: then nothing is shared.
    const execution: object = Object(info.variableValues);
    const batches = getOrCreate(open, execution, (): Batches => new Map());
    const sharing = getOrCreate(batches, info.fieldNodes[0] as FieldNode, (): Batch[] => []);
    // Fields that are merged with others may select other fields of their values, which a resolver reads from `info`.
    let batch = sharing.find((each) => each.context === context && hasNodes(each.info, info.fieldNodes));
    if (batch === undefined) {
      const created: Batch = { args, context, info, parents: [], calls: [] };
      batch = created;
      sharing.push(created);
      afterTurn(() => {
        open.delete(execution);
        void resolveBatch(resolveMany, words, created);
      });
    }
    const { parents, calls } = batch;
    parents.push(source);
    return new Promise((resolve, reject) => calls.push({ resolve, reject }));
  };
}

function hasNodes({ fieldNodes }: GraphQLResolveInfo, nodes: readonly FieldNode[]): boolean {
  return fieldNodes.length === nodes.length && fieldNodes.every((node, index) => node === nodes[index]);
}

const RESOLVED = Promise.resolve();

/**
 * Calls a function after all microtasks. The objects of a list that a batch resolver has returned reach their fields in
 * as many microtasks as there are objects.
 */
const afterTurn = (call: () => void): void => void RESOLVED.then(() => process.nextTick(call));

async function resolveBatch(
  resolveMany: ResolveMany,
  words: Words,
  { parents, args, context, info, calls }: Batch,
): Promise<void> {
  try {
    // The hint of one call replaces those of all its objects.
    if (info.cacheControl !== undefined) info.cacheControl.executions = calls.length;
    const values: unknown = await resolveMany(parents, args, context, info);
    assertValues(values, calls.length, words);
    for (const [index, { resolve, reject }] of calls.entries()) {
      const value = values[index];
      if (value instanceof Error) reject(value);
      else resolve(value);
    }
  } catch (reason) {
    for (const { reject } of calls) reject(reason);
  }
}

function assertValues(
  values: unknown,
  count: number,
  [name, item]: Words,
): asserts values is readonly unknown[] {
  const isArray = Array.isArray(values);
  if (isArray && values.length === count) return;
  new UnusedValues().ignoreRejections(values);
  const returned = isArray ? `an array of ${values.length}` : 'no array';
  throw new TypeError(
    `${name} returned ${returned} for ${count} ${item}s; accepted: an array with one value for each ${item}, in their order, which is null or an Error where there is no value`,
  );
}
