import {
  defaultTypeResolver,
  type GraphQLAbstractType,
  type GraphQLArgumentConfig,
  GraphQLBoolean,
  type GraphQLFieldConfigMap,
  type GraphQLInputFieldConfig,
  GraphQLInputObjectType,
  GraphQLInterfaceType,
  GraphQLList,
  type GraphQLNamedType,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  type GraphQLType,
  type GraphQLTypeResolver,
  GraphQLUnionType,
  getNamedType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredInputField,
  isUnionType,
} from 'graphql';
import { settle } from '../options/rules.ts';
import { authError, type Caller, isMet } from './access.ts';
import { type Condition, requiredInWhole, requirementsOf, type SchemaRequirements } from './requirements.ts';

/**
 * Returns the part of a schema that a caller may use: without the fields whose requirements the caller does not meet, and
 * without types that are then empty or not used. What stays hidden is `@policy`, except of `policies`.
 */
export function visiblePart(
  schema: GraphQLSchema,
  scopes: readonly string[] | null,
  policies: readonly string[],
): GraphQLSchema {
  const caller = { scopes: scopes === null ? undefined : new Set(scopes), policies: new Set(policies) };
  const visibility = new Visibility(schema, caller);
  return visibility.isComplete ? schema : visibility.createSchema();
}

type FieldMap = GraphQLFieldConfigMap<unknown, unknown>;
type Fields = GraphQLObjectType | GraphQLInterfaceType;

/** A field of a root type of which a caller sees nothing: a schema without fields would be invalid. */
const NOTHING: FieldMap = {
  _nothing: { type: GraphQLBoolean, description: 'Nothing else is visible.', resolve: () => null },
};

class Visibility {
  readonly #schema: GraphQLSchema;
  readonly #caller: Caller;
  readonly #requirements: SchemaRequirements;
  readonly #hidden = new Set<GraphQLNamedType>();
  /** Coordinates of hidden fields, arguments and input fields. */
  readonly #hiddenFields = new Set<string>();
  readonly #views = new Map<GraphQLNamedType, GraphQLNamedType>();

