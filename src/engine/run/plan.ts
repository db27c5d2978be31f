import type {
  FieldNode,
  GraphQLField,
  GraphQLObjectType,
  GraphQLOutputType,
  GraphQLResolveInfo,
  ResponsePath,
} from 'graphql';
import type { StaticText } from '../json/buffer.ts';
import type { Execution, Pending } from './execution.ts';
import type { ErrorField, ErrorPosition } from './field-error.ts';
import type { Program } from './program.ts';
import type { SchemaSnapshot } from './schema-functions.ts';

/**
 * Writes one field with its key and handles its errors. Throws a FieldError if the parent has to become null.
 */
export type FieldRun = (ex: Execution, source: unknown, parent: ResponsePath | undefined) => void;

/** Writes the fields of an object value. */
export type ObjectRun = (ex: Execution, source: unknown, path: ResponsePath | undefined) => void;

/**
 * Writes a value that is not a promise (CompleteValue of the specification). Throws the reason if that fails.
 * If it has to wait (for an asynchronous `resolveType`), it writes nothing and returns a continuation for a
 * Pending.
 */
export type Complete = (
  ex: Execution,
  value: unknown,
  path: ResponsePath,
  info: GraphQLResolveInfo | undefined,
) => Continuation | undefined;

/** Continues with a position that waits. */
export type Continuation = (pending: Pending) => void;

/**
 * Writes a value of the JavaScript type that its built-in scalar represents; returns false for any other
 * value.
 */
export type DirectWrite = (ex: Execution, value: unknown) => boolean;

/** A response position that can be null or fail: a field, or the items of a list. */
export interface Position extends ErrorPosition {
  readonly complete: Complete;
  /** The direct writer of a built-in scalar; undefined for other types. */
  readonly direct: DirectWrite | undefined;
}

/** A resolver as the engine calls it: `info` is missing if the function cannot read it. */
export type Resolver = (
  source: unknown,
  args: Record<string, unknown>,
  context: unknown,
  info: GraphQLResolveInfo | undefined,
) => unknown;

/** The properties of a field of one object type that are known before execution. */
export interface FieldPlan extends ErrorField {
  /** The response key: the alias, or the name. */
  readonly key: string;
  readonly name: string;
  readonly parentType: GraphQLObjectType;
  readonly definition: GraphQLField<unknown, unknown>;
  readonly type: GraphQLOutputType;
  /** `,"key":`. The brace of the object replaces the comma of its first field. */
  readonly keyText: StaticText;
  readonly resolve: Resolver | undefined;
  readonly args: (ex: Execution) => Record<string, unknown>;
  /** The resolver, or a function of the field's type, may read `info`. */
  readonly needsInfo: boolean;
}

/**
 * Breaks the cycle between the folders: completing an object value executes a selection set, whose fields
 * complete values. `complete/` calls back into `compile/` through this interface instead of importing it.
 */
export interface Compiler {
  readonly program: Program;
  readonly snapshot: SchemaSnapshot;
  /** Compiles the merged selection sets of some field nodes for one object type. */
  compileSelectionSet(type: GraphQLObjectType, nodes: readonly FieldNode[]): ObjectRun;
}
