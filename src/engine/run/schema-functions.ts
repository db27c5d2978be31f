import {
  GraphQLBoolean,
  type GraphQLField,
  GraphQLFloat,
  GraphQLID,
  GraphQLInt,
  type GraphQLNamedType,
  type GraphQLScalarType,
  GraphQLString,
} from 'graphql';
import { V17 } from '../../execution/graphql-version.ts';

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
 * Whether a type is a built-in scalar with its original input functions. Applications replace these functions to sanitize
 * input, so the engine may skip only the original ones.
 */
export function readsInputUnchanged(type: unknown): boolean {
  const functions = originals.get(type);
  if (functions === undefined) return false;
  return functionsOf(type as GraphQLScalarType).every((value, index) => value === functions[index]);
}

/** The names of the functions of types that produce output or read input. graphql 17 renamed some of them. */
const OUTPUT_FUNCTIONS = ['resolveType', 'isTypeOf', V17 ? 'coerceOutputValue' : 'serialize'] as const;
const INPUT_FUNCTIONS = V17
  ? (['coerceInputValue', 'coerceInputLiteral', 'parseLiteral'] as const)
  : (['parseValue', 'parseLiteral'] as const);

type FunctionName = (typeof OUTPUT_FUNCTIONS)[number] | (typeof INPUT_FUNCTIONS)[number];
type Functions = { readonly [Name in FunctionName]?: unknown };

interface TypeFunction {
  readonly type: Functions;
  readonly name: FunctionName;
  readonly value: unknown;
}

/**
 * Stores the functions of a schema that an operation was compiled with. A function that is replaced later (a guard, a
 * tracer, a sanitizer) has to take effect with the next execution, as with graphql-js.
 */
export class SchemaSnapshot {
  readonly #fields: GraphQLField<unknown, unknown>[] = [];
  readonly #resolvers: unknown[] = [];
  readonly #functions: TypeFunction[] = [];
  readonly #knownFields = new Set<object>();
  readonly #knownOutputs = new Set<object>();
  readonly #knownInputs = new Set<object>();

  addField(definition: GraphQLField<unknown, unknown>): void {
    if (this.#knownFields.has(definition)) return;
    this.#knownFields.add(definition);
    this.#fields.push(definition);
    this.#resolvers.push(definition.resolve);
  }

  addOutputType(type: GraphQLNamedType): void {
    this.#add(type, this.#knownOutputs, OUTPUT_FUNCTIONS);
  }

  addInputType(type: GraphQLNamedType): void {
    this.#add(type, this.#knownInputs, INPUT_FUNCTIONS);
  }

  #add(type: GraphQLNamedType, known: Set<object>, names: readonly FunctionName[]): void {
    if (known.has(type)) return;
    known.add(type);
    const functions = type as Functions;
    for (const name of names) {
      if (name in type) this.#functions.push({ type: functions, name, value: functions[name] });
    }
  }

  /** Whether the schema still has these functions. Called for each execution. */
  isCurrent(): boolean {
    const fields = this.#fields;
    const resolvers = this.#resolvers;
    for (let i = 0; i < fields.length; i++) {
      if ((fields[i] as GraphQLField<unknown, unknown>).resolve !== resolvers[i]) return false;
    }
    for (const { type, name, value } of this.#functions) if (type[name] !== value) return false;
    return true;
  }
}
