import type { FetcherParams } from '@graphiql/toolkit';
import { type ExecutionResult, Kind, type OperationDefinitionNode, type TypeNode } from 'graphql';
import { errorResult, sendForm } from './http.ts';
import { endpoint } from './settings.ts';

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
  const bar = element('progress', { className: 'upload-progress' });
  bar.setAttribute('aria-label', 'Upload');
  document.body.append(bar);
  try {
    return await sendForm(form(uploads, params, selected), headers, (part) => {
      bar.value = part;
    });
  } finally {
    bar.remove();
  }
}

function form(
  uploads: readonly FileVariable[],
  params: FetcherParams,
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
  data.set('operations', operationsOf(params, placeholders));
  data.set('map', JSON.stringify(map));
  for (const [index, file] of files.entries()) data.set(String(index), file);
  return data;
}

/** The part `operations`: the operation with a null at the place of each file. */
function operationsOf({ query, variables, operationName }: FetcherParams, placeholders: object): string {
  return JSON.stringify({
    query,
    variables: { ...variables, ...placeholders },
    operationName: operationName ?? undefined,
  });
}

function curlCommand(uploads: readonly FileVariable[], params: FetcherParams): string {
  const placeholders = Object.fromEntries(uploads.map(({ name, isList }) => [name, isList ? [null] : null]));
  const map = Object.fromEntries(
    uploads.map(({ name, isList }, index) => [index, [`variables.${name}${isList ? '.0' : ''}`]]),
  );
  return [
    `curl ${quote(endpoint)}`,
    `-F operations=${quote(operationsOf(params, placeholders))}`,
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

/** A variable of the type Upload, or of a list of them. */
interface FileVariable {
  readonly name: string;
  readonly isList: boolean;
  readonly isRequired: boolean;
}

/**
 * Lets the visitor select files for the variables of an operation, in a modal dialog that also shows the curl command. Resolves
 * with the files by variable, or with undefined when the dialog is cancelled.
 */
function selectFiles(
  variables: readonly FileVariable[],
  curlCommand: string,
): Promise<ReadonlyMap<string, readonly File[]> | undefined> {
  const dialog = element('dialog', { className: 'upload-dialog' });
  const form = element('form', { method: 'dialog' });
  const inputs = new Map(variables.map((variable) => [variable.name, fileInput(variable)]));
  const cancel = element('button', { type: 'button', textContent: 'Cancel' });
  const send = element('button', { type: 'submit', textContent: 'Send', className: 'upload-send' });
  form.append(
    element('h2', { textContent: 'Select files' }),
    ...Array.from(inputs, ([name, input]) => label(name, input)),
    element('p', { textContent: 'Or run this command:' }),
    element('pre', { textContent: curlCommand, tabIndex: 0 }),
    buttons(copyButton(curlCommand), cancel, send),
  );
  dialog.append(form);
  document.body.append(dialog);
  return new Promise((resolve) => {
    cancel.addEventListener('click', () => dialog.close());
    dialog.addEventListener('close', () => {
      dialog.remove();
      const isSent = dialog.returnValue === 'send';
      resolve(
        isSent ? new Map(Array.from(inputs, ([name, { files }]) => [name, [...(files ?? [])]])) : undefined,
      );
    });
    send.value = 'send';
    dialog.showModal();
  });
}

function fileInput({ isList, isRequired }: FileVariable): HTMLInputElement {
  return element('input', { type: 'file', multiple: isList, required: isRequired });
}

function label(name: string, input: HTMLInputElement): HTMLLabelElement {
  const wrapped = element('label', {});
  wrapped.append(element('span', { textContent: `$${name}` }), input);
  return wrapped;
}

function copyButton(text: string): HTMLButtonElement {
  const button = element('button', { type: 'button', textContent: 'Copy curl command' });
  button.addEventListener('click', async () => {
    // Without HTTPS there is no clipboard API; the command can be selected.
    if (navigator.clipboard === undefined) return;
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  });
  return button;
}

function buttons(...all: HTMLButtonElement[]): HTMLElement {
  const row = element('div', { className: 'upload-buttons' });
  row.append(...all);
  return row;
}

function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]>,
): HTMLElementTagNameMap[Name] {
  return Object.assign(document.createElement(name), properties);
}
