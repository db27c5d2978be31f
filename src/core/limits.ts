import {
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type FragmentSpreadNode,
  type GraphQLError,
  type GraphQLSchema,
  getIntrospectionQuery,
  type InlineFragmentNode,
  introspectionTypes,
  isAbstractType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  parse,
  type SelectionSetNode,
  type TypeNode,
  type ValueNode,
  type VariableDefinitionNode,
} from 'graphql';
import { fragmentsOf } from '../execution/document.ts';
import { refusalError } from '../execution/graphql-error.ts';
import { UPLOADED } from '../http/body.ts';
import { HttpError } from '../http/reply.ts';
import { byOption } from '../options/rules.ts';
import { getOrCreate } from '../options/values.ts';
import type { DocumentLimitSettings } from './options.ts';

/** The size of one operation; a fragment counts at each spread. */
export interface DocumentSize {
  fields: number;
  /** Fields, spreads and inline fragments. Validation visits each of them. */
  selections: number;
  rootFields: number;
  aliases: number;
  directives: number;
  depth: number;
  /** Levels below `__schema` and `__type`, which have a separate limit. */
  introspection: number;
  /** Aliases of `__schema`, and aliases below it and `__type`. Each alias repeats the output of the whole schema. */
  introspectionAliases: number;
  /** Levels of any kind: selection sets, spreads, literals. */
  nesting: number;
}

/** Introspection queries usually have nine levels of `ofType`; some tools send fifteen. */
const MAX_INTROSPECTION_DEPTH = 25;
/** A fragment on one of them selects below `__schema` or `__type`, or validation refuses it. */
const INTROSPECTION_TYPES: ReadonlySet<string> = new Set(introspectionTypes.map(({ name }) => name));
/** An operation may have this many directives, or one for each of so many aliases. */
const MIN_DIRECTIVES = 200;
const ALIASES_PER_DIRECTIVE = 5;
/** The introspection queries of tools have no aliases. */
const MAX_INTROSPECTION_ALIASES = 10;
/** Each operation of a document is measured with all its fragments. */
const MAX_OPERATIONS = 200;
/** Levels of any kind per level of fields, because inline fragments and spreads nest without a field. */
const NESTING_PER_DEPTH = 4;
const MAX_NESTING = 500;
/** Selections per field that the limit allows: a spread usually has several fields. */
const SELECTIONS_PER_FIELD = 2;
/** Pairs of fields with the same name in the same place, for each field that the limit allows. */
const MERGES_PER_FIELD = 2;
const TOKENS_PER_FRAGMENT = 10;

/** The characters that a document may have, with comments, which are no tokens. */
export const maxCharacters = ({ tokens }: DocumentLimitSettings): number => Math.max(100_000, tokens * 20);

/**
 * Measures the operations of a parsed document before validation, which can take very long for a malicious document. Returns the
 * highest size of any operation. Each fragment is measured once, so the walk is linear where the size is exponential.
 *
 * @throws GraphQLError that names the limit.
 */
export function measure(document: DocumentNode, limits: DocumentLimitSettings): DocumentSize {
  const max: DocumentSize = {
    ...limits,
    directives: Math.max(MIN_DIRECTIVES, Math.floor(limits.aliases / ALIASES_PER_DIRECTIVE)),
    introspection: MAX_INTROSPECTION_DEPTH,
    introspectionAliases: MAX_INTROSPECTION_ALIASES,
    selections: limits.fields * SELECTIONS_PER_FIELD,
    nesting: Math.min(Math.max(limits.depth, MAX_INTROSPECTION_DEPTH) * NESTING_PER_DEPTH, MAX_NESTING),
  };
  const meter = createMeter(document, max.nesting);
  const highest = emptySize();
  const count = (kind: string): number => document.definitions.filter((node) => node.kind === kind).length;
  const maxFragments = Math.floor(limits.tokens / TOKENS_PER_FRAGMENT);
  if (count('FragmentDefinition') > maxFragments) {
    throw limitExceeded('fragments', maxFragments, 'The document');
  }
  if (count('OperationDefinition') > MAX_OPERATIONS) {
    throw limitExceeded('operations', MAX_OPERATIONS, 'The document');
  }
  for (const definition of document.definitions) {
    if (definition.kind !== 'OperationDefinition' && definition.kind !== 'FragmentDefinition') continue;
    const isBelow = definition.kind === 'FragmentDefinition' && isOnIntrospection(definition);
    const size = meter.sizeOf(definition.selectionSet, 1, isBelow);
    countDirectives(size, definition.directives, max.nesting);
    if (definition.kind === 'FragmentDefinition') size.rootFields = 0;
    else countVariables(size, definition.variableDefinitions, max.nesting);
    for (const name of Object.keys(highest) as (keyof DocumentSize)[]) {
      if (size[name] > max[name]) throw limitExceeded(name, max[name]);
      highest[name] = Math.max(highest[name], size[name]);
    }
  }
  // Checked last, since the limit of fields bounds the work of this check.
  const maxMerges = limits.fields * MERGES_PER_FIELD;
  if (countOverlappingFields(document, maxMerges, meter.isCyclic()) > maxMerges) {
    throw limitExceeded('merges', maxMerges);
  }
  return highest;
}

