import type { FetcherParams } from '@graphiql/toolkit';
import { type ExecutionResult, Kind, type OperationDefinitionNode, type TypeNode } from 'graphql';
import { endpoint } from '../settings.ts';
import { errorResult } from './error-result.ts';

/**
 * For an operation that needs a file: an error with the curl command that sends it, by the GraphQL multipart request
 * specification. Undefined for every other operation.
 */
export function explainUpload(
  { variableDefinitions = [] }: OperationDefinitionNode,
  { query, variables, operationName }: FetcherParams,
): ExecutionResult | undefined {
  const uploads = variableDefinitions.filter(({ type }) => namedType(type) === 'Upload');
  const needed = uploads.some(
    ({ type, variable }) => type.kind === Kind.NON_NULL_TYPE || variables?.[variable.name.value] != null,
  );
  if (!needed) return undefined;
  const empty = Object.fromEntries(
    uploads.map(({ type, variable }) => [variable.name.value, isList(type) ? [null] : null]),
  );
  const map = Object.fromEntries(
    uploads.map(({ type, variable }, index) => [
      index,
      [`variables.${variable.name.value}${isList(type) ? '.0' : ''}`],
    ]),
  );
  const operations = {
    query,
    variables: { ...variables, ...empty },
    operationName: operationName ?? undefined,
  };
  const command = [
    `curl ${quote(endpoint)}`,
    `-F operations=${quote(JSON.stringify(operations))}`,
    `-F map=${quote(JSON.stringify(map))}`,
    ...uploads.map((_, index) => `-F ${index}=@path/to/file`),
  ];
  return errorResult(
    'GraphiQL cannot send files. Use a client of the GraphQL multipart request specification, such as curl:',
    {
      curl: command,
    },
  );
}

function namedType(type: TypeNode): string {
  return type.kind === Kind.NAMED_TYPE ? type.name.value : namedType(type.type);
}

function isList(type: TypeNode): boolean {
  return (
    type.kind === Kind.LIST_TYPE || (type.kind === Kind.NON_NULL_TYPE && type.type.kind === Kind.LIST_TYPE)
  );
}

/** Quotes text for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
