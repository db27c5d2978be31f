import { type DocumentNode, type GraphQLSchema, type OperationDefinitionNode, visit } from 'graphql';

const INCREMENTAL_DIRECTIVES = new Set(['defer', 'stream']);
const NO_PROPAGATION_DIRECTIVE = 'experimental_disableErrorPropagation';

/**
 * Whether graphql-js has to execute an operation, because it uses a feature that the engine does not
 * implement.
 */
export function needsGraphqlJs(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): boolean {
  if (schema.getRootType(operation.operation) === undefined) return true;
  if (operation.directives?.some(({ name }) => name.value === NO_PROPAGATION_DIRECTIVE) === true) return true;
  let found = false;
  visit(document, {
    Directive: ({ name }) => {
      if (INCREMENTAL_DIRECTIVES.has(name.value)) found = true;
    },
    FragmentDefinition: (node) => {
      if (hasVariables(node)) found = true;
    },
  });
  return found;
}

/** Whether a fragment has arguments (graphql 17, experimental). */
function hasVariables(fragment: { variableDefinitions?: readonly unknown[] | undefined }): boolean {
  return fragment.variableDefinitions !== undefined && fragment.variableDefinitions.length > 0;
}
