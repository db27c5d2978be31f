import {
  type GraphQLField,
  type GraphQLLeafType,
  GraphQLList,
  type GraphQLNamedType,
  GraphQLNonNull,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLScalarType,
  type GraphQLSchema,
  isAbstractType,
  isIntrospectionType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import { guardedFieldResolver } from './guarded-fields.ts';
import { type FieldResolver, originalOf } from './guarded-resolvers.ts';
import {
  derive,
  type Fields,
  guardedAbstract,
  guardedLeaf,
  guardedObject,
  guardedScalar,
} from './guarded-types.ts';
import { isBuiltInScalar, shapeOf } from './value-shape.ts';

type Field = GraphQLField<unknown, unknown>;

const schemas = new WeakMap<GraphQLSchema, WeakMap<FieldResolver, GraphQLSchema>>();

/**
 * A view of a schema for graphql-js: its resolvers pass what they return to the guard of the execution.
 * Resolvers get the schema and types of the application. `fallback` resolves the fields without a resolver.
 */
export function guardedSchema(schema: GraphQLSchema, fallback: FieldResolver): GraphQLSchema {
  let views = schemas.get(schema);
  if (views === undefined) {
    views = new WeakMap();
    schemas.set(schema, views);
  }
  let guarded = views.get(fallback);
  if (guarded === undefined) {
    guarded = new GuardedTypes(schema, fallback).view;
    views.set(fallback, guarded);
  }
  return guarded;
}

/**
 * Creates the views of the types of one schema. They inherit everything else from the types of the
 * application.
 */
class GuardedTypes {
  readonly view: GraphQLSchema;
  readonly #schema: GraphQLSchema;
  readonly #fallback: FieldResolver;
  /** The results of `getType`: views, and the types that it returns unchanged. */
  readonly #types = new Map<GraphQLNamedType, GraphQLNamedType>();
  readonly #leaves = new Map<GraphQLLeafType, GraphQLLeafType>();

  constructor(schema: GraphQLSchema, fallback: FieldResolver) {
    this.#schema = schema;
    this.#fallback = fallback;
    const named = <T>(type: T): T => this.#named(type as GraphQLNamedType) as T;
    this.view = derive(schema, {
      getType: { value: (name: string) => named(schema.getType(name)) },
      getRootType: {
        value: (name: Parameters<typeof schema.getRootType>[0]) => named(schema.getRootType(name)),
      },
      getQueryType: { value: () => named(schema.getQueryType()) },
      getMutationType: { value: () => named(schema.getMutationType()) },
      getSubscriptionType: { value: () => named(schema.getSubscriptionType()) },
      isSubType: {
        value: (...[type, sub]: Parameters<typeof schema.isSubType>) =>
          schema.isSubType(originalOf(type), originalOf(sub)),
      },
    });
  }

  /** Every execution requests the types of its variables and the type of the operation. */
  #named(type: GraphQLNamedType | null | undefined): GraphQLNamedType | null | undefined {
    if (type === null || type === undefined) return type;
    let view = this.#types.get(type);
    if (view === undefined) {
      view = this.#view(type);
      this.#types.set(type, view);
    }
    return view;
  }

  #view(type: GraphQLNamedType): GraphQLNamedType {
    // graphql-js compares these with its own definitions.
    if (isIntrospectionType(type)) return type;
    if (isObjectType(type)) return this.#object(type);
    return isAbstractType(type) ? guardedAbstract(type) : type;
  }

  /** A leaf type has a view for output only. */
  #leaf<T extends GraphQLLeafType>(type: T, create: (type: T) => GraphQLLeafType): GraphQLLeafType {
    let view = this.#leaves.get(type);
    if (view === undefined) {
      view = create(type);
      this.#leaves.set(type, view);
    }
    return view;
  }

  #output(type: GraphQLOutputType): GraphQLOutputType {
    if (isNonNullType(type)) {
      return new GraphQLNonNull(this.#output(type.ofType) as GraphQLObjectType);
    }
    if (isListType(type)) return new GraphQLList(this.#output(type.ofType));
    // The resolver's guard checks the values of built-in scalars.
    if (isBuiltInScalar(type)) return type;
    if (isLeafType(type)) return this.#leaf(type, guardedLeaf);
    return this.#named(type) as GraphQLOutputType;
  }

  #object(type: GraphQLObjectType): GraphQLObjectType {
    const createFields = (): Fields => {
      // Like the object of graphql-js: V8 finds properties of a dictionary faster where many types meet.
      const fields: Fields = Object.create(null);
      for (const [name, field] of Object.entries(type.getFields())) fields[name] = this.#field(field, type);
      return fields;
    };
    return guardedObject(type, createFields);
  }

  /** A copy: V8 gives all copies one hidden class, unlike objects with different prototypes. */
  #field(field: Field, parentType: GraphQLObjectType): Field {
    const shape = shapeOf(field.type);
    // A resolver may return promises. The other values are read here, so their type needs no guard.
    const isIndependent = field.resolve !== undefined && isBuiltInScalar(field.type);
    const place = { field, parentType, schema: this.#schema, shape: { ...shape, isIndependent } };
    return {
      ...field,
      type: isIndependent
        ? this.#leaf(field.type as GraphQLScalarType, guardedScalar)
        : this.#output(field.type),
      resolve: guardedFieldResolver(place, this.#fallback),
    };
  }
}
