import { types } from 'node:util';
import {
  type GraphQLOutputType,
  isLeafType,
  isListType,
  isNonNullType,
  isScalarType,
  specifiedScalarTypes,
} from 'graphql';

/** The properties of a type that decide how a guard treats its values. */
export interface ValueShape {
  /** Null at this position is an error that propagates. */
  readonly isRequired: boolean;
  readonly isLeaf: boolean;
  /** The shape of the items of a list. */
  readonly items: ValueShape | undefined;
  /** Whether the conversion of a value cannot fail; undefined if the type is not a built-in scalar. */
  readonly isConvertible: ((value: unknown) => boolean) | undefined;
}

const isInt32 = (value: unknown): boolean =>
  typeof value === 'number' && Number.isInteger(value) && Math.abs(value) < 2 ** 31;

/** The values that the built-in scalars always accept. They may accept others. */
const CONVERTIBLE: Readonly<Record<string, (value: unknown) => boolean>> = {
  String: (value) => typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value),
  ID: (value) => typeof value === 'string' || Number.isInteger(value),
  Boolean: (value) => typeof value === 'boolean' || Number.isFinite(value),
  Float: (value) => Number.isFinite(value) || typeof value === 'boolean',
  Int: (value) => isInt32(value) || typeof value === 'boolean',
};

/** Whether a type is one of the scalars of the specification. */
export function isBuiltInScalar(type: GraphQLOutputType): boolean {
  return isScalarType(type) && specifiedScalarTypes.includes(type);
}

export function shapeOf(type: GraphQLOutputType): ValueShape {
  const isRequired = isNonNullType(type);
  const nullable: GraphQLOutputType = isRequired ? type.ofType : type;
  return {
    isRequired,
    isLeaf: isLeafType(nullable),
    items: isListType(nullable) ? shapeOf(nullable.ofType) : undefined,
    isConvertible: isBuiltInScalar(nullable) ? CONVERTIBLE[String(nullable)] : undefined,
  };
}

/**
 * Whether a primitive value, or null, may be completed without an error that propagates. Without an error the
 * execution reads all values.
 */
export function isSafePrimitive(value: unknown, { isRequired, isConvertible }: ValueShape): boolean {
  if (!isRequired) return true;
  if (value === null || value === undefined) return false;
  // Other types are guarded where they convert values.
  return isConvertible === undefined || isConvertible(value);
}

/** Whether the completion of a value as a built-in scalar, or as null, cannot fail. */
export function isLeafOf({ isRequired, isConvertible }: ValueShape, value: unknown): boolean {
  return value === null || value === undefined ? !isRequired : isConvertible?.(value) === true;
}

/**
 * Whether graphql 16 completes all items of an array, since no error of an item propagates, and none of them
 * is a promise, whose value needs a guard.
 */
export function isAlwaysRead(array: readonly unknown[], items: ValueShape): boolean {
  if (items.items !== undefined) return false;
  for (let i = 0; i < array.length; i++) {
    const item = array[i];
    if (typeof item === 'object' && item !== null) {
      if (items.isRequired || items.isLeaf || types.isPromise(item)) return false;
    } else if (!isSafePrimitive(item, items)) return false;
  }
  return true;
}

/** Whether a value is an array that is iterated by its indexes. */
export const isPlainArray = (value: object): value is unknown[] =>
  Array.isArray(value) && value[Symbol.iterator] === Array.prototype[Symbol.iterator];
