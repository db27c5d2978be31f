// What a visitor without a pointer needs, and the packages leave out: ways out of editors and panels, and a focus that never
// gets lost.
import { KeyCode, type MonacoEditor } from '@graphiql/react';

/** Names of what Monaco shows or does until Escape ends it. */
const ENDED_FIRST = [
  'suggestWidgetVisible',
  'parameterHintsVisible',
  'findWidgetVisible',
  'renameInputVisible',
  'inSnippetMode',
  'editorHasSelection',
  'editorHasMultipleSelections',
  'markersNavigationVisible',
  'referenceSearchVisible',
  'inlineSuggestionVisible',
  'messageVisible',
];

/** Tab indents in an editor, so Escape leaves it: the focus goes to its frame, from which Enter leads into it again. */
export function addWayOut(editor: MonacoEditor, name: string): () => void {
  const frame = editor.getContainerDomNode();
  if (frame.tagName === 'DIV') frame.setAttribute('role', 'group');
  frame.setAttribute('aria-label', name);
  frame.setAttribute('aria-description', 'Enter leads into the editor, Escape out of it.');
  editor.updateOptions({ ariaLabel: `${name}. Escape leaves the editor.` });
  const action = editor.addAction({
    id: 'leave-editor',
    label: 'Leave the Editor',
    keybindings: [KeyCode.Escape],
    precondition: ENDED_FIRST.map((state) => `!${state}`).join(' && '),
    run: () => frame.focus(),
  });
  const showHint = (): void => void frame.classList.add('shows-way-out');
  const hideHint = (): void => frame.classList.remove('shows-way-out');
  const entered = ({ relatedTarget }: FocusEvent): void => {
    if (relatedTarget === frame) showHint();
  };
  const pressed = ({ key }: KeyboardEvent): void => {
    if (key === 'Tab') showHint();
  };
  frame.addEventListener('focusin', entered);
  frame.addEventListener('keydown', pressed);
  frame.addEventListener('focusout', hideHint);
  return () => {
    action.dispose();
    frame.removeEventListener('focusin', entered);
    frame.removeEventListener('keydown', pressed);
    frame.removeEventListener('focusout', hideHint);
  };
}

/** Closes the open panel, and gives the focus to the button that opens it again. */
export function closePanel(): void {
  const button = document.querySelector<HTMLElement>('.graphiql-sidebar > button.active');
  button?.focus();
  button?.click();
}

/** A panel, and the buttons that close it. */
const PANEL = '.graphiql-plugin, .graphiql-sidebar > .active, .close-panel';

/** Escape in a panel closes it, or ends the change of a label; the arrow keys move between the tabs. */
export function addKeys(): () => void {
  const pressed = (event: KeyboardEvent): void => {
    // Escape first closes the list of the search. A tooltip, which also prevents its default, disappears with the panel.
    if (!(event.target instanceof Element) || (event.defaultPrevented && event.target.matches('input')))
      return;
    const tab = event.target.closest<HTMLElement>('.graphiql-tab-button');
    // Alt and an arrow key go back to the page before.
    if (tab !== null && !event.altKey && !event.ctrlKey && !event.metaKey) moveFrom(tab, event);
    if (event.key !== 'Escape' || event.target.closest(PANEL) === null) return;
    const label = event.target.closest('.graphiql-history-item.editable');
    if (label === null) closePanel();
    else label.querySelector<HTMLElement>('button:last-of-type')?.click();
  };
  document.addEventListener('keydown', pressed);
  return () => document.removeEventListener('keydown', pressed);
}

function moveFrom(tab: HTMLElement, event: KeyboardEvent): void {
  const tabs = [...document.querySelectorAll<HTMLElement>('.graphiql-tab-button')];
  const index = tabs.indexOf(tab);
  const targets: Readonly<Record<string, number>> = {
    ArrowLeft: index - 1,
    ArrowRight: (index + 1) % tabs.length,
    Home: 0,
    End: -1,
  };
  const target = targets[event.key];
  if (target === undefined) return;
  event.preventDefault();
  tabs.at(target)?.focus();
}

const FOCUSABLE = 'a[href], button:not(:disabled), input, [tabindex="0"]';
/** The button that loads the schema gets the focus again when it has. */
const BUSY = '.graphiql-sidebar > :disabled';
const ACTIVE_TAB = '.graphiql-tab-active > .graphiql-tab-button';

/**
 * Gives the focus to a near element when the one with the focus disappears, such as a tab that was closed or a page of the
 * documentation that was left. After a dialog it returns to where it was. Otherwise the next Tab would start at the top.
 */
export function keepFocus(): () => void {
  let focused: readonly Element[] = [];
  let outside: HTMLElement | undefined;
  let isBusy = false;
  let isLeaving = false;
  const remember = ({ target }: FocusEvent): void => {
    if (!(target instanceof HTMLElement) || target.matches('[data-radix-focus-guard]')) return;
    focused = withAncestors(target);
    if (target.closest('[role="dialog"]') === null) outside = target;
  };
  // Who leaves the page or clicks beside everything takes the focus away on purpose.
  const leave = (event: Event): void => {
    isLeaving = event instanceof KeyboardEvent ? event.key === 'Tab' : event.type === 'mousedown';
  };
  const forget = (): void => {
    if (isLeaving) focused = [];
  };
  const observer = new MutationObserver(() => {
    const [lost] = focused;
    if (lost === undefined) return;
    const isUsable = lost.isConnected && !lost.matches(':disabled') && !isBusy;
    isBusy = lost.matches(BUSY);
    if (isUsable || isBusy || ![lost, document.body].includes(document.activeElement ?? lost)) return;
    const heir = focused.map(firstIn).find((element) => element !== undefined);
    (heir ?? outside)?.focus();
  });
  observer.observe(document.body, { childList: true, subtree: true, attributeFilter: ['disabled'] });
  const leavingEvents = ['keydown', 'mousedown', 'mouseup'];
  document.addEventListener('focusin', remember);
  document.addEventListener('focusout', forget);
  for (const type of leavingEvents) document.addEventListener(type, leave, true);
  return () => {
    observer.disconnect();
    document.removeEventListener('focusin', remember);
    document.removeEventListener('focusout', forget);
    for (const type of leavingEvents) document.removeEventListener(type, leave, true);
  };
}

/** An element and those around it, nearest first. They are not known any more when it has been removed. */
function withAncestors(element: Element): Element[] {
  const found = [];
  for (let each: Element | null = element; each !== null && each !== document.body; each = each.parentElement)
    found.push(each);
  return found;
}

/** The element itself, or the first one in it that can have the focus. */
function firstIn(element: Element): HTMLElement | undefined {
  const found = [ACTIVE_TAB, FOCUSABLE].flatMap((selector) => [
    ...(element.matches(selector) ? [element] : []),
    ...element.querySelectorAll(selector),
  ]);
  return found
    .filter((each) => each instanceof HTMLElement)
    .find((each) => each.checkVisibility({ visibilityProperty: true }));
}
