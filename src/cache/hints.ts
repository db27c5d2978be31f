import {
  type DirectiveNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  isInterfaceType,
  isObjectType,
  Kind,
  type NamedTypeNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { CacheHint, FieldCachePolicy } from '../../types/caching.ts';
import { directivesOf, type SchemaElement } from '../execution/directives.ts';
import type { CachedOperation } from '../execution/types.ts';
import {
  ACCEPTED_SECONDS,
  formatValue,
  isObject,
  isOneOf,
  isSeconds,
  isVary,
  optionError,
} from '../options/rules.ts';
import { CACHING_OPTIONS } from '../options/scopes.ts';

const isScope = isOneOf(undefined, 'PUBLIC', 'PRIVATE');
const isLifetime = (value: unknown): boolean => value === undefined || isSeconds(value);

/**
 * Checks a hint. A wrong lifetime must not be ignored: the default could be longer.
 *
 * @throws TypeError (code `ERR_OPTION`) that names `place`.
 */
export function assertHint(hint: unknown, place: string): asserts hint is CacheHint {
  const fail = (member: string, value: unknown, accepted: string): TypeError =>
    optionError(CACHING_OPTIONS, `${place}: ${member} is ${formatValue(value)}; accepted: ${accepted}`);
  if (!isObject(hint)) throw fail('the hint', hint, 'an object such as { maxAge: 60 }');
  const { maxAge, sharedMaxAge, scope, vary } = hint;
  if (!isLifetime(maxAge)) throw fail('maxAge', maxAge, ACCEPTED_SECONDS);
  if (!isLifetime(sharedMaxAge)) throw fail('sharedMaxAge', sharedMaxAge, ACCEPTED_SECONDS);
  if (!isScope(scope)) throw fail('scope', scope, "'PUBLIC' or 'PRIVATE'");
  if (vary !== undefined && !isVary(vary)) {
    throw fail('vary', vary, "a list of names of request headers such as 'Accept-Language'");
  }
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** A hint that is being collected. */
export type HintState = Mutable<Pick<FieldCachePolicy, 'maxAge' | 'sharedMaxAge' | 'scope' | 'vary'>>;

/** Creates a hint without members. */
export const emptyHint = (): HintState => ({
  maxAge: undefined,
  sharedMaxAge: undefined,
  scope: undefined,
  vary: undefined,
});

/** Replaces members of a hint. A new `maxAge` without `sharedMaxAge` also applies to shared caches. */
export function replaceHint(state: HintState, { maxAge, sharedMaxAge, scope, vary }: CacheHint): void {
  if (maxAge !== undefined) {
    state.maxAge = maxAge;
    state.sharedMaxAge = undefined;
  }
  if (sharedMaxAge !== undefined) state.sharedMaxAge = sharedMaxAge;
  if (scope !== undefined) state.scope = scope;
  state.vary = union(state.vary, vary);
}

/** Combines hints: the lower lifetimes and `PRIVATE` win. */
export function restrictHint(state: HintState, { maxAge, sharedMaxAge, scope, vary }: CacheHint): void {
  const shared = lower(state.sharedMaxAge ?? state.maxAge, sharedMaxAge ?? maxAge);
  state.maxAge = lower(state.maxAge, maxAge);
  state.sharedMaxAge = shared;
  if (scope !== undefined && state.scope !== 'PRIVATE') state.scope = scope;
  state.vary = union(state.vary, vary);
}

function lower(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.min(a, b);
}

/** Adds header names. A dependency is never removed. */
function union(
  names: readonly string[] | undefined,
  added: readonly string[] | undefined,
): readonly string[] | undefined {
  if (added === undefined || added.length === 0) return names;
  return [...new Set([...(names ?? []), ...added.map((name) => name.toLowerCase())])];
}

/** The hint of a type or field in the schema. With `inheritMaxAge` it has no lifetimes. */
interface Annotation extends CacheHint {
  readonly inheritMaxAge?: boolean | undefined;
}

const DIRECTIVE = 'cacheControl';
const NONE: Annotation = Object.freeze({});
const annotations = new WeakMap<object, Annotation>();

/**
 * Returns the hint of a type or field: of `@cacheControl` in SDL, or of `extensions` in schemas that are
 * created in code. The directive of a type precedes those of its extensions.
 *
 * @throws TypeError (code `ERR_OPTION`) for a wrong value.
 */
export function hintAnnotationOf(element: SchemaElement): Annotation {
  let annotation = annotations.get(element);
  if (annotation === undefined) {
    annotation = readAnnotation(element);
    annotations.set(element, annotation);
  }
  return annotation;
}

/**
 * Checks all hints of a schema.
 *
 * @throws TypeError (code `ERR_OPTION`) for a wrong value.
 */
export function assertAnnotations(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isCompositeType(type)) continue;
    hintAnnotationOf(type);
    if (isObjectType(type) || isInterfaceType(type))
      Object.values(type.getFields()).forEach(hintAnnotationOf);
  }
}

