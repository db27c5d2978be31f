import { type GraphQLSchema, isInterfaceType, isObjectType } from 'graphql';
import { normalTag } from '../../cache/tags/tags.ts';
import { formatValue } from '../../options/format-value.ts';
import { optionError } from '../../options/resolve-options.ts';
import { isObject, isString } from '../../options/rules.ts';
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
export function tagFormatsOf(element: SchemaElement): readonly TagFormat[] {
  let known = formats.get(element);
  if (known === undefined) {
    const given = directivesOf(element, DIRECTIVE).flatMap((use) => (isObject(use) ? use['format'] : use));
    known = given.length === 0 ? NONE : given.map((format) => parseFormat(format, element.name));
    formats.set(element, known);
  }
  return known;
}

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

/** Returns the value of a placeholder. */
type ReadValue = (path: readonly string[]) => unknown;

/** Returns the tags of a format: one per item for a placeholder with a list; undefined if a value is missing. */
export function expandFormat({ parts }: TagFormat, read: ReadValue): readonly string[] | undefined {
  let texts = [''];
  for (const part of parts) {
    const values = isString(part) ? [part] : textsOf(read(part.path));
    if (values === undefined) return undefined;
    texts = texts.flatMap((text) => values.map((value) => text + value));
  }
  return texts.map(normalTag);
}

function textsOf(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) {
    return /^(?:string|number|bigint|boolean)$/.test(typeof value) ? [String(value)] : undefined;
  }
  const texts = value.map((item) => textsOf(item)?.[0]);
  return texts.includes(undefined) ? undefined : texts.map(String);
}

/** Follows a path through the members of objects. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const name of path) {
    if (typeof at !== 'object' || at === null) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[name];
  }
  return at;
}
