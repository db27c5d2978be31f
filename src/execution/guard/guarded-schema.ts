import {
  type GraphQLAbstractType,
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLLeafType,
  GraphQLList,
  type GraphQLNamedType,
  GraphQLNonNull,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type GraphQLTypeResolver,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import { V17 } from '../graphql-version.ts';
import { currentGuard } from './guarded-execution.ts';
import { derive, guardCall, guardField, guardOf, guardTypeName, originalOf } from './guarded-resolvers.ts';

type Field = GraphQLField<unknown, unknown>;
type FieldResolver = GraphQLFieldResolver<unknown, unknown>;
type TypeResolver = GraphQLTypeResolver<unknown, unknown>;

/** The method of leaf types that converts values for the response. */
const OUTPUT_METHOD = V17 ? 'coerceOutputValue' : 'serialize';

const schemas = new WeakMap<GraphQLSchema, GraphQLSchema>();

/**
 * A view of a schema for graphql-js: its resolvers pass what they return to the guard of the execution.
 * Resolvers get the schema and types of the application.
 */
export function guardedSchema(schema: GraphQLSchema): GraphQLSchema {
  let guarded = schemas.get(schema);
  if (guarded === undefined) {
    guarded = new GuardedTypes(schema).view;
    schemas.set(schema, guarded);
  }
  return guarded;
}

/**
 * Creates the views of the types of one schema. They inherit everything else from the types of the
 * application.
 */
class GuardedTypes {
  readonly view: GraphQLSchema;
  readonly #types = new Map<object, unknown>();

  constructor(schema: GraphQLSchema) {
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
    if (isObjectType(type)) return this.#once(type, () => this.#object(type));
    if (isAbstractType(type)) return this.#once(type, () => guardedAbstract(type));
    return type;
  }

  #output(type: GraphQLOutputType): GraphQLOutputType {
    if (isNonNullType(type)) {
      return new GraphQLNonNull(this.#output(type.ofType) as GraphQLObjectType);
    }
    if (isListType(type)) return new GraphQLList(this.#output(type.ofType));
    if (isLeafType(type)) return this.#once(type, () => guardedLeaf(type));
    return this.#named(type) as GraphQLOutputType;
  }

  #object(type: GraphQLObjectType): GraphQLObjectType {
    let fields: Record<string, Field> | undefined;
    const getFields = (): Record<string, Field> => {
      fields ??= Object.fromEntries(
        Object.entries(type.getFields()).map(([name, field]) => [name, this.#field(field)]),
      );
      return fields;
    };
    const isTypeOf: GraphQLObjectType['isTypeOf'] = (value, context, info) => {
      const guard = guardOf(info);
      const check = (matches: unknown): unknown => {
        if (!matches) guard?.fail();
        return matches;
      };
      return guardCall(guard, () => type.isTypeOf?.(value, context, info), check) as boolean;
    };
    return derive(type, {
      getFields: { value: getFields },
      isTypeOf: { get: () => (type.isTypeOf ? isTypeOf : undefined) },
    });
  }

  #field(field: Field): Field {
    const resolve: FieldResolver = (source, args, context, info) =>
      guardField(field.resolve as FieldResolver, field.type, info.schema, [source, args, context, info]);
    // Tracers wrap the resolvers of the schema that `execute` gets.
    let wrapped: unknown;
    return derive(field, {
      type: { value: this.#output(field.type) },
      resolve: {
        get: () => wrapped ?? (field.resolve === undefined ? undefined : resolve),
        set: (value) => {
          wrapped = value;
        },
      },
    });
  }
}

function guardedAbstract<T extends GraphQLAbstractType>(type: T): T {
  const resolveType: TypeResolver = (value, context, info) =>
    guardTypeName(type.resolveType as TypeResolver, type, [value, context, info]);
  return derive(type, { resolveType: { get: () => (type.resolveType ? resolveType : undefined) } });
}

function guardedLeaf(type: GraphQLLeafType): GraphQLLeafType {
  const convert = (value: unknown): unknown => {
    const guard = currentGuard();
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
