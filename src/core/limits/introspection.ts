import {
  type DocumentNode,
  type GraphQLSchema,
  getIntrospectionQuery,
  isAbstractType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  parse,
  type SelectionSetNode,
} from 'graphql';
import { fragmentsOf } from '../../execution/document.ts';

/** An introspection may return this many times the values of the standard query, which tools send. */
export const STANDARD_QUERIES = 3;
/** The limit of a small schema, so that handwritten queries are never refused. */
const MIN_VALUES = 20_000;
/** Characters of a description that count as one value. */
const CHARACTERS = 64;

/**
 * A kind of list in the introspection schema: the sum of its items in the schema, and the most items of one
 * parent.
 */
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
  let known = cache.get(schema);
  if (known === undefined) {
    const sizes = new SchemaSizes(schema).sizes;
    const standard = countValues(parse(getIntrospectionQuery()), sizes, Number.POSITIVE_INFINITY);
    known = { sizes, maxValues: Math.max(MIN_VALUES, STANDARD_QUERIES * standard) };
    cache.set(schema, known);
  }
  const { sizes, maxValues } = known;
  return countValues(document, sizes, maxValues) > maxValues;
}

/** Estimates the values that the introspection fields of a document return; stops above `maxValues`. */
function countValues(document: DocumentNode, sizes: Sizes, maxValues: number): number {
  const fragments = fragmentsOf(document);
  let values = 0;

  /**
   * `count`: the parents of this selection set, 0 outside of introspection. `isComplete`: each item occurs
   * once.
   */
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
