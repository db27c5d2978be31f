import {
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  isInterfaceType,
  isObjectType,
} from 'graphql';
import type { CacheHint, FieldCachePolicy } from '../../types/caching.ts';
import { directivesOf, type SchemaElement } from '../execution/directives.ts';
import { type ConditionValues, visitFields } from '../execution/document.ts';
import type { ValidatedOperation } from '../execution/types.ts';
import { ACCEPTED_SECONDS, formatValue, isOneOf, isVary, optionError } from '../options/rules.ts';
import { CACHING_OPTIONS } from '../options/scopes.ts';
import { getOrCreate, isObject, isSeconds } from '../options/values.ts';

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
  return getOrCreate(annotations, element, () => readAnnotation(element));
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
  readonly objects: readonly GraphQLObjectType[];
  /** The definitions of the field in these types. */
  readonly definitions: readonly Field[];
  readonly types: ReadonlySet<GraphQLCompositeType>;
}

const NO_TYPES: ReadonlySet<GraphQLCompositeType> = new Set();

/** Introspection depends on options and requests, so it is never cacheable. */
const UNKNOWN_FIELD: SelectedField = { hint: { maxAge: 0 }, objects: [], definitions: [], types: NO_TYPES };

/** The hints of fields, which do not depend on operations. */
export class SchemaHints {
  readonly #defaultMaxAge: number;
  readonly #selected = new WeakMap<GraphQLSchema, Map<GraphQLCompositeType, Map<string, SelectedField>>>();

  constructor(defaultMaxAge: number) {
    this.#defaultMaxAge = defaultMaxAge;
  }

  /**
   * Returns the hint of a field: `hint` or its static one, and the default lifetime if that has none. Leaf fields have
   * the lifetime of their parents, except at the root.
   */
  hintOf(definition: Field, isRoot: boolean, hint: CacheHint = staticHint(definition)): CacheHint {
    if (hint.maxAge !== undefined) return hint;
    const isComposite = isCompositeType(getNamedType(definition.type));
    if (!isRoot && (!isComposite || inheritsMaxAge(definition))) return hint;
    const state = emptyHint();
    replaceHint(state, hint);
    restrictHint(state, { maxAge: this.#defaultMaxAge, sharedMaxAge: state.sharedMaxAge });
    return state;
  }

  /** Returns a field of a type by name. For an abstract type it combines all object types. */
  select(schema: GraphQLSchema, type: GraphQLCompositeType, name: string, isRoot: boolean): SelectedField {
    if (isRoot) return this.#combine([type as GraphQLObjectType], name, isRoot);
    const types = getOrCreate(this.#selected, schema, () => new Map());
    const fields = getOrCreate(types, type, () => new Map());
    return getOrCreate(fields, name, () =>
      this.#combine(isObjectType(type) ? [type] : schema.getPossibleTypes(type), name, isRoot),
    );
  }

  #combine(possible: readonly GraphQLObjectType[], name: string, isRoot: boolean): SelectedField {
    const objects = possible.filter((object) => object.getFields()[name] !== undefined);
    const definitions = objects.map((object) => object.getFields()[name] as Field);
    if (definitions.length === 0) return UNKNOWN_FIELD;
    const hint = emptyHint();
    for (const definition of definitions) restrictHint(hint, this.hintOf(definition, isRoot));
    const types = definitions.map(({ type }) => getNamedType(type));
    return { hint, objects, definitions, types: new Set(types.filter(isCompositeType)) };
  }
}

/** The hint of the type of a field's values. */
function typeHint({ type }: Field): Annotation {
  const named = getNamedType(type);
  return isCompositeType(named) ? hintAnnotationOf(named) : NONE;
}

/** The hint of a field without the default lifetime. The field's own hint precedes that of its type. */
export function staticHint(definition: Field): HintState {
  const state = emptyHint();
  replaceHint(state, typeHint(definition));
  replaceHint(state, hintAnnotationOf(definition));
  return state;
}

/** Whether a field has the lifetime of its parent. A lifetime of its type precedes `inheritMaxAge` of the field. */
function inheritsMaxAge(definition: Field): boolean {
  const { inheritMaxAge, maxAge } = typeHint(definition);
  const own = hintAnnotationOf(definition);
  return inheritMaxAge === true || (own.inheritMaxAge === true && maxAge === undefined);
}

/** Receives each selected field of an operation at least once. */
export type VisitField = (field: SelectedField, isRoot: boolean, node: FieldNode) => void;

/** Visits the fields that an execution may resolve, for every object type that a value may have. */
export function visitSelectedFields(
  operation: ValidatedOperation,
  hints: SchemaHints,
  values: ConditionValues,
  visitField: VisitField,
): void {
  const variable = (name: string): boolean | undefined => values.get(name);
  visitFields(operation, variable, (type, node, isRoot) => {
    if (node.name.value === '__typename') return NO_TYPES;
    const field = hints.select(operation.schema, type, node.name.value, isRoot && isObjectType(type));
    visitField(field, isRoot, node);
    return field.types;
  });
}
