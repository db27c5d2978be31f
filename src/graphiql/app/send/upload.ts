import type { FetcherParams } from '@graphiql/toolkit';
import { type ExecutionResult, Kind, type OperationDefinitionNode, type TypeNode } from 'graphql';
import { endpoint } from '../settings.ts';
import { errorResult } from './error-result.ts';
import { sendForm } from './http.ts';
import { type FileVariable, selectFiles } from './upload-dialog.ts';

/**
 * Sends an operation that needs files, by the GraphQL multipart request specification, after the visitor has selected them.
 * Returns undefined for every other operation.
 */
export function sendUpload(
  { variableDefinitions = [] }: OperationDefinitionNode,
  params: FetcherParams,
  headers: Record<string, string>,
): Promise<ExecutionResult> | undefined {
  const uploads = variableDefinitions
    .filter(({ type }) => namedType(type) === 'Upload')
    .map(({ type, variable }) => ({
      name: variable.name.value,
      isList: isList(type),
      isRequired: type.kind === Kind.NON_NULL_TYPE,
    }));
  const isNeeded = uploads.some(({ name, isRequired }) => isRequired || params.variables?.[name] != null);
  return isNeeded ? send(uploads, params, headers) : undefined;
}

async function send(
  uploads: readonly FileVariable[],
  params: FetcherParams,
  headers: Record<string, string>,
): Promise<ExecutionResult> {
  const selected = await selectFiles(uploads, curlCommand(uploads, params));
  if (selected === undefined) return errorResult('The operation was not sent: no files were selected.');
  return sendForm(form(uploads, params, selected), headers);
}

function form(
  uploads: readonly FileVariable[],
  { query, variables, operationName }: FetcherParams,
  selected: ReadonlyMap<string, readonly File[]>,
): FormData {
  const placeholders: Record<string, null | null[]> = {};
  const map: Record<string, string[]> = {};
  const files: File[] = [];
  for (const { name, isList } of uploads) {
    const chosen = selected.get(name) ?? [];
    placeholders[name] = isList ? chosen.map(() => null) : null;
    for (const [index, file] of chosen.entries()) {
      map[files.length] = [isList ? `variables.${name}.${index}` : `variables.${name}`];
      files.push(file);
    }
  }
  const data = new FormData();
  const operations = {
    query,
    variables: { ...variables, ...placeholders },
    operationName: operationName ?? undefined,
  };
  data.set('operations', JSON.stringify(operations));
  data.set('map', JSON.stringify(map));
  for (const [index, file] of files.entries()) data.set(String(index), file);
  return data;
}

function curlCommand(
  uploads: readonly FileVariable[],
  { query, variables, operationName }: FetcherParams,
): string {
  const placeholders = Object.fromEntries(uploads.map(({ name, isList }) => [name, isList ? [null] : null]));
  const map = Object.fromEntries(
    uploads.map(({ name, isList }, index) => [index, [`variables.${name}${isList ? '.0' : ''}`]]),
  );
  const operations = {
    query,
    variables: { ...variables, ...placeholders },
    operationName: operationName ?? undefined,
  };
  return [
    `curl ${quote(endpoint)}`,
    `-F operations=${quote(JSON.stringify(operations))}`,
    `-F map=${quote(JSON.stringify(map))}`,
    ...uploads.map((_, index) => `-F ${index}=@path/to/file`),
  ].join(' \\\n  ');
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
