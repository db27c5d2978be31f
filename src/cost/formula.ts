import { type DirectiveNode, Kind, type OperationDefinitionNode, valueFromASTUntyped } from 'graphql';

/** The values of an operation's variables, as the client sent them. */
export type VariableValues = Readonly<Record<string, unknown>>;

/** A number, or a function of the variables if it depends on them. */
export type Formula = number | ((variables: VariableValues) => number);

/** The value of a formula. */
export const evaluate = (formula: Formula, variables: VariableValues): number =>
  typeof formula === 'number' ? formula : formula(variables);

/** The sum of formulas. Constant parts are added when the document is prepared. */
export function sum(parts: readonly Formula[]): Formula {
  let constant = 0;
  const variable: Exclude<Formula, number>[] = [];
  for (const part of parts) {
    if (typeof part === 'number') constant += part;
    else variable.push(part);
  }
  const [first] = variable;
  if (first === undefined) return constant;
  if (variable.length === 1 && constant === 0) return first;
  return (variables) => {
    let total = constant;
    for (const part of variable) total += part(variables);
    return total;
  };
}

/** The product of two formulas. */
export function product(left: Formula, right: Formula): Formula {
  if (left === 0 || right === 0) return 0;
  if (left === 1) return right;
  if (right === 1) return left;
  if (typeof left === 'number' && typeof right === 'number') return left * right;
  return (variables) => evaluate(left, variables) * evaluate(right, variables);
}

/** A formula without its negative values. */
export function notNegative(formula: Formula): Formula {
  if (typeof formula === 'number') return Math.max(0, formula);
  return (variables) => Math.max(0, formula(variables));
}

/**
 * The largest of several sums, each a list of indexes of `parts`. Each part is evaluated once, since the parts
 * of nested formulas would otherwise be evaluated exponentially often.
 */
export function largestSum(parts: readonly Formula[], sums: readonly (readonly number[])[]): Formula {
  const largestOf = (values: readonly number[]): number => {
    let result = 0;
    for (const indexes of sums) {
      let total = 0;
      for (const index of indexes) total += values[index] as number;
      result = Math.max(result, total);
    }
    return result;
  };
  const constants = parts.filter((part) => typeof part === 'number');
  if (constants.length === parts.length) return largestOf(constants);
  return (variables) => largestOf(parts.map((part) => evaluate(part, variables)));
}

/** 1 if `@skip` and `@include` keep a selection and 0 if they remove it. */
export function inclusionOf(directives: readonly DirectiveNode[] = []): Formula {
  let result: Formula = 1;
  for (const { name, arguments: [argument] = [] } of directives) {
    if (name.value !== 'skip' && name.value !== 'include') continue;
    const keeps = name.value === 'include';
    const node = argument?.value;
    if (node?.kind === Kind.BOOLEAN) result = product(result, node.value === keeps ? 1 : 0);
    else if (node?.kind === Kind.VARIABLE) {
      const variable = node.name.value;
      result = product(result, (variables) => ((variables[variable] === true) === keeps ? 1 : 0));
    }
  }
  return result;
}

/** The defaults of an operation's variables. */
export function defaultsOf({ variableDefinitions = [] }: OperationDefinitionNode): VariableValues {
  return Object.fromEntries(
    variableDefinitions.flatMap(({ variable, defaultValue }) =>
      defaultValue === undefined ? [] : [[variable.name.value, valueFromASTUntyped(defaultValue)]],
    ),
  );
}

/** Creates a formula that is evaluated with the defaults of variables that are not given. */
export function withDefaults(formula: Formula, defaults: VariableValues): Formula {
  if (typeof formula === 'number' || Object.keys(defaults).length === 0) return formula;
  return (variables) => evaluate(formula, { ...defaults, ...variables });
}
