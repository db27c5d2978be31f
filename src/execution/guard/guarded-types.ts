import {
  type GraphQLAbstractType,
  type GraphQLLeafType,
  GraphQLObjectType,
  type GraphQLScalarType,
} from 'graphql';
import { V17 } from '../graphql-version.ts';
import { isThenable } from '../types.ts';
import { completingGuard } from './guarded-execution.ts';
import { guardCall, guardOf, guardTypeName, ORIGINAL, type TypeResolver } from './guarded-resolvers.ts';
import { UnusedValues } from './unused-values.ts';
import { isObject } from './value-shape.ts';

/** The method of leaf types that converts values for the response. */
const OUTPUT_METHOD = V17 ? 'coerceOutputValue' : 'serialize';

interface ObjectView extends GraphQLObjectType {
  readonly [ORIGINAL]: GraphQLObjectType;
}

/** The prototype of the views of object types. One prototype gives all views one hidden class. */
export const GUARDED_OBJECT: object = Object.create(GraphQLObjectType.prototype, {
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
});

function guardedIsTypeOf(
  type: GraphQLObjectType,
  ...[value, context, info]: Parameters<NonNullable<GraphQLObjectType['isTypeOf']>>
): boolean {
  const guard = guardOf(info);
  const check = (matches: unknown): unknown => {
    if (!matches) guard?.fail();
    return matches;
  };
  return guardCall(guard, () => type.isTypeOf?.(value, context, info), check) as boolean;
}

/** A view of an interface or union whose type resolver is guarded. */
export function guardedAbstract<T extends GraphQLAbstractType>(type: T): T {
  const resolveType: TypeResolver = (value, context, info) =>
    guardTypeName(type.resolveType as TypeResolver, type, [value, context, info]);
  return derive(type, { resolveType: { get: () => (type.resolveType ? resolveType : undefined) } });
}

type Convert = (value: unknown) => unknown;

/** A view of a leaf type that converts values for the response with another function. */
const leafView = <T extends GraphQLLeafType>(type: T, convert: Convert): T =>
  derive(type, { [OUTPUT_METHOD]: { value: convert } });

/** Converts a value. The method of the type may be replaced at any time. */
const convertWith = (type: GraphQLLeafType, value: unknown): unknown =>
  (type as object as Record<string, Convert>)[OUTPUT_METHOD]?.(value);

/** A view of a custom scalar or an enum. */
export function guardedLeaf(type: GraphQLLeafType): GraphQLLeafType {
  return leafView(type, (value) => {
    let output: unknown;
    try {
      output = convertWith(type, value);
    } finally {
      if (output === null || output === undefined) completingGuard()?.fail();
    }
    // graphql-js takes a promise here for the promise of a resolver.
    return isThenable(output) ? (completingGuard()?.promise(output, (result) => result) ?? output) : output;
  });
}

/** A view of a built-in scalar for fields whose promises have no guard. */
export function guardedScalar(type: GraphQLScalarType): GraphQLScalarType {
  return leafView(type, (value) => {
    if (isObject(value)) new UnusedValues().ignoreRejections(value);
    return convertWith(type, value);
  });
}

/** Creates a view of a type or schema. It inherits everything else from the original. */
export function derive<T extends object>(original: T, properties: PropertyDescriptorMap): T {
  return Object.create(original, { ...properties, [ORIGINAL]: { value: original } });
}
