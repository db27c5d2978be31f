import {
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  getNamedType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  isScalarType,
  Kind,
  type SelectionSetNode,
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
  /**
   * A promise at this position needs no guard outside of lists: its field becomes null, and its type guards the
   * conversion.
   */
  readonly isIndependent: boolean;
}

/** Whether a value may contain other values, or be a promise. */
export const isObject = (value: unknown): value is object =>
  typeof value === 'object' ? value !== null : typeof value === 'function';

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
    isIndependent: false,
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

/**
 * The guard that an array needs: `plain` if no item makes the list fail, `observed` if a field of an item may
 * do so, and `guarded` if the items need a guard themselves, such as promises.
 */
type ArrayKind = 'plain' | 'observed' | 'guarded';

export function arrayKind(array: readonly unknown[], items: ValueShape): ArrayKind {
  if (items.items !== undefined) return 'guarded';
  for (let i = 0; i < array.length; i++) {
    const item = array[i];
    if (
      isObject(item)
        ? items.isLeaf || typeof (item as { then?: unknown }).then === 'function'
        : !isSafePrimitive(item, items)
    )
      return 'guarded';
  }
  return items.isRequired && items.isConvertible === undefined ? 'observed' : 'plain';
}

/** Whether a value is an array that is iterated by its indexes. */
export const isPlainArray = (value: object): value is unknown[] =>
  Array.isArray(value) && value[Symbol.iterator] === Array.prototype[Symbol.iterator];

/** The results of `failsLate`, by selection set. */
const lateFailures = new WeakMap<SelectionSetNode, { type: GraphQLNamedType; result: boolean }>();

/** Whether an item of the list of a field may fail after one of its fields has returned a promise. */
export function itemsFailLate({ fieldNodes, returnType }: GraphQLResolveInfo): boolean {
  const selections = fieldNodes[0]?.selectionSet;
  if (selections === undefined || fieldNodes.length > 1) return true;
  const type = getNamedType(returnType);
  let found = lateFailures.get(selections);
  if (found?.type !== type) {
    found = { type, result: failsLate(selections, type) };
    lateFailures.set(selections, found);
  }
  return found.result;
}

/** Whether objects have a required field after the first one, or a selection set that is not obvious. */
function failsLate({ selections }: SelectionSetNode, type: GraphQLNamedType): boolean {
  if (!isObjectType(type)) return true;
  const fields = type.getFields();
  const keys = new Set<string>();
  for (const node of selections) {
    if (node.kind !== Kind.FIELD) return true;
    const isFirst = keys.size === 0;
    const key = node.alias?.value ?? node.name.value;
    if (keys.has(key)) return true;
    keys.add(key);
    const field = fields[node.name.value];
    if (field === undefined) {
      if (node.name.value === '__typename') continue;
      return true;
    }
    if (!isFirst && isNonNullType(field.type)) return true;
    if (node.selectionSet !== undefined && failsLate(node.selectionSet, getNamedType(field.type)))
      return true;
  }
  return false;
}
