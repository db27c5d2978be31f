import {
  astFromValue,
  type FieldNode,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  Kind,
  type ValueNode,
  valueFromASTUntyped,
} from 'graphql';
import type { CachedOperation, ObjectTags } from '../../execution/types.ts';
import { isObject } from '../../options/rules.ts';
import {
  createTagBudget,
  expandFormat,
  fieldFormats,
  type TagFormat,
  typeFormats,
  valuesAt,
} from './tag-formats.ts';

type Field = GraphQLField<unknown, unknown>;
type Variables = Readonly<Record<string, unknown>>;

/** The value of an argument, whose parts are read by path. */
interface ArgumentValue {
  at(path: readonly string[]): readonly unknown[] | undefined;
}

/** A format whose placeholders are arguments of a selected field. */
interface FieldTag {
  readonly format: TagFormat;
  readonly definition: Field;
  readonly node: FieldNode;
}

/** The tags of an operation that do not depend on the values of resolvers. */
export class OperationTags {
  readonly #fixed = new Set<string>();
  #fixedList: readonly string[] | undefined;
  readonly #byArguments: FieldTag[] = [];
  readonly #defaults: Record<string, unknown> = {};
  readonly #schema: GraphQLSchema;

  constructor({ operation, schema }: CachedOperation) {
    this.#schema = schema;
    for (const { variable, defaultValue } of operation.variableDefinitions ?? []) {
      if (defaultValue !== undefined) this.#defaults[variable.name.value] = literalValue(defaultValue, {});
    }
  }

  /** Adds the tags of a field that is selected from these types, and of all types that its values may have. */
  add(objects: readonly GraphQLObjectType[], node: FieldNode): void {
    for (const object of objects) {
      const definition = object.getFields()[node.name.value] as Field;
      for (const format of fieldFormats(object, definition)) {
        if (format.uses.args) this.#byArguments.push({ format, definition, node });
        else if (!format.uses.key) this.#addFixed(format);
      }
      const type = getNamedType(definition.type);
      if (isAbstractType(type))
        for (const object of this.#schema.getPossibleTypes(type)) this.#addType(object);
      if (isObjectType(type) || isInterfaceType(type)) this.#addType(type);
    }
  }

  /**
   * Returns the tags for the variables of a request, as received. Undefined if they are unknown: an argument has no
   * text, or there are too many.
   */
  of(variables: Variables = {}): readonly string[] | undefined {
    if (this.#byArguments.length === 0) {
      this.#fixedList ??= Object.freeze([...this.#fixed]);
      return this.#fixedList;
    }
    const tags = new Set(this.#fixed);
    const values = { ...this.#defaults, ...variables };
    const budget = createTagBudget();
    for (const { format, definition, node } of this.#byArguments) {
      const args = argumentsOf(definition, node, values);
      const expanded = expandFormat(format, ([name = '', ...path]) => args.get(name)?.at(path) ?? [], budget);
      if (expanded === undefined) return undefined;
      for (const tag of expanded) tags.add(tag);
    }
    return [...tags];
  }

  #addType(type: GraphQLObjectType | GraphQLInterfaceType): void {
    for (const format of typeFormats(type)) if (!format.uses.key) this.#addFixed(format);
  }

  #addFixed(format: TagFormat): void {
    for (const tag of expandFormat(format, () => undefined, createTagBudget()) ?? []) this.#fixed.add(tag);
  }
}

/** The values of arguments, before coercion: a number and the same text have the same tag. */
function argumentsOf(
  { args }: Field,
  { arguments: nodes = [] }: FieldNode,
  variables: Variables,
): ReadonlyMap<string, ArgumentValue> {
  const given = new Map(nodes.map(({ name, value }) => [name.value, literalValue(value, variables)]));
  return new Map(
    args.map((argument) => {
      const sent = given.get(argument.name);
      const value = sent === undefined ? defaultOf(argument) : sent;
      return [argument.name, { at: (path) => inputValuesAt(value, argument.type, path) }];
    }),
  );
}

/** Like `valuesAt`, with the default values of members that an input object lacks. */
function inputValuesAt(
  value: unknown,
  type: GraphQLInputType,
  path: readonly string[],
): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value.flatMap((item) => inputValuesAt(item, type, path) ?? []);
  const [name, ...rest] = path;
  const named = getNamedType(type);
  if (name === undefined || !isObject(value) || !isInputObjectType(named)) return valuesAt(value, path);
  const field = named.getFields()[name];
  if (field === undefined) return undefined;
  const member = value[name];
  return inputValuesAt(member === undefined ? defaultOf(field) : member, field.type, rest);
}

/** Like `valueFromASTUntyped`, with the text of integers that a number cannot represent, such as long ids. */
function literalValue(node: ValueNode, variables: Variables): unknown {
  switch (node.kind) {
    case Kind.INT:
      return Number.isSafeInteger(Number(node.value)) ? Number(node.value) : node.value;
    case Kind.LIST:
      return node.values.map((item) => literalValue(item, variables));
    case Kind.OBJECT:
      return Object.fromEntries(
        node.fields.map(({ name, value }) => [name.value, literalValue(value, variables)]),
      );
    default:
      return valueFromASTUntyped(node, variables);
  }
}

const defaults = new WeakMap<GraphQLArgument | GraphQLInputField, unknown>();

/** The default value of an argument or a member of an input object, as a client would send it. */
function defaultOf(input: GraphQLArgument | GraphQLInputField): unknown {
  if (!defaults.has(input)) defaults.set(input, readDefault(input));
  return defaults.get(input);
}

/** graphql 17 has another member for default values, and keeps them as they were sent. */
function readDefault(input: GraphQLArgument | GraphQLInputField): unknown {
  const { defaultValue, default: newDefault } = input as {
    readonly defaultValue?: unknown;
    readonly default?: {
      readonly value?: unknown;
      readonly literal?: ValueNode;
    };
  };
  if (newDefault !== undefined && newDefault.literal === undefined) return newDefault.value;
  const literal = newDefault?.literal ?? astFromValue(defaultValue, input.type);
  return literal == null ? undefined : literalValue(literal, {});
}

const objectTags = new WeakMap<GraphQLObjectType, Map<Field, ObjectTags>>();
const NO_TAGS: ObjectTags = Object.freeze([]);

/** Returns the tags of the objects that a field belongs to; undefined if there are none. */
export function objectTagsOf(type: GraphQLObjectType, definition: Field): ObjectTags | undefined {
  let byField = objectTags.get(type);
  if (byField === undefined) {
    byField = new Map();
    objectTags.set(type, byField);
  }
  let tags = byField.get(definition);
  if (tags === undefined) {
    tags = createObjectTags(type, definition);
    byField.set(definition, tags);
  }
  return tags.length === 0 ? undefined : tags;
}

function createObjectTags(type: GraphQLObjectType, definition: Field): ObjectTags {
  const formats = [...typeFormats(type), ...fieldFormats(type, definition)].filter(({ uses }) => uses.key);
  if (formats.length === 0) return NO_TAGS;
  return formats.map((format) => ({
    of: (source) => expandFormat(format, (path) => valuesAt(source, path), createTagBudget()),
  }));
}
