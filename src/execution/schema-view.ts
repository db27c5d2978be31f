import {
  type GraphQLAbstractType,
  type GraphQLField,
  type GraphQLFieldResolver,
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

type Field = GraphQLField<unknown, unknown>;

/** A field of the application's schema. */
export interface FieldPlace {
  readonly field: Field;
  readonly parentType: GraphQLObjectType;
}

interface Replacements {
  /** Returns the resolver that a field has in the view. */
  resolverOf(place: FieldPlace): GraphQLFieldResolver<unknown, unknown>;
  /** Gets the result of each call of a function that determines the type of an object, and returns another. */
  typeResult<T>(result: T): T;
}

/** The property of a view that has the type of the application. */
const ORIGINAL: unique symbol = Symbol('original');

export const originalOf = <T extends object>(view: T): T =>
  (view as { readonly [ORIGINAL]?: T })[ORIGINAL] ?? view;

/** Creates a view of a type or schema. It inherits everything else from the original. */
function derive<T extends object>(original: T, properties: PropertyDescriptorMap): T {
  return Object.create(original, { ...properties, [ORIGINAL]: { value: original } });
}

/** Creates a view of a schema for an execution with other resolvers. The schema itself stays as it is. */
export function viewOfSchema(schema: GraphQLSchema, replacements: Replacements): GraphQLSchema {
  const known = new Map<GraphQLNamedType, GraphQLNamedType>();
  const named = <T extends GraphQLNamedType | null | undefined>(type: T): T => {
    // graphql-js compares the types of introspection with its own.
    if (type === null || type === undefined || isIntrospectionType(type)) return type;
    let view = known.get(type);
    if (view === undefined) {
      view = viewOf(type, replacements, output);
      known.set(type, view);
    }
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

function viewOf(type: GraphQLNamedType, replacements: Replacements, output: Output): GraphQLNamedType {
  if (isObjectType(type)) return objectView(type, replacements, output);
  return isAbstractType(type) ? abstractView(type, replacements) : type;
}

function objectView(
  type: GraphQLObjectType,
  { resolverOf, typeResult }: Replacements,
  output: Output,
): GraphQLObjectType {
  let fields: Record<string, Field> | undefined;
  const createFields = (): Record<string, Field> => {
    // Like the object of graphql-js: V8 finds properties of a dictionary faster where many types meet.
    const created: Record<string, Field> = Object.create(null);
    for (const [name, field] of Object.entries(type.getFields())) {
      created[name] = {
        ...field,
        type: output(field.type),
        resolve: resolverOf({ field, parentType: type }),
      };
    }
    return created;
  };
  const isTypeOf: typeof type.isTypeOf = (...args) => typeResult(type.isTypeOf?.(...args)) ?? false;
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

function abstractView<T extends GraphQLAbstractType>(type: T, { typeResult }: Replacements): T {
  const resolveType: GraphQLTypeResolver<unknown, unknown> = (value, context, info) =>
    typeResult(type.resolveType?.(value, context, info, type));
  return derive(type, { resolveType: { get: () => (type.resolveType ? resolveType : undefined) } });
}
