import {
  type FieldNode,
  type GraphQLArgument,
  type GraphQLField,
  getArgumentValues,
  isEnumType,
  isNonNullType,
  specifiedScalarTypes,
  type ValueNode,
} from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import type { Execution } from './execution.ts';

export type Arguments = Record<string, unknown>;

/** By identity: a scalar of one's own may be called String. */
const BUILT_IN: ReadonlySet<unknown> = new Set(specifiedScalarTypes);

/** graphql 16 gives resolvers plain objects, 17 objects without a prototype. */
export const emptyArguments: () => Arguments = V17 ? () => Object.create(null) : () => ({});

/** As 17 declares it; 16 takes no notice of what it does not know. */
const argumentValues: (
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
  variables: Record<string, unknown>,
  fragmentVariables: undefined,
  hideSuggestions: boolean,
) => Arguments = getArgumentValues;

/** Where one argument comes from: a value known at compile time, or a variable. */
interface ArgumentSource {
  readonly name: string;
  readonly variable: string | undefined;
  readonly required: boolean;
  readonly value: unknown;
}

/**
 * How a field gets its arguments. Plain variables and constants of built-in types are read directly; everything else,
 * and everything that may be wrong, goes through graphql-js's own function, call by call.
 */
export function compileArguments(
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
): (ex: Execution) => Arguments {
  if (definition.args.length === 0) return emptyArguments;
  const coerce = (ex: Execution): Arguments =>
    argumentValues(definition, node, ex.variables, undefined, ex.program.settings.hideSuggestions);
  const sources = sourcesOf(definition, node);
  if (sources === undefined) return coerce;
  return (ex) => {
    const args = emptyArguments();
    for (const source of sources) {
      const { variable } = source;
      if (variable === undefined) args[source.name] = source.value;
      else {
        if (!Object.hasOwn(ex.values, variable)) return coerce(ex);
        const value = ex.values[variable];
        if (source.required && (value === null || value === undefined)) return coerce(ex);
        args[source.name] = value;
      }
    }
    return args;
  };
}

function sourcesOf(
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
): ArgumentSource[] | undefined {
  const constants = constantsOf(definition, node);
  if (constants === undefined) return undefined;
  const sources: ArgumentSource[] = [];
  for (const argument of definition.args) {
    const { name } = argument;
    const given = givenValue(node, name);
    const required = isNonNullType(argument.type);
    if (given?.kind === 'Variable') {
      sources.push({ name, variable: given.name.value, required, value: undefined });
    } else if (Object.hasOwn(constants, name)) {
      sources.push({ name, variable: undefined, required, value: constants[name] });
    }
  }
  return sources;
}

/** What the arguments that are no variables come to; undefined when that may differ from call to call, or fails. */
function constantsOf(definition: GraphQLField<unknown, unknown>, node: FieldNode): Arguments | undefined {
  const fixed = definition.args.filter(({ name }) => givenValue(node, name)?.kind !== 'Variable');
  if (!fixed.every(isConstant)) return undefined;
  try {
    return getArgumentValues({ ...definition, args: fixed }, node);
  } catch {
    return undefined;
  }
}

function isConstant({ type }: GraphQLArgument): boolean {
  // Lists and input objects are fresh in each call; custom scalars are code of the user's.
  const inner = isNonNullType(type) ? type.ofType : type;
  return isEnumType(inner) || BUILT_IN.has(inner);
}

function givenValue(node: FieldNode, name: string): ValueNode | undefined {
  return node.arguments?.find((argument) => argument.name.value === name)?.value;
}
