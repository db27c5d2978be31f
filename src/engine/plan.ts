import type {
  FieldNode,
  GraphQLField,
  GraphQLFieldResolver,
  GraphQLObjectType,
  GraphQLOutputType,
  GraphQLResolveInfo,
  ResponsePath,
  Source,
  SourceLocation,
} from 'graphql';
import type { Execution } from './execution.ts';
import type { Fixed } from './fixed.ts';
import type { Slot } from './slots.ts';

export type { ResponsePath } from 'graphql';

/** Writes one field, key included, and settles its errors; throws a Fault when its parent has to be null. */
export type FieldRun = (ex: Execution, source: unknown, parent: ResponsePath | undefined) => void;

/** Writes the fields of an object value. */
export type ObjectRun = (ex: Execution, source: unknown, path: ResponsePath | undefined) => void;

/**
 * Writes a value that is no promise. Throws what made it fail. When it has to wait for something (an asynchronous
 * `resolveType`), it has written nothing and returns how to go on once the position has a slot.
 */
export type Complete = (
  ex: Execution,
  value: unknown,
  path: ResponsePath,
  info: GraphQLResolveInfo | undefined,
) => Deferral | undefined;

/** Writes a value if it is of the JavaScript type its scalar is made of; false leaves it to the scalar's own function. */
export type DirectWrite = (ex: Execution, value: unknown) => boolean;

/** Goes on with a position that waits. */
export type Deferral = (slot: Slot) => void;

/** What makes a leaf, an object and a list differ when an error travels through them (see turns.ts). */
export type Shape = 'leaf' | 'object' | 'list';

/** A place in the selection that can be null or carry an error: a field, or the items of a list. */
export interface Position {
  readonly plan: FieldPlan | undefined;
  readonly nullable: boolean;
  readonly shape: Shape;
  readonly complete: Complete;
  /** For built-in scalars: writes a value of the expected JavaScript type, and refuses any other. */
  readonly direct?: DirectWrite | undefined;
}

/** Where nodes stand in their source. */
export interface Place {
  readonly source: Source | undefined;
  readonly positions: readonly number[] | undefined;
  readonly locations: readonly SourceLocation[] | undefined;
  /** The locations as a member of an error's JSON, comma in front; empty when there are none. */
  readonly locationsText: string;
}

/** What is known of one field of one object type before it is executed. */
export interface FieldPlan {
  readonly key: string;
  readonly name: string;
  readonly parentType: GraphQLObjectType;
  readonly definition: GraphQLField<unknown, unknown>;
  readonly type: GraphQLOutputType;
  readonly nodes: readonly FieldNode[];
  /** `,"key":`; the comma of an object's first field becomes its brace. */
  readonly prefix: Fixed;
  readonly resolve: GraphQLFieldResolver<unknown, unknown> | undefined;
  readonly args: (ex: Execution) => Record<string, unknown>;
  /** `info` is made before the resolver runs, because it, or something behind the field's type, declares it. */
  readonly wantsInfo: boolean;
  /** Where the field stands in the document, for its errors. */
  place(): Place;
}

/** The path of a field. */
export function fieldPath(plan: FieldPlan, parent: ResponsePath | undefined): ResponsePath {
  return { prev: parent, key: plan.key, typename: plan.parentType.name };
}

/** The path of a list's item. */
export function itemPath(list: ResponsePath, index: number): ResponsePath {
  return { prev: list, key: index, typename: undefined };
}

/** True for what has a callable `then`. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}

/** True for what may have properties worth reading: graphql-js reads none of a primitive's. */
export function hasProperties(value: unknown): value is Record<string, unknown> {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}
