import type { DocumentNode, ExecutionArgs, ExecutionResult } from 'graphql';
import * as graphql from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { ExecuteFunction } from '../../types/graphql.ts';

/** graphql 17 exports the two steps of `execute`; 16 does not. */
interface ExecuteSteps {
  validateExecutionArgs?: (args: ExecutionArgs) => readonly graphql.GraphQLError[] | object;
  executeRootSelectionSet?: (validated: object) => MaybePromise<ExecutionResult>;
}

const { validateExecutionArgs, executeRootSelectionSet } = graphql as ExecuteSteps;
const INCREMENTAL_DIRECTIVES = ['defer', 'stream'];

/** Documents without `@defer` and `@stream`, by the original documents. */
const withoutDirectives = new WeakMap<DocumentNode, DocumentNode>();

/**
 * Calls graphql-js's `execute`. In version 17 it throws if the schema defines `@defer` or `@stream`. A server
 * may ignore both directives and send one response, as 16 does, so they are removed from the document first.
 */
export const executeNonIncremental: ExecuteFunction = (args) => {
  const { schema, document } = args;
  if (validateExecutionArgs === undefined || executeRootSelectionSet === undefined) return execute(args);
  if (!INCREMENTAL_DIRECTIVES.some((name) => schema.getDirective(name) != null)) return execute(args);
  let stripped = withoutDirectives.get(document);
  if (stripped === undefined) {
    stripped = removeIncrementalDirectives(document);
    withoutDirectives.set(document, stripped);
  }
  const validated = validateExecutionArgs({ ...args, document: stripped });
  return Array.isArray(validated) ? { errors: validated } : executeRootSelectionSet(validated);
};

const execute = (args: ExecutionArgs): MaybePromise<ExecutionResult> =>
  graphql.execute(args) as MaybePromise<ExecutionResult>;

function removeIncrementalDirectives(document: DocumentNode): DocumentNode {
  return graphql.visit(document, {
    Directive: ({ name }) => (INCREMENTAL_DIRECTIVES.includes(name.value) ? null : undefined),
  });
}
