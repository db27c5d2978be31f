import { type DirectiveNode, Kind, type OperationDefinitionNode, valueFromASTUntyped } from 'graphql';
import { evaluate, type Formula, product, type VariableValues } from './formula.ts';

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
