import {
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  isObjectType,
} from 'graphql';
import type { CacheHint } from '../../../types/caching.ts';
import { hintAnnotationOf } from './annotations.ts';
import { emptyHint, type HintState, replaceHint, restrictHint } from './hints.ts';

type Field = GraphQLField<unknown, unknown>;

/** The static hints that a selected field adds to an operation. */
export interface SelectedField {
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
export type FieldPlace = 'root' | 'nested';

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
