import { tracingChannel } from 'node:diagnostics_channel';
import { type DocumentNode, type GraphQLSchema, type OperationDefinitionNode, visit } from 'graphql';
import { V17 } from '../execution/graphql-version.ts';

const INCREMENTAL = new Set(['defer', 'stream']);
const NO_PROPAGATION = 'experimental_disableErrorPropagation';

/** Whether graphql-js itself has to execute a document, for what we do not do: decided once, when it is prepared. */
export function needsGraphqlJs(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): boolean {
  if (schema.getRootType(operation.operation) === undefined) return true;
  if (operation.directives?.some(({ name }) => name.value === NO_PROPAGATION) === true) return true;
  if (V17 && [...INCREMENTAL].some((name) => schema.getDirective(name) != null)) return true;
  let found = false;
  visit(document, {
    Directive: ({ name }) => {
      if (INCREMENTAL.has(name.value)) found = true;
    },
    FragmentDefinition: (node) => {
      if ('variableDefinitions' in node && node.variableDefinitions !== undefined) found ||= hasItems(node);
    },
  });
  return found;
}

function hasItems({
  variableDefinitions,
}: {
  variableDefinitions?: readonly unknown[] | undefined;
}): boolean {
  return variableDefinitions !== undefined && variableDefinitions.length > 0;
}

/** graphql 17 tells tracers of each execution and each resolver. Who listens shall hear of them. */
const channels = V17
  ? ['execute', 'execute:variableCoercion', 'execute:rootSelectionSet', 'resolve'].map((name) =>
      tracingChannel(`graphql:${name}`),
    )
  : [];

/** Whether somebody traces executions at this moment. */
export function isTraced(): boolean {
  for (const channel of channels) if (channel.hasSubscribers) return true;
  return false;
}