const emptySize = (): DocumentSize => ({
  fields: 0,
  selections: 0,
  rootFields: 0,
  aliases: 0,
  directives: 0,
  depth: 0,
  introspection: 0,
  introspectionAliases: 0,
  nesting: 0,
});

const isOnIntrospection = (definition: Pick<InlineFragmentNode, 'typeCondition'>): boolean =>
  INTROSPECTION_TYPES.has(definition.typeCondition?.name.value ?? '');

/** The size of a fragment that is being measured: a cycle of fragments ends here. */
const OPEN: DocumentSize = emptySize();

/**
 * Creates the functions that measure the selection sets of one document; `level` bounds their recursion. `isBelow`: the
 * selections are below `__schema` or `__type`.
 */
function createMeter(document: DocumentNode, maxNesting: number) {
  const definitions = fragmentsOf(document);
  const fragments = new Map<string, DocumentSize>();
  let isCyclic = false;

  function sizeOf(set: SelectionSetNode, level: number, isBelow: boolean): DocumentSize {
    if (level > maxNesting) throw limitExceeded('nesting', maxNesting);
    const size = emptySize();
    for (const selection of set.selections) {
      size.selections += 1;
      countDirectives(size, selection.directives, maxNesting);
      if (selection.kind === 'Field') countField(size, selection, level, isBelow);
      else {
        const below = sizeOfFragment(selection, level, isBelow);
        add(size, below);
        // The fields of a fragment are fields of this level.
        size.rootFields += below.rootFields;
      }
    }
    size.nesting += 1;
    return size;
  }

  function countField(size: DocumentSize, field: FieldNode, level: number, isBelow: boolean): void {
    size.fields += 1;
    size.rootFields += 1;
    if (field.alias !== undefined) size.aliases += 1;
    for (const argument of field.arguments ?? []) {
      size.nesting = Math.max(size.nesting, depthOfValue(argument.value, maxNesting));
    }
    const name = field.name.value;
    const isRoot = name === '__schema' || name === '__type';
    const set = field.selectionSet;
    const below = set === undefined ? emptySize() : sizeOf(set, level + 1, isBelow || isRoot);
    if (!isBelow) below.depth += 1;
    if (isBelow || isRoot) below.introspection += 1;
    if (isRoot) {
      below.introspectionAliases = below.aliases;
      if (name === '__schema' && field.alias !== undefined) below.introspectionAliases += 1;
    }
    add(size, below);
  }

  function sizeOfFragment(
    selection: InlineFragmentNode | FragmentSpreadNode,
    level: number,
    isBelow: boolean,
  ): DocumentSize {
    if (selection.kind === 'InlineFragment') {
      return sizeOf(selection.selectionSet, level + 1, isBelow || isOnIntrospection(selection));
    }
    const name = selection.name.value;
    let size = fragments.get(name);
    isCyclic ||= size === OPEN;
    if (size === undefined) {
      fragments.set(name, OPEN);
      const definition = definitions.get(name);
      size =
        definition === undefined
          ? emptySize()
          : sizeOf(definition.selectionSet, level + 1, isOnIntrospection(definition));
      countDirectives(size, definition?.directives, maxNesting);
      fragments.set(name, size);
    }
    return size;
  }

  /** Whether one of the fragments so far spreads itself, directly or through others. */
  return { sizeOf, isCyclic: () => isCyclic };
}

