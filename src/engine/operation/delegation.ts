import { visit } from 'graphql';
import type { ValidatedOperation } from '../../execution/types.ts';

const NO_PROPAGATION_DIRECTIVE = 'experimental_disableErrorPropagation';

/**
 * Whether graphql-js has to execute an operation, because it uses a feature that the engine does not
 * implement. Without incremental delivery, `@defer` and `@stream` have no effect.
 */
export function needsGraphqlJs({ schema, document, operation }: ValidatedOperation): boolean {
  if (schema.getRootType(operation.operation) === undefined) return true;
  if (operation.directives?.some(({ name }) => name.value === NO_PROPAGATION_DIRECTIVE) === true) return true;
  return document.definitions.some((node) => node.kind === 'FragmentDefinition' && hasVariables(node));
}

/** Whether graphql-js has to execute an operation in several payloads. */
export function needsGraphqlJsIncrementally(operation: ValidatedOperation): boolean {
  if (needsGraphqlJs(operation)) return true;
  let found = false;
  visit(operation.document, {
    Directive: ({ name, arguments: args = [] }) => {
      if (name.value === 'stream') found = true;
      // Validation requires a static label, but its rules may be replaced.
      if (name.value === 'defer' && args.some(isVariableLabel)) found = true;
    },
  });
  return found;
}

interface Argument {
  readonly name: { readonly value: string };
  readonly value: { readonly kind: string };
}

const isVariableLabel = ({ name, value }: Argument): boolean =>
  name.value === 'label' && value.kind === 'Variable';

/** Whether a fragment has arguments (graphql 17, experimental). */
function hasVariables(fragment: { variableDefinitions?: readonly unknown[] | undefined }): boolean {
  return fragment.variableDefinitions !== undefined && fragment.variableDefinitions.length > 0;
}