function readAnnotation(element: SchemaElement): Annotation {
  const [given] = directivesOf(element, DIRECTIVE);
  if (given === undefined) return NONE;
  assertHint(given, `@${DIRECTIVE} of "${element.name}"`);
  const { inheritMaxAge, maxAge, sharedMaxAge, scope, vary } = given as Annotation;
  return Object.freeze(
    inheritMaxAge === true ? { inheritMaxAge, scope, vary } : { maxAge, sharedMaxAge, scope, vary },
  );
}

type Field = GraphQLField<unknown, unknown>;

/** The static hints that a selected field adds to an operation. */
interface SelectedField {
  /** The hints of all object types that may have the field, combined. */
  readonly hint: CacheHint;
  /** The object types that have the field. */
  readonly objects: readonly GraphQLObjectType[];
  /** The definitions of the field in these types. */
  readonly definitions: readonly Field[];
  /** The composite types of its values. */
  readonly types: ReadonlySet<GraphQLCompositeType>;
}

/** Introspection depends on options and requests, so it is never cacheable. */
const UNKNOWN_FIELD: SelectedField = { hint: { maxAge: 0 }, objects: [], definitions: [], types: new Set() };

/** The place of a field: the root type of the operation, or the type of a value. */
type FieldPlace = 'root' | 'nested';

/** The hints of fields, which do not depend on operations. */
export class SchemaHints {
  readonly #defaultMaxAge: number;
  readonly #fields = new WeakMap<Field, CacheHint>();
  readonly #rootFields = new WeakMap<Field, CacheHint>();
  readonly #selected = new WeakMap<GraphQLSchema, Map<GraphQLCompositeType, Map<string, SelectedField>>>();

  constructor(defaultMaxAge: number) {
    this.#defaultMaxAge = defaultMaxAge;
  }

  /** Returns the hint of a field: its own, that of its type, and the default lifetime. */
  hintOf(definition: Field, place: FieldPlace): CacheHint {
    const isRoot = place === 'root';
    const cache = isRoot ? this.#rootFields : this.#fields;
    let hint = cache.get(definition);
    if (hint === undefined) {
      const { state, inheritMaxAge } = staticHint(definition);
      this.addDefault(state, definition, { isRoot, inheritMaxAge });
      hint = state;
      cache.set(definition, hint);
    }
    return hint;
  }

