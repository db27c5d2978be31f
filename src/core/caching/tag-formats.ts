import {
  type GraphQLField,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLSchema,
  isInterfaceType,
  isObjectType,
} from 'graphql';
import { ALL_TAGS, normalTag } from '../../cache/tags/tags.ts';
import { formatValue, isObject, isString, optionError } from '../../options/rules.ts';
import { CACHE_OPTIONS } from '../../options/scopes.ts';
import { directivesOf, type SchemaElement } from '../schema/directives.ts';

/** A placeholder such as `{$args.id}` or `{$key.owner.id}`. */
interface Placeholder {
  readonly source: 'args' | 'key';
  readonly path: readonly string[];
}

/** A format of `@cacheTag`: texts and placeholders. */
export interface TagFormat {
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
  let known = formats.get(element);
  if (known === undefined) {
    const given = directivesOf(element, DIRECTIVE).flatMap((use) => (isObject(use) ? use['format'] : use));
    known = given.length === 0 ? NONE : given.map((format) => parseFormat(format, element.name));
    formats.set(element, known);
  }
  return known;
}

type FieldsType = GraphQLObjectType | GraphQLInterfaceType;

/** The formats of a type and of its interfaces. */
export const typeFormats = (type: FieldsType): readonly TagFormat[] => [
  ...tagFormatsOf(type),
  ...type.getInterfaces().flatMap(tagFormatsOf),
];

/** The formats of a field, also of the definitions in the interfaces of its type. */
export const fieldFormats = (
  type: FieldsType,
  definition: GraphQLField<unknown, unknown>,
): readonly TagFormat[] => [
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
  let known = tagged.get(schema);
  if (known === undefined) {
    const elements = Object.values(schema.getTypeMap())
      .filter((type) => isObjectType(type) || isInterfaceType(type))
      .flatMap((type) => [type, ...Object.values(type.getFields())]);
    known = elements.filter((element) => tagFormatsOf(element).length > 0).length > 0;
    tagged.set(schema, known);
  }
  return known;
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

export const createTagBudget = (): TagBudget => ({ left: MAX_CHARACTERS });

/** Returns the values of a placeholder; undefined if there are none. */
type ReadValues = (path: readonly string[]) => readonly unknown[] | undefined;

/**
 * Returns the tags of a format: one per combination of the values of its placeholders; none for an empty text.
 * Undefined if a value is missing or has no text, or if the tags are larger than the budget.
 */
export function expandFormat(
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
export function valuesAt(value: unknown, path: readonly string[]): readonly unknown[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value)) return value.flatMap((item) => valuesAt(item, path) ?? []);
  const [name, ...rest] = path;
  if (name === undefined) return [value];
  return typeof value === 'object'
    ? valuesAt((value as Readonly<Record<string, unknown>>)[name], rest)
    : undefined;
}