function countVariables(
  size: DocumentSize,
  variables: readonly VariableDefinitionNode[] | undefined,
  maxNesting: number,
): void {
  for (const { directives, defaultValue, type } of variables ?? []) {
    countDirectives(size, directives, maxNesting);
    const value = defaultValue === undefined ? 0 : depthOfValue(defaultValue, maxNesting);
    size.nesting = Math.max(size.nesting, value, depthOfType(type));
  }
}

/** Adds the size of the selections below, except their root fields. */
function add(size: DocumentSize, below: DocumentSize): void {
  size.fields += below.fields;
  size.selections += below.selections;
  size.aliases += below.aliases;
  size.directives += below.directives;
  size.introspectionAliases += below.introspectionAliases;
  size.depth = Math.max(size.depth, below.depth);
  size.introspection = Math.max(size.introspection, below.introspection);
  size.nesting = Math.max(size.nesting, below.nesting);
}

function countDirectives(
  size: DocumentSize,
  directives: readonly DirectiveNode[] | undefined,
  maxNesting: number,
): void {
  for (const directive of directives ?? []) {
    size.directives += 1;
    for (const argument of directive.arguments ?? []) {
      size.nesting = Math.max(size.nesting, depthOfValue(argument.value, maxNesting));
    }
  }
}

/** Returns the levels of lists and objects in a literal; stops counting above `maxLevels`. */
function depthOfValue(value: ValueNode, maxLevels: number): number {
  if (value.kind !== 'ListValue' && value.kind !== 'ObjectValue') return 0;
  if (maxLevels <= 0) return 1;
  const parts = value.kind === 'ListValue' ? value.values : value.fields.map((field) => field.value);
  let deepest = 0;
  for (const part of parts) deepest = Math.max(deepest, depthOfValue(part, maxLevels - 1));
  return deepest + 1;
}

/** Returns the levels of lists in a type reference. */
function depthOfType(type: TypeNode): number {
  let levels = 0;
  for (let inner = type; inner.kind !== 'NamedType'; inner = inner.type) levels += 1;
  return levels;
}

/** Selections that are visited. Cyclic fragments have no end; other documents that reach this number are refused. */
const MAX_VISITS = 50_000;

/**
 * Counts the pairs of fields with the same response name in the same place, up to `maxPairs`; Infinity if the
 * document is too large to count. The validation rule OverlappingFieldsCanBeMerged compares each pair and all
 * fields below it; no other rule takes more than linear time.
 */
function countOverlappingFields(document: DocumentNode, maxPairs: number, isCyclic: boolean): number {
  const fragments = fragmentsOf(document);
  let pairs = 0;
  let visits = 0;

  function countPairs(sets: readonly SelectionSetNode[]): void {
    const fieldsByName = new Map<string, FieldNode[]>();
    const seenFragments = new Set<string>();
    for (const set of sets) collect(set, fieldsByName, seenFragments);
    for (const fields of fieldsByName.values()) {
      pairs += (fields.length * (fields.length - 1)) / 2;
      if (pairs > maxPairs || visits > MAX_VISITS) return;
      const below = fields.flatMap(({ selectionSet }) => selectionSet ?? []);
      if (below.length > 0) countPairs(below);
    }
  }

  function collect(
    set: SelectionSetNode,
    fieldsByName: Map<string, FieldNode[]>,
    seenFragments: Set<string>,
  ): void {
    for (const selection of set.selections) {
      visits += 1;
      if (visits > MAX_VISITS) return;
      if (selection.kind === 'Field') {
        const name = (selection.alias ?? selection.name).value;
        const fields = fieldsByName.get(name);
        if (fields === undefined) fieldsByName.set(name, [selection]);
        else fields.push(selection);
      } else if (selection.kind === 'InlineFragment') {
        collect(selection.selectionSet, fieldsByName, seenFragments);
      } else if (!seenFragments.has(selection.name.value)) {
        seenFragments.add(selection.name.value);
        const fragment = fragments.get(selection.name.value);
        if (fragment !== undefined) collect(fragment.selectionSet, fieldsByName, seenFragments);
      }
    }
  }

  for (const definition of document.definitions) {
    if (definition.kind === 'OperationDefinition' || definition.kind === 'FragmentDefinition') {
      countPairs([definition.selectionSet]);
    }
  }
  // The number of further pairs is unknown, and validation would visit them all, unless it reports a cycle of fragments.
  return visits > MAX_VISITS && !isCyclic ? Number.POSITIVE_INFINITY : pairs;
}

