import {
  assertValidSchema,
  type GraphQLArgument,
  type GraphQLNamedType,
  GraphQLSchema,
  isEnumType,
  isSpecifiedScalarType,
  OperationTypeNode,
} from 'graphql';
import type { AuthOptions } from '../../types/auth.ts';
import type { MaybePromise } from '../../types/connect.ts';
import { withNativePromise } from '../execution/types.ts';
import { markVisible, nothing } from '../execution/visible-part.ts';
import { optionError, wrongReturnValue } from '../options/rules.ts';
import { AUTH_OPTIONS } from '../options/scopes.ts';
import { getOrCreate, settle } from '../options/values.ts';

// The option `auth.schemaFor`: a caller's schema decides which names an operation may use, and what introspection shows.
// Operations are executed by the whole schema, so that nothing else depends on what is hidden.

/** Sets of scopes whose schemas are kept. */
const MAX_SCHEMAS = 100;

type CallerSchemas = (
  whole: GraphQLSchema,
  scopes: ReadonlySet<string> | undefined,
) => MaybePromise<GraphQLSchema>;

/** Creates the function that finds the schema of a caller. Each set of scopes has one; `serve` adds what options add to schemas. */
export function createCallerSchemas(
  create: NonNullable<AuthOptions['schemaFor']>,
  serve: (schema: GraphQLSchema) => GraphQLSchema,
): CallerSchemas {
  const bySchema = new WeakMap<GraphQLSchema, Map<string, MaybePromise<GraphQLSchema>>>();
  return (whole, scopes) => {
    const known = getOrCreate(bySchema, whole, () => new Map());
    const names = scopes ? [...scopes].sort() : null;
    const key = JSON.stringify(names);
    const found = known.get(key);
    if (found !== undefined) return found;
    const created = settle(withNativePromise(create(names, whole)), (value) => partOf(whole, value, serve));
    const [oldest] = known.keys();
    if (known.size >= MAX_SCHEMAS && oldest !== undefined) known.delete(oldest);
    known.set(key, created);
    // A schema that could not be created is tried again.
    if (created instanceof Promise) created.catch(() => known.delete(key));
    return created;
  };
}

/** @throws TypeError (code `ERR_OPTION`) for anything but a part of the whole schema. */
function partOf(
  whole: GraphQLSchema,
  value: unknown,
  serve: (schema: GraphQLSchema) => GraphQLSchema,
): GraphQLSchema {
  if (value === whole) return whole;
  if (!(value instanceof GraphQLSchema))
    throw wrongReturnValue(AUTH_OPTIONS, 'schemaFor', value, 'a GraphQLSchema');
  const foreign = [...foreignNames(whole, value)][0];
  if (foreign !== undefined)
    throw optionError(
      AUTH_OPTIONS,
      `option "auth.schemaFor" returned a schema with "${foreign}", which the schema of the handler does not have in this form; return a part of it, or pass graphqlHTTP a function of the request that returns the schema`,
    );
  assertValidSchema(whole);
  // A schema of its own, because an application may return one for several handlers.
  const visible = new GraphQLSchema(serve(value).toConfig());
  return markVisible(visible, whole);
}

/** The coordinates in a schema that are not part of the whole one, which executes its operations. */
function* foreignNames(whole: GraphQLSchema, visible: GraphQLSchema): Generator<string> {
  for (const operation of Object.values(OperationTypeNode)) {
    const root = visible.getRootType(operation);
    if (root && whole.getRootType(operation)?.name !== root.name) yield root.name;
  }
  for (const type of Object.values(visible.getTypeMap())) {
    const known = whole.getType(type.name);
    if (isSpecifiedScalarType(type)) continue;
    if (known?.constructor !== type.constructor) yield type.name;
    else yield* foreignMembers(known, type);
  }
}

function* foreignMembers(known: GraphQLNamedType, type: GraphQLNamedType): Generator<string> {
  const members = membersOf(known);
  for (const [coordinate, described] of membersOf(type)) {
    if (members.get(coordinate) !== described) yield coordinate;
  }
}

/** The types of the members of a type, by coordinate. */
function membersOf(type: GraphQLNamedType): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  if (isEnumType(type)) for (const { name } of type.getValues()) members.set(`${type.name}.${name}`, '');
  if (!('getFields' in type)) return members;
  for (const field of Object.values(type.getFields())) {
    const coordinate = `${type.name}.${field.name}`;
    if ('resolve' in field && field.resolve === nothing) continue;
    members.set(coordinate, String(field.type));
    const args: readonly GraphQLArgument[] = 'args' in field ? field.args : [];
    for (const arg of args) members.set(`${coordinate}(${arg.name}:)`, String(arg.type));
  }
  return members;
}
