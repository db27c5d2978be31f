import {
  type GraphQLField,
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
  readonly #types = new Map<object, unknown>();
  /** The types that `getType` returns unchanged. A leaf type may have a view for output too. */
  readonly #unchanged = new Set<object>();

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

  #once<T extends object>(type: T, create: () => T): T {
    let view = this.#types.get(type) as T | undefined;
    if (view === undefined) {
      view = create();
      this.#types.set(type, view);
    }
    return view;
  }

  #named(type: GraphQLNamedType | null | undefined): GraphQLNamedType | null | undefined {
    if (type === null || type === undefined) return type;
    // graphql-js compares these with its own definitions.
    const known = this.#types.get(type) as GraphQLNamedType | undefined;
    if (known !== undefined) return known;
    // Every execution requests the types of its variables.
    if (this.#unchanged.has(type)) return type;
    if (!isIntrospectionType(type)) {
      if (isObjectType(type)) return this.#once(type, () => this.#object(type));
      if (isAbstractType(type)) return this.#once(type, () => guardedAbstract(type));
    }
    this.#unchanged.add(type);
    return type;
  }

  #output(type: GraphQLOutputType): GraphQLOutputType {
    if (isNonNullType(type)) {
      return new GraphQLNonNull(this.#output(type.ofType) as GraphQLObjectType);
    }
    if (isListType(type)) return new GraphQLList(this.#output(type.ofType));
    // The resolver's guard checks the values of built-in scalars.
    if (isBuiltInScalar(type)) return type;
    if (isLeafType(type)) return this.#once(type, () => guardedLeaf(type));
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
        ? this.#once(field.type, () => guardedScalar(field.type as GraphQLScalarType))
        : this.#output(field.type),
      resolve: guardedFieldResolver(place, this.#fallback),
    };
  }
}
