import {
  coerceInputValue,
  type GraphQLArgument,
  type GraphQLArgumentConfig,
  GraphQLBoolean,
  GraphQLDirective,
  type GraphQLField,
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
  GraphQLUnionType,
  getNamedType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
  isUnionType,
} from 'graphql';
import { defaultOf } from '../execution/default-values.ts';
import { nothing } from '../execution/visible-part.ts';
import { type Caller, isMet } from './access.ts';
import { requirementsOf, type SchemaRequirements } from './requirements.ts';

/**
 * Returns the part of a schema that a caller may use: without the fields, arguments and input fields whose requirements the
 * caller does not meet, and without types that are then empty or not used. What stays hidden is `@policy`, except of
 * `policies`. The part has names only: operations are executed by the whole schema.
 */
export function visiblePart(
  schema: GraphQLSchema,
  scopes: readonly string[] | null,
  policies: readonly string[],
): GraphQLSchema {
  const caller = { scopes: scopes === null ? undefined : new Set(scopes), policies: new Set(policies) };
  const visibility = new Visibility(schema, caller);
  return visibility.isUnrestricted ? schema : visibility.createSchema();
}

type FieldMap = GraphQLFieldConfigMap<unknown, unknown>;
type Fields = GraphQLObjectType | GraphQLInterfaceType;
type InputConfig = GraphQLArgumentConfig | GraphQLInputFieldConfig;

/** A field of a root type of which a caller sees nothing: a schema without fields would be invalid. */
const NOTHING: FieldMap = {
  _nothing: { type: GraphQLBoolean, description: 'Nothing else is visible.', resolve: nothing },
};

class Visibility {
  readonly #schema: GraphQLSchema;
  readonly #caller: Caller;
  readonly #requirements: SchemaRequirements;
  /** Hidden types, and the coordinates of hidden fields, arguments and input fields. */
  readonly #hidden = new Set<GraphQLNamedType | string>();
  readonly #views = new Map<GraphQLNamedType, GraphQLNamedType>();

  constructor(schema: GraphQLSchema, caller: Caller) {
    this.#schema = schema;
    this.#caller = caller;
    this.#requirements = requirementsOf(schema);
    const types = Object.values(schema.getTypeMap()).filter((type) => !isIntrospectionType(type));
    // What is hidden hides more: the fields of hidden types, and types without fields.
    for (let before = -1; before !== this.#hidden.size; ) {
      before = this.#hidden.size;
      for (const type of types) this.#hide(type);
    }
  }

  get isUnrestricted(): boolean {
    return this.#hidden.size === 0;
  }

