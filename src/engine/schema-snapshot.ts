import {
  GraphQLBoolean,
  type GraphQLField,
  GraphQLFloat,
  GraphQLID,
  GraphQLInt,
  type GraphQLNamedType,
  type GraphQLScalarType,
  GraphQLString,
  isLeafType,
} from 'graphql';
import { V17 } from '../execution/graphql-version.ts';

type InputFunctions = Readonly<Record<string, unknown>>;

/** The functions of a scalar that read variables and literals. */
const COERCION_FUNCTIONS = V17 ? ['coerceInputValue', 'coerceInputLiteral'] : ['parseValue', 'parseLiteral'];

const functionsOf = (type: GraphQLScalarType): readonly unknown[] =>
  COERCION_FUNCTIONS.map((name) => (type as object as InputFunctions)[name]);

const originals: ReadonlyMap<unknown, readonly unknown[]> = new Map(
  [GraphQLString, GraphQLID, GraphQLInt, GraphQLFloat, GraphQLBoolean].map((type) => [
    type,
    functionsOf(type),
  ]),
);

/**
 * Whether a type is a built-in scalar with its original input functions. Applications replace these functions
 * to sanitize input, so the engine may skip only the original ones.
 */
export function readsInputUnchanged(type: unknown): boolean {
  const functions = originals.get(type);
  if (functions === undefined) return false;
  return functionsOf(type as GraphQLScalarType).every((value, index) => value === functions[index]);
}

/** The functions of types that an execution calls. graphql 17 renamed some of them. */
interface TypeFunctions {
  readonly resolveType?: unknown;
  readonly isTypeOf?: unknown;
  readonly serialize?: unknown;
  readonly coerceOutputValue?: unknown;
  readonly parseValue?: unknown;
  readonly coerceInputValue?: unknown;
  readonly coerceInputLiteral?: unknown;
  readonly parseLiteral?: unknown;
}

type Read = (type: TypeFunctions) => unknown;

// Property accesses by constant names are several times as fast as accesses by variable names.
const outputOf: Read = V17 ? (type) => type.coerceOutputValue : (type) => type.serialize;
const inputOf: Read = V17 ? (type) => type.coerceInputValue : (type) => type.parseValue;
const literalOf: Read = V17 ? (type) => type.coerceInputLiteral : (type) => type.parseLiteral;

/**
 * Stores the functions of a schema that an operation was compiled with. A function that is replaced later (a
 * guard, a tracer, a sanitizer) has to take effect with the next execution, as with graphql-js.
 */
export class SchemaSnapshot {
  readonly #fields: GraphQLField<unknown, unknown>[] = [];
  readonly #resolvers: unknown[] = [];
  readonly #composites: Stored[] = [];
  readonly #leaves: Stored[] = [];
  readonly #inputs: Stored[] = [];
  readonly #known = new Set<object>();
  readonly #knownInputs = new Set<object>();

  addField(definition: GraphQLField<unknown, unknown>): void {
    if (this.#known.has(definition)) return;
    this.#known.add(definition);
    this.#fields.push(definition);
    this.#resolvers.push(definition.resolve);
  }

  addOutputType(type: GraphQLNamedType): void {
    if (this.#known.has(type)) return;
    this.#known.add(type);
    const functions = type as TypeFunctions;
    if (isLeafType(type))
      this.#leaves.push({ type: functions, first: outputOf(functions), second: undefined });
    else this.#composites.push({ type: functions, first: functions.resolveType, second: functions.isTypeOf });
  }

  addInputType(type: GraphQLNamedType): void {
    if (this.#knownInputs.has(type) || !isLeafType(type)) return;
    this.#knownInputs.add(type);
    const functions = type as TypeFunctions;
    this.#inputs.push({ type: functions, first: inputOf(functions), second: literalOf(functions) });
  }

  /** Whether the schema still has these functions. Called for each execution. */
  isCurrent(): boolean {
    const fields = this.#fields;
    const resolvers = this.#resolvers;
    for (let i = 0; i < fields.length; i++) {
      if ((fields[i] as GraphQLField<unknown, unknown>).resolve !== resolvers[i]) return false;
    }
    for (const { type, first } of this.#leaves) if (outputOf(type) !== first) return false;
    for (const { type, first, second } of this.#composites) {
      if (type.resolveType !== first || type.isTypeOf !== second) return false;
    }
    for (const { type, first, second } of this.#inputs) {
      if (inputOf(type) !== first || literalOf(type) !== second) return false;
    }
    return true;
  }
}

/** A type with the functions that it had. */
interface Stored {
  readonly type: TypeFunctions;
  readonly first: unknown;
  readonly second: unknown;
}
