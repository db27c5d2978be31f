import {
  defaultFieldResolver,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
} from 'graphql';
import { V17 } from '../graphql-version.ts';
import {
  type FieldResolver,
  guardOf,
  guardResult,
  hasTrackers,
  type Mutable,
  trackField,
} from './guarded-resolvers.ts';
import { isObject, type ValueShape } from './value-shape.ts';

/** A field of the application's schema. */
interface FieldPlace {
  readonly field: GraphQLField<unknown, unknown>;
  readonly parentType: GraphQLObjectType;
  readonly schema: GraphQLSchema;
  readonly shape: ValueShape;
}

/**
 * Creates the resolver of the view of a field. The field's own resolver may be replaced at any time. `fallback` resolves
 * the fields without a resolver.
 */
export function guardedFieldResolver(place: FieldPlace, fallback: FieldResolver): FieldResolver {
  const call = guardedCall(place, fallback);
  const isProperty = (place.field.resolve ?? fallback) === defaultFieldResolver;
  return isProperty ? propertyReader(place, fallback, call) : call;
}

/** Creates a function that calls the resolver of a field and guards the result. */
function guardedCall(
  { field, parentType, schema, shape }: FieldPlace,
  fallback: FieldResolver,
): FieldResolver {
  const { type } = field;
  return (source, args, context, info) => {
    const resolve = field.resolve ?? fallback;
    const seen: Mutable<GraphQLResolveInfo> = info;
    seen.schema = schema;
    seen.parentType = parentType;
    seen.returnType = type;
    const guard = guardOf(info);
    if (guard === undefined || guard.tracker !== undefined) trackField(guard, info, source);
    if (guard === undefined) return resolve(source, args, context, info);
    // V8 creates the message of an error again when it is thrown again.
    if (!shape.isRequired) return guardResult(guard, resolve(source, args, context, info), shape, info);
    let value: unknown;
    try {
      value = resolve(source, args, context, info);
    } catch (error) {
      guard.fail();
      throw error;
    }
    return guardResult(guard, value, shape, info);
  };
}

/**
 * Creates a function that reads a property as the default resolver of graphql-js does, or uses `call`: for methods, and
 * for a resolver that the field gets later. It is small, so that V8 inlines it into graphql-js, and searches the guard
 * only for values that may make other fields null.
 */
function propertyReader(place: FieldPlace, fallback: FieldResolver, call: FieldResolver): FieldResolver {
  const { field, shape } = place;
  const { name } = field;
  const isReplaced = (): boolean => (field.resolve ?? fallback) !== defaultFieldResolver;
  const guard = (
    value: unknown,
    source: unknown,
    ...others: [object, unknown, GraphQLResolveInfo]
  ): unknown => {
    if (typeof value === 'function') return call(source, ...others);
    return guardResult(guardOf(others[2]), value, shape, others[2]);
  };
  // graphql 17 may resolve other fields outside of `ExecutionGuard.run`, so the first one has to find the guard.
  const isConvertible = V17 && isRootField(place) ? undefined : shape.isConvertible;
  if (isConvertible !== undefined && !shape.isRequired) {
    return (source, args, context, info) => {
      if (hasTrackers || (field.resolve !== undefined && isReplaced()))
        return call(source, args, context, info);
      if (!isObject(source)) return undefined;
      const value = (source as Record<string, unknown>)[name];
      return isObject(value) ? guard(value, source, args, context, info) : value;
    };
  }
  const isScalar = isConvertible !== undefined;
  const isText = isConvertible?.('') === true;
  return (source, args, context, info) => {
    if (hasTrackers || (field.resolve !== undefined && isReplaced()))
      return call(source, args, context, info);
    let value: unknown;
    try {
      value = isObject(source) ? (source as Record<string, unknown>)[name] : undefined;
    } catch (error) {
      guardOf(info)?.failField(shape);
      throw error;
    }
    // Every built-in scalar accepts a 32-bit integer.
    const isSafe =
      typeof value === 'number' && (value | 0) === value ? isScalar : isText && typeof value === 'string';
    return isSafe || isConvertible?.(value) === true ? value : guard(value, source, args, context, info);
  };
}

const isRootField = ({ schema, parentType }: FieldPlace): boolean =>
  [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].includes(parentType);
