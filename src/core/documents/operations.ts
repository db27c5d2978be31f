import { GraphQLError, type GraphQLSchema, getOperationAST, type OperationDefinitionNode } from 'graphql';
import { refusalError } from '../../execution/graphql-error.ts';
import type { PreparedOperation, RequestError, ValidatedOperation } from '../../execution/types.ts';
import { assertSync } from '../../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../../options/scopes.ts';
import type { CoreSettings } from '../options.ts';
import type { Validated } from './validate.ts';

/** A validated document with its prepared operations by name. */
export interface LoadedDocument extends Validated {
  readonly source: string;
  readonly operations: Map<string | undefined, PreparedOperation>;
}

/** Selects an operation of a document by name, and prepares it when it is first selected. */
export interface OperationSelector {
  /** `source` is the request or socket, for an `introspection` option that is a function. */
  select(
    schema: GraphQLSchema,
    entry: LoadedDocument | RequestError,
    operationName: string | undefined,
    source: unknown,
  ): PreparedOperation | RequestError;
  /** Selects an operation whatever the option `introspection` says. */
  prepare(
    schema: GraphQLSchema,
    entry: LoadedDocument,
    operationName: string | undefined,
  ): PreparedOperation | RequestError;
}

/** Creates a selector. `createOperation` prepares a validated operation. */
export function createOperationSelector(
  { introspection }: Pick<CoreSettings, 'introspection'>,
  createOperation: (operation: ValidatedOperation) => PreparedOperation,
): OperationSelector {
  const allowsIntrospection = introspectionCheck(introspection);

  const prepare: OperationSelector['prepare'] = (schema, entry, operationName) => {
    let prepared = entry.operations.get(operationName);
    if (prepared === undefined) {
      const selected = findOperation(schema, entry, operationName);
      if ('errors' in selected) return selected;
      prepared = createOperation(selected);
      entry.operations.set(operationName, prepared);
    }
    return prepared;
  };

  return {
    prepare,
    select(schema, entry, operationName, source) {
      if ('errors' in entry) return entry;
      if (entry.introspects && !allowsIntrospection(source)) return introspectionRefused();
      return prepare(schema, entry, operationName);
    },
  };
}

function findOperation(
  schema: GraphQLSchema,
  { source, document, cost }: LoadedDocument,
  operationName: string | undefined,
): ValidatedOperation | RequestError {
  const operation = getOperationAST(document, operationName);
  if (operation !== null && operation !== undefined) {
    // graphql 17 has a validation rule for this; 16 fails when it executes the operation.
    if (schema.getRootType(operation.operation) == null) return noRootType(operation);
    return { schema, source, document, operation, cost };
  }
  const message =
    operationName === undefined
      ? 'The document must contain exactly one operation, or the request must name one with "operationName"'
      : `The document contains no operation named "${operationName}"`;
  return { errors: [refusalError(message, 'OPERATION_RESOLUTION_FAILURE')], status: 400 };
}

function noRootType(operation: OperationDefinitionNode): RequestError {
  const error = new GraphQLError(`Schema is not configured to execute ${operation.operation} operation.`, {
    nodes: operation,
    extensions: { code: 'GRAPHQL_VALIDATION_FAILED' },
  });
  return { errors: [error], status: 400 };
}

function introspectionCheck(option: CoreSettings['introspection']): (source: unknown) => boolean {
  if (typeof option !== 'function') return () => option;
  return (source) => assertSync(option(source), GRAPHQL_OPTIONS, 'introspection');
}

const introspectionRefused = (): RequestError => ({
  errors: [refusalError('Introspection is disabled', 'INTROSPECTION_OFF')],
  status: 400,
});