/** An introspection may return this many times the values of the standard query, which tools send. */
export const STANDARD_QUERIES = 3;
/** The limit of a small schema, so that handwritten queries are never refused. */
const MIN_VALUES = 20_000;
/** Characters of a description that count as one value. */
const CHARACTERS = 64;

/** A kind of list in the introspection schema: the sum of its items in the schema, and the most items of one parent. */
interface ListItems {
  total: number;
  longest: number;
}

interface Described {
  readonly description?: string | null | undefined;
}

/** Sizes of the lists by field of the introspection types; `description` counts characters. */
type Sizes = Readonly<Record<string, ListItems>>;

/**
 * The lists below `__schema` in which each item of the schema occurs once. Other fields refer to types, which
 * repeats them.
 */
const CONTAINED = new Set(['types', 'directives', 'fields', 'inputFields', 'enumValues', 'args']);

const cache = new WeakMap<GraphQLSchema, { readonly sizes: Sizes; readonly maxValues: number }>();

/**
 * Whether a valid document selects more values of the schema than an introspection may return. A document of
 * 500 bytes could nest the lists of `__schema` so that the response has millions of values.
 */
export function exceedsIntrospection(schema: GraphQLSchema, document: DocumentNode): boolean {
  const known = getOrCreate(cache, schema, () => {
    const sizes = new SchemaSizes(schema).sizes;
    const standard = countValues(parse(getIntrospectionQuery()), sizes, Number.POSITIVE_INFINITY);
    return { sizes, maxValues: Math.max(MIN_VALUES, STANDARD_QUERIES * standard) };
  });
  const { sizes, maxValues } = known;
  return countValues(document, sizes, maxValues) > maxValues;
}

/** Estimates the values that the introspection fields of a document return; stops above `maxValues`. */
function countValues(document: DocumentNode, sizes: Sizes, maxValues: number): number {
  const fragments = fragmentsOf(document);
  let values = 0;

  /** `count`: the parents of this selection set, 0 outside of introspection. `isComplete`: each item occurs once. */
  function visit({ selections }: SelectionSetNode, count: number, isComplete = false): void {
    for (const selection of selections) {
      if (values > maxValues) return;
      if (selection.kind !== 'Field') {
        const set = selection.kind === 'InlineFragment' ? selection : fragments.get(selection.name.value);
        if (set !== undefined) visit(set.selectionSet, count, isComplete);
        continue;
      }
      const name = selection.name.value;
      const isRoot = name === '__schema' || name === '__type';
      const size = count > 0 ? sizes[name] : undefined;
      const items = isRoot ? 1 : size === undefined ? count : isComplete ? size.total : count * size.longest;
      values += name === 'description' ? count + items / CHARACTERS : Math.max(count, items);
      if (selection.selectionSet === undefined) continue;
      visit(selection.selectionSet, items, name === '__schema' || (isComplete && CONTAINED.has(name)));
    }
  }

  for (const definition of document.definitions) {
    if (definition.kind === 'OperationDefinition') visit(definition.selectionSet, 0);
  }
  return values;
}

/** Counts the lists of a schema, with the introspection types, which `types` contains as well. */
class SchemaSizes {
  readonly sizes: Record<string, ListItems> = {};

  constructor(schema: GraphQLSchema) {
    const types = Object.values(schema.getTypeMap());
    this.#add('types', types.length);
    this.#add('directives', schema.getDirectives().length);
    for (const directive of schema.getDirectives()) {
      this.#describe(directive);
      this.#addAll('args', directive.args);
    }
    for (const type of types) {
      this.#describe(type);
      if (isObjectType(type) || isInterfaceType(type)) {
        const fields = Object.values(type.getFields());
        this.#addAll('fields', fields);
        for (const { args } of fields) this.#addAll('args', args);
        this.#add('interfaces', type.getInterfaces().length);
      }
      if (isAbstractType(type)) this.#add('possibleTypes', schema.getPossibleTypes(type).length);
      if (isInputObjectType(type)) this.#addAll('inputFields', Object.values(type.getFields()));
      if (isEnumType(type)) this.#addAll('enumValues', type.getValues());
    }
  }

