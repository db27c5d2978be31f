/* Views of a schema for graphql-js: the same types with other functions. The schema itself stays as it is. */
import {
  type GraphQLAbstractType,
  type GraphQLField,
  type GraphQLIsTypeOfFn,
  GraphQLList,
  type GraphQLNamedType,
  GraphQLNonNull,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type GraphQLTypeResolver,
  isAbstractType,
  isIntrospectionType,
  isListType,
  isNonNullType,
  isObjectType,
  type OperationTypeNode,
} from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { getOrCreate } from '../options/values.ts';

type TypeResolver = GraphQLTypeResolver<unknown, unknown>;

export type Field = GraphQLField<unknown, unknown>;

/** A field of the application's schema. */
export interface FieldPlace {
  readonly field: Field;
  readonly parentType: GraphQLObjectType;
}

/** What the functions of a schema are in a view of it. */
interface ViewFunctions {
  readonly resolvers: (place: FieldPlace) => Pick<Field, 'resolve' | 'subscribe'>;
  readonly typeResolver: (resolve: TypeResolver) => TypeResolver;
  readonly isTypeOf: (result: MaybePromise<boolean>) => MaybePromise<boolean>;
  /** Fields of the query type that `getFields` does not list. */
  readonly introspection: readonly Field[];
}

/** The property of a view that has the type of the application. */
const ORIGINAL: unique symbol = Symbol('original');

/** The type or schema of the application. */
export const originalOf = <T extends object>(view: T): T =>
  (view as { readonly [ORIGINAL]?: T })[ORIGINAL] ?? view;

/** Creates a view of a type or schema. It inherits everything else from the original. */
function derive<T extends object>(original: T, properties: PropertyDescriptorMap): T {
  return Object.create(original, { ...properties, [ORIGINAL]: { value: original } });
}

/** Creates a view of a schema for an execution with other resolvers. The schema itself stays as it is. */
export function viewOfSchema(schema: GraphQLSchema, functions: ViewFunctions): GraphQLSchema {
  const known = new Map<GraphQLNamedType, GraphQLNamedType>();
  const named = <T extends GraphQLNamedType | null | undefined>(type: T): T => {
    // graphql-js compares the types of introspection with its own.
    if (type === null || type === undefined || isIntrospectionType(type)) return type;
    const introspection = type === schema.getQueryType() ? functions.introspection : [];
    const view = getOrCreate(known, type, () => viewOf(type, { ...functions, introspection }, output));
    return view as T;
  };
  const output = (type: GraphQLOutputType): GraphQLOutputType => {
    if (isNonNullType(type)) return new GraphQLNonNull(output(type.ofType) as GraphQLObjectType);
    return isListType(type) ? new GraphQLList(output(type.ofType)) : named(type);
  };
  return derive(schema, {
    getType: { value: (name: string) => named(schema.getType(name)) },
    getRootType: { value: (operation: OperationTypeNode) => named(schema.getRootType(operation)) },
    getQueryType: { value: () => named(schema.getQueryType()) },
    getMutationType: { value: () => named(schema.getMutationType()) },
    getSubscriptionType: { value: () => named(schema.getSubscriptionType()) },
    isSubType: {
      value: (...[type, sub]: Parameters<typeof schema.isSubType>) =>
        schema.isSubType(originalOf(type), originalOf(sub)),
    },
  });
}

type Output = (type: GraphQLOutputType) => GraphQLOutputType;

function viewOf(type: GraphQLNamedType, functions: ViewFunctions, output: Output): GraphQLNamedType {
  if (isObjectType(type)) return objectView(type, functions, output);
  return isAbstractType(type) ? abstractView(type, functions) : type;
}

function objectView(
  type: GraphQLObjectType,
  { resolvers, isTypeOf: check, introspection }: ViewFunctions,
  output: Output,
): GraphQLObjectType {
  let fields: Record<string, Field> | undefined;
  const createFields = (): Record<string, Field> => {
    // Like the object of graphql-js: V8 finds properties of a dictionary faster where many types meet.
    const created: Record<string, Field> = Object.create(null);
    for (const [name, field] of Object.entries(type.getFields())) {
      created[name] = {
        ...field,
        ...resolvers({ field, parentType: type }),
        type: output(field.type),
      };
    }
    for (const field of introspection) Object.defineProperty(created, field.name, { value: field });
    return created;
  };
  const isTypeOf: GraphQLIsTypeOfFn<unknown, unknown> = (value, context, info) =>
    check(type.isTypeOf?.(value, context, info) ?? false);
  return derive(type, {
    getFields: {
      value: () => {
        fields ??= createFields();
        return fields;
      },
    },
    isTypeOf: { get: () => (type.isTypeOf ? isTypeOf : undefined) },
  });
}

function abstractView<T extends GraphQLAbstractType>(type: T, { typeResolver }: ViewFunctions): T {
  const resolveType = typeResolver((...args) => {
    // Without the type as `this`, as in graphql-js.
    const { resolveType: resolve } = type;
    return resolve?.(...args);
  });
  return derive(type, { resolveType: { get: () => (type.resolveType ? resolveType : undefined) } });
}
