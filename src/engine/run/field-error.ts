import type { FieldNode, ResponsePath, Source, SourceLocation } from 'graphql';

/** The locations of the nodes of a field in the document. */
export interface FieldLocation {
  readonly source: Source | undefined;
  readonly positions: readonly number[] | undefined;
  readonly locations: readonly SourceLocation[] | undefined;
}

/** The field that an error belongs to. */
export interface ErrorField {
  readonly nodes: readonly FieldNode[];
  /** Computed when an error first needs it. */
  location(): FieldLocation;
}

/**
 * The kind of a position: graphql-js joins promises differently for leaves, objects and lists (see
 * microtasks.ts).
 */
export type Shape = 'leaf' | 'object' | 'list';

/**
 * The properties of a response position that error propagation needs (GraphQL specification, "Handling
 * Execution Errors").
 */
export interface ErrorPosition {
  readonly field: ErrorField | undefined;
  readonly nullable: boolean;
  readonly shape: Shape;
}

/** A failure and its position. Cheaper than a GraphQLError, which is created only for the response. */
export class FieldError {
  readonly reason: unknown;
  readonly field: ErrorField | undefined;
  readonly path: ResponsePath | undefined;
  readonly #isFieldError = true;

  constructor(reason: unknown, field: ErrorField | undefined, path: ResponsePath | undefined) {
    this.reason = reason;
    this.field = field;
    this.path = path;
  }

  /** Unlike `instanceof`, this does not throw for a revoked proxy, with which a promise may reject. */
  static is(caught: unknown): caught is FieldError {
    return typeof caught === 'object' && caught !== null && #isFieldError in caught;
  }
}

/**
 * Wraps a value that was caught at a position. An error that propagates from a descendant keeps its position.
 */
export function toFieldError(
  caught: unknown,
  position: ErrorPosition,
  path: ResponsePath | undefined,
): FieldError {
  return FieldError.is(caught) ? caught : new FieldError(caught, position.field, path);
}