  #add(name: string, items: number): void {
    this.sizes[name] ??= { total: 0, longest: 0 };
    const size = this.sizes[name];
    size.total += items;
    size.longest = Math.max(size.longest, items);
  }

  #addAll(name: string, items: readonly Described[]): void {
    this.#add(name, items.length);
    for (const item of items) this.#describe(item);
  }

  #describe({ description }: Described): void {
    this.#add('description', description?.length ?? 0);
  }
}

const MESSAGES = {
  fields: (max: number) => `has more than ${max} fields${byOption('limits.fields')}`,
  selections: (max: number) =>
    `has more than ${max} selections, counting each spread of a fragment${byOption('limits.fields')}`,
  rootFields: (max: number) => `has more than ${max} root fields${byOption('limits.rootFields')}`,
  aliases: (max: number) => `has more than ${max} aliases${byOption('limits.aliases')}`,
  directives: (max: number) => `has more than ${max} directives${byOption('limits.aliases')}`,
  depth: (max: number) => `is nested deeper than ${max} levels${byOption('limits.depth')}`,
  introspection: (max: number) => `nests introspection deeper than ${max} levels`,
  introspectionValues: (max: number) =>
    `would return more than ${max} times the values of the standard introspection query`,
  introspectionAliases: (max: number) => `has more than ${max} aliases in introspection`,
  nesting: (max: number) => `is nested deeper than ${max} levels, including fragments and literals`,
  fragments: (max: number) => `has more than ${max} fragments${byOption('limits.tokens')}`,
  operations: (max: number) => `has more than ${max} operations`,
  merges: (max: number) =>
    `has more than ${max} pairs of fields with the same name in the same place${byOption('limits.fields')}`,
};

/** Creates the error of a document above a limit; its code is `LIMIT_` and the name, such as `LIMIT_ROOT_FIELDS`. */
export function limitExceeded(
  limit: keyof typeof MESSAGES,
  max: number,
  subject = 'The operation',
): GraphQLError {
  const name = limit.replace(/[A-Z]/, '_$&').toUpperCase();
  return refusalError(`${subject} ${MESSAGES[limit](max)}`, `LIMIT_${name}`);
}

/** Members of one object, and levels of nesting, that the variables of one request may have. */
const MAX_MEMBERS = 2000;
const MAX_LEVELS = 200;

/** Flat variables with at most this many values are within every limit. */
const FEW_VALUES = 32;

/**
 * Refuses variables that are expensive to coerce. Coercion recurses and quotes whole objects in error
 * messages, so a limit of bytes does not bound its time. The variables of a batch count together; an uploaded
 * file counts as one value.
 *
 * @throws HttpError 400.
 */
export function assertVariableLimits(variables: readonly unknown[], maxValues: number): void {
  if (variables.length === 1 && isFlat(variables[0], maxValues)) return;
  const pending: { value: object; level: number }[] = [{ value: variables, level: 0 }];
  let values = 0;
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, level } = next;
    const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
    values += members.length;
    if (values > maxValues)
      throw variableLimit(`contain more than ${maxValues} values${byOption('limits.bodyBytes')}`);
    if (level > MAX_LEVELS) throw variableLimit(`are nested deeper than ${MAX_LEVELS} levels`);
    if (members !== value && members.length > MAX_MEMBERS) {
      throw variableLimit(`contain an object with more than ${MAX_MEMBERS} members`);
    }
    for (const member of members) {
      if (isListOrRecord(member)) pending.push({ value: member, level: level + 1 });
    }
  }
}

/** Whether the variables are a few values without lists and objects. */
function isFlat(variables: unknown, maxValues: number): boolean {
  let left = Math.min(FEW_VALUES, maxValues);
  for (const name in variables as Record<string, unknown>) {
    const value = (variables as Record<string, unknown>)[name];
    left -= 1;
    if (left <= 0 || (typeof value === 'object' && value !== null)) return false;
  }
  return true;
}

const variableLimit = (message: string): HttpError =>
  new HttpError(400, `The variables ${message}`, { code: 'LIMIT_VARIABLES' });

function isListOrRecord(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return true;
  if (Object.hasOwn(value, UPLOADED)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
