import {
  type FieldNode,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
} from 'graphql';
import { defaultOf, literalValue } from '../execution/default-values.ts';
import { directivesOf, type SchemaElement } from '../execution/directives.ts';
import type { ObjectTags, ValidatedOperation } from '../execution/types.ts';
import { formatValue, optionError } from '../options/rules.ts';
import { CACHE_OPTIONS } from '../options/scopes.ts';
import { getOrCreate, isObject, isString } from '../options/values.ts';
import { ALL_TAGS, normalTag } from './invalidations.ts';

type Field = GraphQLField<unknown, unknown>;
type Variables = Readonly<Record<string, unknown>>;

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

  constructor({ operation, schema }: ValidatedOperation) {
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
      const expanded = expandFormat(format, ([name = '', ...path]) => args.get(name)?.(path) ?? [], budget);
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
): ReadonlyMap<string, ReadValues> {
  const given = new Map(nodes.map(({ name, value }) => [name.value, literalValue(value, variables)]));
  return new Map(
    args.map((argument) => {
      const sent = given.get(argument.name);
      const value = sent === undefined ? defaultOf(argument) : sent;
      return [argument.name, (path) => inputValuesAt(value, argument.type, path)];
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

const objectTags = new WeakMap<GraphQLObjectType, Map<Field, ObjectTags>>();
const NO_TAGS: ObjectTags = Object.freeze([]);

/** Returns the tags of the objects that a field belongs to; undefined if there are none. */
export function objectTagsOf(type: GraphQLObjectType, definition: Field): ObjectTags | undefined {
  const byField = getOrCreate(objectTags, type, () => new Map());
  const tags = getOrCreate(byField, definition, () => createObjectTags(type, definition));
  return tags.length === 0 ? undefined : tags;
}

function createObjectTags(type: GraphQLObjectType, definition: Field): ObjectTags {
  const formats = [...typeFormats(type), ...fieldFormats(type, definition)].filter(({ uses }) => uses.key);
  if (formats.length === 0) return NO_TAGS;
  return formats.map((format) => ({
    of: (source) => expandFormat(format, (path) => valuesAt(source, path), createTagBudget()),
  }));
}

/** A placeholder such as `{$args.id}` or `{$key.owner.id}`. */
interface Placeholder {
  readonly source: 'args' | 'key';
  readonly path: readonly string[];
}

/** A format of `@cacheTag`: texts and placeholders. */
interface TagFormat {
  readonly parts: readonly (string | Placeholder)[];
  /** The format has a placeholder of this source. */
  readonly uses: Readonly<Record<Placeholder['source'], boolean>>;
}

const DIRECTIVE = 'cacheTag';
const NONE: readonly TagFormat[] = Object.freeze([]);
const formats = new WeakMap<object, readonly TagFormat[]>();

/**
 * Returns the formats of a type or field: of `@cacheTag` in SDL, or of `extensions.cacheTag` in schemas that are
 * created in code.
 *
 * @throws TypeError (code `ERR_OPTION`) for a wrong format.
 */
function tagFormatsOf(element: SchemaElement): readonly TagFormat[] {
  return getOrCreate(formats, element, () => {
    const given = directivesOf(element, DIRECTIVE).flatMap((use) => (isObject(use) ? use['format'] : use));
    // Libraries such as Pothos write a directive into both the SDL and the extensions of an element.
    return given.length === 0 ? NONE : [...new Set(given)].map((format) => parseFormat(format, element.name));
  });
}

type FieldsType = GraphQLObjectType | GraphQLInterfaceType;

const typeFormats = (type: FieldsType): readonly TagFormat[] => [
  ...tagFormatsOf(type),
  ...type.getInterfaces().flatMap(tagFormatsOf),
];

/** The formats of a field, also of the definitions in the interfaces of its type. */
const fieldFormats = (type: FieldsType, definition: GraphQLField<unknown, unknown>): readonly TagFormat[] => [
  ...tagFormatsOf(definition),
  ...type.getInterfaces().flatMap((parent) => {
    const inherited = parent.getFields()[definition.name];
    return inherited === undefined ? NONE : tagFormatsOf(inherited);
  }),
];

const tagged = new WeakMap<GraphQLSchema, boolean>();

/**
 * Whether a schema has tags.
 *
 * @throws TypeError (code `ERR_OPTION`) for a wrong format.
 */
export function hasTags(schema: GraphQLSchema): boolean {
  return getOrCreate(tagged, schema, () => {
    const elements = Object.values(schema.getTypeMap())
      .filter((type) => isObjectType(type) || isInterfaceType(type))
      .flatMap((type) => [type, ...Object.values(type.getFields())]);
    return elements.filter((element) => tagFormatsOf(element).length > 0).length > 0;
  });
}

const PLACEHOLDER = /\{\$(args|key)((?:\.[_A-Za-z]\w*)+)\}/;

function parseFormat(format: unknown, name: string): TagFormat {
  const fail = (reason: string): TypeError =>
    optionError(CACHE_OPTIONS, `@${DIRECTIVE} of "${name}": the format is ${formatValue(format)}; ${reason}`);
  if (!isString(format) || format === '') throw fail('accepted: a text such as "user-{$key.id}"');
  const parts: (string | Placeholder)[] = [];
  const uses = { args: false, key: false };
  let rest = format;
  for (let match = PLACEHOLDER.exec(rest); match !== null; match = PLACEHOLDER.exec(rest)) {
    const [whole, source, path] = match as RegExpExecArray & [string, Placeholder['source'], string];
    parts.push(rest.slice(0, match.index), { source, path: path.slice(1).split('.') });
    uses[source] = true;
    rest = rest.slice(match.index + whole.length);
  }
  parts.push(rest);
  if (parts.some((part) => isString(part) && /[{}]/.test(part))) {
    throw fail(
      'accepted placeholders: {$args.name} for an argument, {$key.name} for a property of the object',
    );
  }
  if (uses.args && uses.key) throw fail('a format cannot have placeholders of $args and of $key');
  return { parts: parts.filter((part) => part !== ''), uses };
}

/** Characters that the tags of one execution may have together; each tag counts as `TAG_CHARACTERS` more. */
const MAX_CHARACTERS = 1_000_000;
const TAG_CHARACTERS = 100;

/** The characters that more tags may have: clients choose the values of arguments, and the lengths of their lists. */
interface TagBudget {
  left: number;
}

const createTagBudget = (): TagBudget => ({ left: MAX_CHARACTERS });

/** Returns the values of a placeholder; undefined if there are none. */
type ReadValues = (path: readonly string[]) => readonly unknown[] | undefined;

/**
 * Returns the tags of a format: one per combination of the values of its placeholders; none for an empty text.
 * Undefined if a value is missing or has no text, or if the tags are larger than the budget.
 */
function expandFormat(
  { parts, uses }: TagFormat,
  read: ReadValues,
  budget: TagBudget,
): readonly string[] | undefined {
  let texts: readonly string[] = [''];
  let size = TAG_CHARACTERS;
  for (const part of parts) {
    const values = isString(part) ? [part] : textsOf(read(part.path));
    if (values === undefined) return undefined;
    size = size * values.length + texts.length * charactersOf(values);
    if (size > budget.left) return undefined;
    texts = texts.flatMap((text) => values.map((value) => text + value));
  }
  budget.left -= size;
  const isFixed = !uses.args && !uses.key;
  // Only the schema, and no value, may name the tag of all entries.
  const nonEmpty = texts.filter((text) => text !== '');
  return nonEmpty.map((text) => (text === ALL_TAGS && !isFixed ? '%2A' : normalTag(text)));
}

const hasText = (value: unknown): boolean => /^(?:string|number|bigint|boolean)$/.test(typeof value);

const textsOf = (values: readonly unknown[] | undefined): readonly string[] | undefined =>
  values?.every(hasText) === true ? values.map(String) : undefined;

const charactersOf = (texts: readonly string[]): number =>
  texts.reduce((total, { length }) => total + length, 0);

/** Follows a path through the members of objects and the items of lists; undefined if it leads to no value. */
function valuesAt(value: unknown, path: readonly string[]): readonly unknown[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value)) return value.flatMap((item) => valuesAt(item, path) ?? []);
  const [name, ...rest] = path;
  if (name === undefined) return [value];
  return typeof value === 'object'
    ? valuesAt((value as Readonly<Record<string, unknown>>)[name], rest)
    : undefined;
}