  createSchema(): GraphQLSchema {
    const config = this.#schema.toConfig();
    const root = (type: GraphQLObjectType | null | undefined): GraphQLObjectType | undefined =>
      type ? (this.#view(type) as GraphQLObjectType) : undefined;
    const other = (type: GraphQLObjectType | null | undefined) =>
      type && this.#isEmpty(type) ? undefined : root(type);
    const implementing = config.types.filter((type) => isObjectType(type) && type.getInterfaces().length > 0);
    return new GraphQLSchema({
      ...config,
      query: root(config.query),
      mutation: other(config.mutation),
      subscription: other(config.subscription),
      // Those that only interfaces mention. The others are found.
      types: this.#visible(implementing),
      directives: config.directives.flatMap((directive) => this.#directive(directive)),
    });
  }

  #allows(conditions: ReturnType<SchemaRequirements['ofType']>): boolean {
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
    if (isInputObjectType(type)) {
      for (const field of Object.values(type.getFields()))
        if (!this.#isUsable(field)) this.#hidden.add(`${type.name}.${field.name}`);
    } else if ('getFields' in type) {
      for (const field of Object.values(type.getFields())) this.#hideField(type, field);
    }
    const isDenied = this.#isEmpty(type) || !this.#allows(this.#requirements.ofType(type));
    if (isDenied && !this.#isRoot(type)) this.#hidden.add(type);
  }

  #hideField(type: Fields, { name, args }: GraphQLField<unknown, unknown>): void {
    const coordinate = `${type.name}.${name}`;
    for (const arg of args)
      if (!this.#isVisible(type, name, arg.name)) this.#hidden.add(`${coordinate}(${arg.name}:)`);
    // A required argument that cannot be given hides the field.
    const isUsable = args.every((arg) => !isRequiredArgument(arg) || this.#isVisible(type, name, arg.name));
    if (!isUsable || !this.#isVisible(type, name)) this.#hidden.add(coordinate);
  }

  /** Whether no value of a type can be selected or given. */
  #isEmpty(type: GraphQLNamedType): boolean {
    if (isUnionType(type)) return type.getTypes().every((each) => this.#hidden.has(each));
    if (!('getFields' in type)) return false;
    const isHidden = ({ name }: { readonly name: string }) => this.#hidden.has(`${type.name}.${name}`);
    if (
      isInputObjectType(type) &&
      Object.values(type.getFields()).filter(isRequiredInputField).some(isHidden)
    )
      return true;
    return Object.values(type.getFields()).every(isHidden);
  }

  /** Whether a caller sees a field or its argument. A type has those of its interfaces, so an interface has what all its types have. */
  #isVisible(type: Fields, name: string, argument?: string): boolean {
    const field = type.getFields()[name];
    const element = argument === undefined ? field : field?.args.find((each) => each.name === argument);
    const coordinate = argument === undefined ? `${type.name}.${name}` : `${type.name}.${name}(${argument}:)`;
    if (field === undefined || element === undefined || this.#hidden.has(coordinate)) return false;
    if (!this.#isUsable(element)) return false;
    if (isObjectType(type))
      return argument !== undefined || this.#allows(this.#requirements.ofField(type, field));
    const { objects, interfaces } = this.#schema.getImplementations(type);
    return [...objects, ...interfaces].every(
      (each) => this.#hidden.has(each) || this.#isVisible(each, name, argument),
    );
  }

  #isUsable(element: Parameters<SchemaRequirements['ofElement']>[0]): boolean {
    if (this.#hidden.has(getNamedType(element.type))) return false;
    return this.#allows(this.#requirements.ofElement(element));
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
    if (isObjectType(type)) return new GraphQLObjectType({ ...type.toConfig(), ...this.#members(type) });
    if (isInterfaceType(type))
      return new GraphQLInterfaceType({ ...type.toConfig(), ...this.#members(type) });
    if (isUnionType(type))
      return new GraphQLUnionType({ ...type.toConfig(), types: () => this.#visible(type.getTypes()) });
    if (!isInputObjectType(type)) return type;
    const config = type.toConfig();
    const fields = () => this.#inputs(config.fields, (name) => `${type.name}.${name}`);
    return new GraphQLInputObjectType({ ...config, fields });
  }

  #members(type: Fields): { fields: () => FieldMap; interfaces: () => GraphQLInterfaceType[] } {
    const all: FieldMap = type.toConfig().fields;
    const fields = (): FieldMap => {
      const visible = Object.entries(all).filter(([name]) => !this.#hidden.has(`${type.name}.${name}`));
      if (visible.length === 0) return NOTHING;
      return Object.fromEntries(
        visible.map(([name, field]) => {
          const args = this.#inputs(field.args ?? {}, (arg) => `${type.name}.${name}(${arg}:)`);
          return [name, { ...field, type: this.#type(field.type), args }];
        }),
      );
    };
    return { fields, interfaces: () => this.#visible(type.getInterfaces()) };
  }

  #visible<T extends GraphQLNamedType>(types: readonly T[]): T[] {
    return types.filter((each) => !this.#hidden.has(each)).map((each) => this.#view(each) as T);
  }

  #inputs<T extends InputConfig>(
    all: Record<string, T>,
    coordinateOf: (name: string) => string,
  ): Record<string, T> {
    return Object.fromEntries(
      Object.entries(all)
        .filter(([name, { type }]) => {
          return !this.#hidden.has(getNamedType(type)) && !this.#hidden.has(coordinateOf(name));
        })
        .map(([name, input]) => [name, { ...withoutLiteral(input), type: this.#type(input.type) }]),
    );
  }

  #directive(directive: GraphQLDirective): readonly GraphQLDirective[] {
    const isHidden = ({ type }: GraphQLArgument) => this.#hidden.has(getNamedType(type));
    if (directive.args.some((arg) => isRequiredArgument(arg) && isHidden(arg))) return [];
    if (directive.args.every(({ type }) => this.#view(getNamedType(type)) === getNamedType(type)))
      return [directive];
    const { args, ...config } = directive.toConfig();
    return [
      new GraphQLDirective({ ...config, args: this.#inputs(args, (name) => `@${config.name}(${name}:)`) }),
    ];
  }

  #type<T extends GraphQLType>(type: T): T {
    if (isNonNullType(type)) return new GraphQLNonNull(this.#type(type.ofType)) as GraphQLType as T;
    if (isListType(type)) return new GraphQLList(this.#type(type.ofType)) as GraphQLType as T;
    return this.#view(type as GraphQLNamedType) as GraphQLType as T;
  }
}

/**
 * Returns an input whose default cannot name hidden input fields: introspection of graphql 17 prints `default` as it was
 * written, and `defaultValue` with the fields of the type.
 */
function withoutLiteral<T extends InputConfig>(input: T): T {
  if (Reflect.get(input, 'default') === undefined || !isInputObjectType(getNamedType(input.type)))
    return input;
  return { ...input, default: undefined, defaultValue: coerceInputValue(defaultOf(input), input.type) };
}
