import {
  type FieldNode,
  type GraphQLArgument,
  type GraphQLField,
  getArgumentValues,
  getNamedType,
  isEnumType,
  isNonNullType,
  type ValueNode,
} from 'graphql';
import { V17 } from '../../execution/graphql-version.ts';
import type { Execution } from '../run/execution.ts';
import { readsInputUnchanged, type SchemaSnapshot } from '../run/schema-functions.ts';

type Arguments = Record<string, unknown>;

/** graphql 16 passes plain objects to resolvers, 17 objects without a prototype. */
export const emptyArguments: () => Arguments = V17 ? () => Object.create(null) : () => ({});

/** The signature of 17; 16 ignores the additional parameters. */
const coerceArguments: (
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
  variables: Record<string, unknown>,
  fragmentVariables: undefined,
  hideSuggestions: boolean,
) => Arguments = getArgumentValues;

/** The source of one argument: a value known at compile time, or a variable. */
interface ArgumentSource {
  readonly name: string;
  readonly variable: string | undefined;
  readonly required: boolean;
  readonly value: unknown;
}

/**
 * Compiles the arguments of a field. Plain variables and constants of built-in types are read directly.
 * graphql-js coerces everything else, and everything that may be invalid, in each execution.
 */
export function compileArguments(
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
  snapshot: SchemaSnapshot,
): (ex: Execution) => Arguments {
  if (definition.args.length === 0) return emptyArguments;
  for (const { type } of definition.args) snapshot.addInputType(getNamedType(type));
  const coerce = (ex: Execution): Arguments =>
    coerceArguments(definition, node, ex.variables, undefined, ex.program.settings.hideSuggestions);
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
    const given = valueNode(node, name);
    const required = isNonNullType(argument.type);
    if (given?.kind === 'Variable') {
      sources.push({ name, variable: given.name.value, required, value: undefined });
    } else if (Object.hasOwn(constants, name)) {
      sources.push({ name, variable: undefined, required, value: constants[name] });
    }
  }
  return sources;
}

/** The coerced arguments other than variables; undefined if they may differ between calls or are invalid. */
function constantsOf(definition: GraphQLField<unknown, unknown>, node: FieldNode): Arguments | undefined {
  const literal = definition.args.filter(({ name }) => valueNode(node, name)?.kind !== 'Variable');
  if (!literal.every(isConstant)) return undefined;
  try {
    return getArgumentValues({ ...definition, args: literal }, node);
  } catch {
    return undefined;
  }
}

function isConstant({ type }: GraphQLArgument): boolean {
  // Resolvers may modify lists and input objects, so each call needs a new one. Custom scalars run code of
  // the user.
  const inner = isNonNullType(type) ? type.ofType : type;
  return isEnumType(inner) || readsInputUnchanged(inner);
}

function valueNode(node: FieldNode, name: string): ValueNode | undefined {
  return node.arguments?.find((argument) => argument.name.value === name)?.value;
}
