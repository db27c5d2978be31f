import type { DocumentNode, ExecutionArgs, ExecutionResult } from 'graphql';
import * as graphql from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { ExecuteFunction } from '../../types/graphql.ts';

/** What graphql 17 has and 16 has not: the two steps of `execute`. */
interface Steps {
  validateExecutionArgs?: (args: ExecutionArgs) => readonly graphql.GraphQLError[] | object;
  executeRootSelectionSet?: (checked: object) => MaybePromise<ExecutionResult>;
}

const { validateExecutionArgs, executeRootSelectionSet } = graphql as Steps;
const INCREMENTAL = ['defer', 'stream'];

/** Documents without the directives that ask for an answer in pieces, by those with them. */
const plain = new WeakMap<DocumentNode, DocumentNode>();

/**
 * graphql-js's `execute`. That of 17 throws for a schema that has `@defer` or `@stream`; servers may answer in one piece all
 * the same, as 16 does.
 */
export const executeInOnePiece: ExecuteFunction = (args) => {
  const { schema, document } = args;
  if (validateExecutionArgs === undefined || executeRootSelectionSet === undefined) return executed(args);
  if (!INCREMENTAL.some((name) => schema.getDirective(name) != null)) return executed(args);
  let whole = plain.get(document);
  if (whole === undefined) {
    whole = inOnePiece(document);
    plain.set(document, whole);
  }
  const checked = validateExecutionArgs({ ...args, document: whole });
  return Array.isArray(checked) ? { errors: checked } : executeRootSelectionSet(checked);
};

const executed = (args: ExecutionArgs): MaybePromise<ExecutionResult> =>
  graphql.execute(args) as MaybePromise<ExecutionResult>;

function inOnePiece(document: DocumentNode): DocumentNode {
  return graphql.visit(document, {
    Directive: ({ name }) => (INCREMENTAL.includes(name.value) ? null : undefined),
  });
}