  constructor(schema: GraphQLSchema, caller: Caller) {
    this.#schema = schema;
    this.#caller = caller;
    this.#requirements = requirementsOf(schema);
    // What is hidden hides more: the fields of hidden types, and types without fields.
    const size = (): number => this.#hidden.size + this.#hiddenFields.size;
    let before = -1;
    while (before !== size()) {
      before = size();
      for (const type of this.#types()) this.#hide(type);
    }
  }

  get isComplete(): boolean {
    return this.#hidden.size === 0 && this.#hiddenFields.size === 0;
  }

  createSchema(): GraphQLSchema {
    const config = this.#schema.toConfig();
    const root = (type: GraphQLObjectType | null | undefined): GraphQLObjectType | undefined =>
      type ? (this.#view(type) as GraphQLObjectType) : undefined;
    const other = (type: GraphQLObjectType | null | undefined) =>
      type && this.#hideFields(type) ? undefined : root(type);
    const implementing = config.types.filter((type) => isObjectType(type) && type.getInterfaces().length > 0);
    return new GraphQLSchema({
      ...config,
      query: root(config.query),
      mutation: other(config.mutation),
      subscription: other(config.subscription),
      // Those that only interfaces mention. The others are found.
      types: this.#visible(implementing),
    });
  }

  #types(): readonly GraphQLNamedType[] {
    return Object.values(this.#schema.getTypeMap()).filter((type) => !isIntrospectionType(type));
  }

  #allows(conditions: readonly Condition[]): boolean {
    return conditions.every((each) => isMet(each, this.#caller));
  }

  #isRoot(type: GraphQLNamedType): boolean {
    const schema = this.#schema;
    return [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].some(
      (each) => each === type,
    );
  }

  #hide(type: GraphQLNamedType): void {
    if (this.#hidden.has(type)) return;
    const isEmpty = isUnionType(type)
      ? type.getTypes().every((each) => this.#hidden.has(each))
      : 'getFields' in type && this.#hideFields(type);
    const isDenied = !this.#allows(this.#requirements.ofType(type));
    if ((isEmpty || isDenied) && !this.#isRoot(type)) this.#hidden.add(type);
  }

  /** Returns whether no field is visible. */
  #hideFields(type: Fields | GraphQLInputObjectType): boolean {
    const fields = Object.values(type.getFields());
    for (const field of fields) {
      const coordinate = `${type.name}.${field.name}`;
      if (isInputObjectType(type)) {
        const input = type.getFields()[field.name];
        if (input !== undefined && !this.#isUsable(input)) {
          this.#hiddenFields.add(coordinate);
          if (isRequiredInputField(input)) return true;
        }
      } else if (!this.#isFieldVisible(type, field.name)) this.#hiddenFields.add(coordinate);
    }
    return fields.every(({ name }) => this.#hiddenFields.has(`${type.name}.${name}`));
  }

  #isFieldVisible(type: Fields, name: string): boolean {
    const field = type.getFields()[name];
    if (field === undefined || this.#hidden.has(getNamedType(field.type))) return false;
    // A required argument that cannot be given.
    if (
      field.args.some(
        (arg) => isNonNullType(arg.type) && arg.defaultValue === undefined && !this.#isUsable(arg),
      )
    )
      return false;
    if (isObjectType(type)) return this.#allows(this.#requirements.ofField(type, field));
    // A type has all fields of its interfaces, so the interface has only those that all its types have.
    return this.#schema
      .getPossibleTypes(type)
      .every((object) => this.#hidden.has(object) || this.#isFieldVisible(object, name));
  }

  #isUsable(input: Parameters<SchemaRequirements['ofElement']>[0]): boolean {
    if (this.#hidden.has(getNamedType(input.type))) return false;
    return this.#allows(this.#requirements.ofElement(input));
  }

  #view(type: GraphQLNamedType): GraphQLNamedType {
    let view = this.#views.get(type);
    if (view === undefined) {
      view = this.#create(type);
      this.#views.set(type, view);
    }
    return view;
  }

  #create(type: GraphQLNamedType): GraphQLNamedType {
    if (isIntrospectionType(type)) return type;
    if (isObjectType(type)) {
      const view = new GraphQLObjectType({ ...type.toConfig(), ...this.#members(type) });
      // A socket keeps its schema, also when its caller loses a scope that only a hidden field of an interface names.
      requiredInWhole.set(view, (name) => {
        const field = type.getFields()[name];
        return field && this.#requirements.ofField(type, field);
      });
      return view;
    }
    if (isInterfaceType(type)) {
      const config = { ...type.toConfig(), ...this.#members(type), ...this.#typeResolver(type) };
      return new GraphQLInterfaceType(config);
    }
    if (isUnionType(type)) {
      const types = () => this.#visible(type.getTypes());
      return new GraphQLUnionType({ ...type.toConfig(), ...this.#typeResolver(type), types });
    }
    if (!isInputObjectType(type)) return type;
    const config = type.toConfig();
    return new GraphQLInputObjectType({ ...config, fields: () => this.#inputs(config.fields, type.name) });
  }

  #members(type: Fields): { fields: () => FieldMap; interfaces: () => GraphQLInterfaceType[] } {
    const all: FieldMap = type.toConfig().fields;
    const fields = (): FieldMap => {
      const visible = Object.entries(all).filter(([name]) => !this.#hiddenFields.has(`${type.name}.${name}`));
      if (visible.length === 0) return NOTHING;
      return Object.fromEntries(
        visible.map(([name, field]) => [
          name,
          { ...field, type: this.#type(field.type), args: this.#inputs(field.args ?? {}, '') },
        ]),
      );
    };
    return { fields, interfaces: () => this.#visible(type.getInterfaces()) };
  }

  #visible<T extends GraphQLNamedType>(types: readonly T[]): T[] {
    return types.filter((each) => !this.#hidden.has(each)).map((each) => this.#view(each) as T);
  }

  #inputs<T extends GraphQLArgumentConfig | GraphQLInputFieldConfig>(
    all: Record<string, T>,
    type: string,
  ): Record<string, T> {
    const isVisible = ([name, { type: of }]: [string, T]): boolean =>
      !this.#hidden.has(getNamedType(of)) && !this.#hiddenFields.has(`${type}.${name}`);
    return Object.fromEntries(
      Object.entries(all)
        .filter(isVisible)
        .map(([name, input]) => [name, { ...input, type: this.#type(input.type) }]),
    );
  }

  #type<T extends GraphQLType>(type: T): T {
    if (isNonNullType(type)) return new GraphQLNonNull(this.#type(type.ofType)) as GraphQLType as T;
    if (isListType(type)) return new GraphQLList(this.#type(type.ofType)) as GraphQLType as T;
    return this.#view(type as GraphQLNamedType) as GraphQLType as T;
  }

  /** A value whose type the caller does not see is refused, as in the whole schema. */
  #typeResolver(type: GraphQLAbstractType): { resolveType?: GraphQLTypeResolver<unknown, unknown> } {
    const hidden = new Set(
      this.#schema
        .getPossibleTypes(type)
        .filter((each) => this.#hidden.has(each))
        .map(({ name }) => name),
    );
    if (hidden.size === 0) return {};
    const resolveType = type.resolveType ?? defaultTypeResolver;
    return {
      resolveType: (...args) =>
        settle(resolveType(...args), (name) => {
          if (name === undefined || !hidden.has(name)) return name;
          throw authError(this.#caller, 'this value');
        }),
    };
  }
}