  /**
   * Adds the default lifetime to a field without one. Leaf fields have the lifetime of their parents, except
   * at the root.
   */
  addDefault(
    state: HintState,
    { type }: Field,
    { isRoot, inheritMaxAge }: { readonly isRoot: boolean; readonly inheritMaxAge: boolean },
  ): void {
    if (state.maxAge !== undefined) return;
    if (isRoot || (isCompositeType(getNamedType(type)) && !inheritMaxAge)) {
      restrictHint(state, { maxAge: this.#defaultMaxAge, sharedMaxAge: state.sharedMaxAge });
    }
  }

  /** Returns a field of a type by name. For an abstract type it combines all object types. */
  select(schema: GraphQLSchema, type: GraphQLCompositeType, name: string): SelectedField {
    const types = getOrCreate(this.#selected, schema, () => new Map());
    const fields = getOrCreate(types, type, () => new Map());
    return getOrCreate(fields, name, () => this.#combine(schema, type, name));
  }

  /** Returns a field of the root type of an operation. */
  selectRoot(type: GraphQLObjectType, name: string): SelectedField {
    const definition = type.getFields()[name];
    if (definition === undefined) return UNKNOWN_FIELD;
    return {
      hint: this.hintOf(definition, 'root'),
      objects: [type],
      definitions: [definition],
      types: valueTypes([definition]),
    };
  }

  #combine(schema: GraphQLSchema, type: GraphQLCompositeType, name: string): SelectedField {
    const possible = isObjectType(type) ? [type] : schema.getPossibleTypes(type);
    const objects = possible.filter((object) => object.getFields()[name] !== undefined);
    const definitions = objects.map((object) => object.getFields()[name] as Field);
    if (definitions.length === 0) return UNKNOWN_FIELD;
    const hint = emptyHint();
    for (const definition of definitions) restrictHint(hint, this.hintOf(definition, 'nested'));
    return { hint, objects, definitions, types: valueTypes(definitions) };
  }
}

function getOrCreate<Key, Value>(
  values: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  create: () => Value,
): Value {
  let value = values.get(key);
  if (value === undefined) {
    value = create();
    values.set(key, value);
  }
  return value;
}

function valueTypes(definitions: readonly Field[]): ReadonlySet<GraphQLCompositeType> {
  const named: GraphQLNamedType[] = definitions.map(({ type }) => getNamedType(type));
  return new Set(named.filter(isCompositeType));
}

/** The hint of a field without the default lifetime. The field's own hint precedes that of its type. */
export function staticHint(definition: Field): {
  readonly state: HintState;
  readonly inheritMaxAge: boolean;
} {
  const state = emptyHint();
  const type = getNamedType(definition.type);
  const ofType = isCompositeType(type) ? hintAnnotationOf(type) : undefined;
  if (ofType !== undefined) replaceHint(state, ofType);
  const own = hintAnnotationOf(definition);
  // A lifetime of the type precedes `inheritMaxAge` of the field.
  const inheritsByField = own.inheritMaxAge === true && state.maxAge === undefined;
  replaceHint(state, own);
  return { state, inheritMaxAge: inheritsByField || ofType?.inheritMaxAge === true };
}

/** The values of the variables in `@skip` and `@include`; a variable that is missing counts as either value. */
export type ConditionValues = ReadonlyMap<string, boolean>;

/** Receives each selected field of an operation at least once. */
export type VisitField = (field: SelectedField, isRoot: boolean, node: FieldNode) => void;

/**
 * Visits the fields that an execution may resolve, for every object type that a value may have. Each
 * selection set is visited once per type, so the time is linear in the document.
 */
export function visitSelectedFields(
  operation: CachedOperation,
  hints: SchemaHints,
  values: ConditionValues,
  visitField: VisitField,
): void {
  const rootType = operation.schema.getRootType(operation.operation.operation);
  if (rootType === undefined || rootType === null) return;
  new Walk(operation, hints, values, visitField).visit(rootType, operation.operation.selectionSet, 'root');
}

class Walk {
  readonly #schema: GraphQLSchema;
  readonly #fragments = new Map<string, FragmentDefinitionNode>();
  readonly #hints: SchemaHints;
  readonly #values: ConditionValues;
  readonly #visitField: VisitField;
  readonly #visited = {
    root: new Map<GraphQLCompositeType, Set<SelectionSetNode>>(),
    nested: new Map<GraphQLCompositeType, Set<SelectionSetNode>>(),
  };

  constructor(
    { schema, document }: CachedOperation,
    hints: SchemaHints,
    values: ConditionValues,
    visitField: VisitField,
  ) {
    this.#schema = schema;
    this.#hints = hints;
    this.#values = values;
    this.#visitField = visitField;
    for (const definition of document.definitions) {
      if (definition.kind === Kind.FRAGMENT_DEFINITION) {
        this.#fragments.set(definition.name.value, definition);
      }
    }
  }

  visit(type: GraphQLCompositeType, selectionSet: SelectionSetNode, place: FieldPlace): void {
    const visited = this.#visited[place];
    let sets = visited.get(type);
    if (sets === undefined) {
      sets = new Set();
      visited.set(type, sets);
    }
    if (sets.has(selectionSet)) return;
    sets.add(selectionSet);
    for (const node of selectionSet.selections) {
      if (isIncluded(node.directives, this.#values)) this.#visitSelection(type, node, place);
    }
  }

  #visitSelection(type: GraphQLCompositeType, node: SelectionNode, place: FieldPlace): void {
    if (node.kind === Kind.FIELD) {
      const name = node.name.value;
      if (name === '__typename') return;
      const isRoot = place === 'root';
      const field =
        isRoot && isObjectType(type)
          ? this.#hints.selectRoot(type, name)
          : this.#hints.select(this.#schema, type, name);
      this.#visitField(field, isRoot, node);
      if (node.selectionSet === undefined) return;
      for (const valueType of field.types) this.visit(valueType, node.selectionSet, 'nested');
      return;
    }
    const fragment = node.kind === Kind.INLINE_FRAGMENT ? node : this.#fragments.get(node.name.value);
    if (fragment === undefined) return;
    const narrowed = this.#narrow(type, fragment.typeCondition);
    if (narrowed !== undefined) this.visit(narrowed, fragment.selectionSet, place);
  }

  /** The type of values in a fragment; undefined if it never applies. */
  #narrow(
    type: GraphQLCompositeType,
    typeCondition: NamedTypeNode | undefined,
  ): GraphQLCompositeType | undefined {
    if (typeCondition === undefined) return type;
    const condition = this.#schema.getType(typeCondition.name.value);
    if (condition === type || !isCompositeType(condition)) return type;
    if (!isObjectType(type)) return condition;
    return !isObjectType(condition) && this.#schema.isSubType(condition, type) ? type : undefined;
  }
}

function isIncluded(directives: readonly DirectiveNode[] = [], values: ConditionValues): boolean {
  return directives.every(({ name, arguments: [argument] = [] }) => {
    if (name.value !== 'skip' && name.value !== 'include') return true;
    const node = argument?.value;
    const value =
      node?.kind === Kind.VARIABLE
        ? values.get(node.name.value)
        : node?.kind === Kind.BOOLEAN
          ? node.value
          : undefined;
    return value === undefined || value === (name.value === 'include');
  });
}
