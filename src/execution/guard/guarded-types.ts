import {
  type GraphQLAbstractType,
  type GraphQLField,
  type GraphQLLeafType,
  GraphQLObjectType,
  GraphQLScalarType,
} from 'graphql';
import { V17 } from '../graphql-version.ts';
import { isThenable } from '../types.ts';
import { completingGuard } from './guarded-execution.ts';
import { guardCall, guardOf, guardTypeName, ORIGINAL, type TypeResolver } from './guarded-resolvers.ts';
import { UnusedValues } from './unused-values.ts';
import { isObject } from './value-shape.ts';

/** The method of leaf types that converts values for the response. */
const OUTPUT_METHOD = V17 ? 'coerceOutputValue' : 'serialize';

export type Fields = Record<string, GraphQLField<unknown, unknown>>;

const FIELDS = Symbol('fields');

interface ObjectView extends GraphQLObjectType {
  readonly [ORIGINAL]: GraphQLObjectType;
  /** The fields, or the function that creates them. */
  [FIELDS]: Fields | (() => Fields);
}

/** The members of views of object types. With the same functions all views have one hidden class. */
const MEMBERS: PropertyDescriptorMap = {
  getFields: {
    value(this: ObjectView): Fields {
      const fields = this[FIELDS];
      if (typeof fields !== 'function') return fields;
      const created = fields();
      this[FIELDS] = created;
      return created;
    },
  },
  getInterfaces: {
    value(this: ObjectView) {
      return this[ORIGINAL].getInterfaces();
    },
  },
  isTypeOf: {
    get(this: ObjectView): GraphQLObjectType['isTypeOf'] {
      const type = this[ORIGINAL];
      return type.isTypeOf ? (...args) => guardedIsTypeOf(type, ...args) : undefined;
    },
  },
};

/**
 * A view of an object type with other fields. Its prototype is that of all object types: graphql-js searches for it
 * several times per value.
 */
export function guardedObject(type: GraphQLObjectType, createFields: () => Fields): GraphQLObjectType {
  const { isTypeOf: _, ...properties } = type;
  const view = { [ORIGINAL]: type, [FIELDS]: createFields, ...properties };
  return Object.defineProperties(Object.assign(Object.create(GraphQLObjectType.prototype), view), MEMBERS);
}

function guardedIsTypeOf(
  type: GraphQLObjectType,
  ...[value, context, info]: Parameters<NonNullable<GraphQLObjectType['isTypeOf']>>
): boolean {
  const guard = guardOf(info);
  const check = (matches: unknown): unknown => {
    if (!matches) guard?.fail();
    return matches;
  };
  return guardCall(guard, () => type.isTypeOf?.(value, context, info), check, value) as boolean;
}

/** A view of an interface or union whose type resolver is guarded. */
export function guardedAbstract<T extends GraphQLAbstractType>(type: T): T {
  const resolveType: TypeResolver = (value, context, info) =>
    guardTypeName(type.resolveType as TypeResolver, type, [value, context, info]);
  return derive(type, { resolveType: { get: () => (type.resolveType ? resolveType : undefined) } });
}

type Convert = (value: unknown) => unknown;
/** A leaf type of graphql 16 or 17. */
type LeafType = GraphQLLeafType & { readonly coerceOutputValue: Convert };

/** A view of a leaf type that converts values for the response with another function. */
const leafView = <T extends GraphQLLeafType>(type: T, convert: Convert): T =>
  derive(type, { [OUTPUT_METHOD]: { value: convert } });

/** Converts a value. The method of the type may be replaced at any time. */
const convertWith: (type: LeafType, value: unknown) => unknown = V17
  ? (type, value) => type.coerceOutputValue(value)
  : (type, value) => type.serialize(value);

/** A view of a custom scalar or an enum. */
export function guardedLeaf(type: GraphQLLeafType): GraphQLLeafType {
  return leafView(type, (value) => {
    let output: unknown;
    try {
      output = convertWith(type as LeafType, value);
    } finally {
      if (output === null || output === undefined) completingGuard()?.fail();
    }
    // graphql-js takes a promise here for the promise of a resolver.
    return isThenable(output) ? (completingGuard()?.promise(output, (result) => result) ?? output) : output;
  });
}

/**
 * A copy of a built-in scalar for fields whose promises have no guard. graphql-js compares it with several classes per
 * value, which is faster for an object of the same hidden class as the other scalars.
 */
export function guardedScalar(type: GraphQLScalarType): GraphQLScalarType {
  const convert: Convert = (value) => {
    if (isObject(value)) new UnusedValues().ignoreRejections(value);
    return convertWith(type as LeafType, value);
  };
  return new GraphQLScalarType({ ...type.toConfig(), [OUTPUT_METHOD]: convert });
}

/** Creates a view of a type or schema. It inherits everything else from the original. */
export function derive<T extends object>(original: T, properties: PropertyDescriptorMap): T {
  return Object.create(original, { ...properties, [ORIGINAL]: { value: original } });
}
