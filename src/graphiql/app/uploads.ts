import type { FetcherParams, FetcherReturnType } from '@graphiql/toolkit';
import { Kind, type OperationDefinitionNode, type TypeNode } from 'graphql';
import { refusal } from './answer.ts';
import { endpoint } from './settings.ts';

/**
 * What to say to an operation that needs a file, which this page has no means to pick: the command that sends it, by the
 * GraphQL multipart request specification. Undefined for every other operation.
 */
export function explainUpload(
  { variableDefinitions = [] }: OperationDefinitionNode,
  { query, variables, operationName }: FetcherParams,
): Awaited<FetcherReturnType> | undefined {
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
  return refusal(
    'GraphiQL cannot send files. Any client of the GraphQL multipart request specification can, curl for one:',
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

/** For a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
