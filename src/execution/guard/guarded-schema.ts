import {
  type GraphQLAbstractType,
  type GraphQLField,
  type GraphQLLeafType,
  GraphQLList,
  type GraphQLNamedType,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  isAbstractType,
  isIntrospectionType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import { V17 } from '../graphql-version.ts';
import { completingGuard } from './guarded-execution.ts';
import {
  type FieldResolver,
  guardCall,
  guardedFieldResolver,
  guardOf,
  guardTypeName,
  ORIGINAL,
  originalOf,
  type TypeResolver,
} from './guarded-resolvers.ts';
import { isBuiltInScalar } from './value-shape.ts';

type Field = GraphQLField<unknown, unknown>;
type Fields = Record<string, Field>;

/** The method of leaf types that converts values for the response. */
const OUTPUT_METHOD = V17 ? 'coerceOutputValue' : 'serialize';

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
    if (isIntrospectionType(type)) return type;
    if (isObjectType(type)) return this.#once(type, () => this.#object(type));
    if (isAbstractType(type)) return this.#once(type, () => guardedAbstract(type));
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
    let fields: Fields | undefined;
    const getFields = (): Fields => {
      fields ??= Object.fromEntries(
        Object.entries(type.getFields()).map(([name, field]) => [name, this.#field(field, type)]),
      );
      return fields;
    };
    // The prototype has an accessor for `isTypeOf`.
    const { isTypeOf: _, ...properties } = type;
    return Object.assign(Object.create(GUARDED_OBJECT), { ...properties, [ORIGINAL]: type, getFields });
  }

  /** A copy: V8 gives all copies one hidden class, unlike objects with different prototypes. */
  #field(field: Field, parentType: GraphQLObjectType): Field {
    const place = { field, parentType, schema: this.#schema };
    return {
      ...field,
      type: this.#output(field.type),
      resolve: guardedFieldResolver(place, this.#fallback),
    };
  }
}

interface ObjectView extends GraphQLObjectType {
  readonly [ORIGINAL]: GraphQLObjectType;
}

/** The prototype of the views of object types. One prototype gives all views one hidden class. */
const GUARDED_OBJECT: object = Object.create(GraphQLObjectType.prototype, {
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

function guardedAbstract<T extends GraphQLAbstractType>(type: T): T {
  const resolveType: TypeResolver = (value, context, info) =>
    guardTypeName(type.resolveType as TypeResolver, type, [value, context, info]);
  return derive(type, { resolveType: { get: () => (type.resolveType ? resolveType : undefined) } });
}

function guardedLeaf(type: GraphQLLeafType): GraphQLLeafType {
  const convert = (value: unknown): unknown => {
    const guard = completingGuard();
    const check = (output: unknown): unknown => {
      if (output === null || output === undefined) guard?.fail();
      return output;
    };
    const method = (type as object as Record<string, (input: unknown) => unknown>)[OUTPUT_METHOD];
    try {
      return check(method?.call(type, value));
    } catch (error) {
      guard?.fail();
      throw error;
    }
  };
  return derive(type, { [OUTPUT_METHOD]: { value: convert } });
}

/** Creates a view of a type or schema. It inherits everything else from the original. */
function derive<T extends object>(original: T, properties: PropertyDescriptorMap): T {
  return Object.create(original, { ...properties, [ORIGINAL]: { value: original } });
}
