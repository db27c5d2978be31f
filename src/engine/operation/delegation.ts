import * as graphql from 'graphql';
import { type DocumentNode, type GraphQLSchema, type OperationDefinitionNode, visit } from 'graphql';
import { optionalExport } from '../../execution/graphql-version.ts';

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

const EXECUTE_AT_START = currentExecute();
/** Properties that common libraries set on a function that wraps another one. */
const WRAPPER_MARKS = ['__wrapped', '__original', '__unwrap', '__NR_original'];
let hasWarned = false;

/** The current `execute`: if graphql is a CommonJS module, only its default export reflects later changes. */
function currentExecute(): unknown {
  const commonJs = optionalExport('default') as { execute?: unknown } | undefined;
  return commonJs?.execute ?? graphql.execute;
}

/**
 * Warns once per process if a library has replaced `execute` of graphql-js, as some tracers do: the compiled
 * engine does not call it, so the library would not see those operations.
 */
export function warnIfExecuteIsWrapped(): void {
  if (hasWarned) return;
  const execute = currentExecute();
  const isMarked = typeof execute === 'function' && WRAPPER_MARKS.some((mark) => mark in execute);
  if (execute === EXECUTE_AT_START && !isMarked) return;
  hasWarned = true;
  process.emitWarning(
    "The function execute of graphql has been replaced, probably by a tracer. espalier's compiled engine does not call " +
      "it, so operations are missing in traces. Set the option engine: 'graphql-js' to call it.",
    { code: 'ESPALIER_EXECUTE_REPLACED' },
  );
}
