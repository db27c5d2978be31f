/** A variable of the type Upload, or of a list of them. */
export interface FileVariable {
  readonly name: string;
  readonly isList: boolean;
  readonly isRequired: boolean;
}

/**
 * Lets the visitor select files for the variables of an operation, in a modal dialog that also shows the curl command. Resolves
 * with the files by variable, or with undefined when the dialog is cancelled.
 */
export function selectFiles(
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
