import { isMacOs, ToolbarButton, useGraphiQL, useMonaco } from '@graphiql/react';
import type { Storage } from '@graphiql/toolkit';
import { GraphiQL } from 'graphiql';
import { parse } from 'graphql';
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { type Activity, currentActivity, onActivity } from './activity.ts';
import { fetcher } from './fetcher.ts';
import { firstQuery, namesOfLeaves } from './first-query.ts';
import { addKeys, addWayOut, closePanel, keepFocus } from './keyboard.ts';
import { config, endpoint, forgetLink, linked, linkTo } from './settings.ts';

const prefix = `espalier:${endpoint}:`;

/** Stores the tabs, history and settings of this endpoint; in memory if the browser allows no storage. */
const storage: Storage = createStorage();

function createStorage(): Storage {
  if (!usable()) return inMemory();
  const own = (): string[] => Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  return {
    getItem: (key: string): string | null => localStorage.getItem(prefix + key),
    setItem: (key: string, value: string): void => localStorage.setItem(prefix + key, value),
    removeItem: (key: string): void => localStorage.removeItem(prefix + key),
    clear(): void {
      for (const key of own()) localStorage.removeItem(key);
    },
    get length(): number {
      return own().length;
    },
  };
}

function inMemory(): Storage {
  const kept = new Map<string, string>();
  return {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
    removeItem: (key) => void kept.delete(key),
    clear: () => kept.clear(),
    get length() {
      return kept.size;
    },
  };
}

function usable(): boolean {
  try {
    localStorage.setItem(prefix, '');
    localStorage.removeItem(prefix);
    return true;
  } catch {
    return false;
  }
}

/** The same as in page.css, where the bar of icons moves to the bottom. */
const phone = matchMedia('(width < 640px)');

const RUN_KEYS = `${isMacOs ? '\u2318' : 'Ctrl'}-Enter`;

function usePhone(): boolean {
  return useSyncExternalStore(
    (changed) => {
      phone.addEventListener('change', changed);
      return () => phone.removeEventListener('change', changed);
    },
    () => phone.matches,
  );
}

/** The GraphiQL page. */
export function Page() {
  return (
    <GraphiQL
      fetcher={fetcher}
      storage={storage}
      initialQuery={linked.query}
      initialVariables={linked.variables ?? (linked.query === undefined ? undefined : '')}
      defaultQuery={config.defaultQuery}
      isHeadersEditorEnabled
      shouldPersistHeaders={false}
      getDefaultFieldNames={namesOfLeaves}
      inputValueDeprecation
      schemaDescription
      onEditQuery={forgetLink}
      onEditVariables={forgetLink}
    >
      <GraphiQL.Toolbar>
        {({ prettify, merge, copy }) => (
          <>
            {prettify}
            {merge}
            {copy}
            <CopyLink />
          </>
        )}
      </GraphiQL.Toolbar>
      <GraphiQL.Footer>
        <StatusLine />
      </GraphiQL.Footer>
      <EditorHints />
      <Keyboard />
      <ClosePanel />
      <h1 className="page-title">{document.title}</h1>
      <StartAtLinkedOperation />
      <FirstQuery />
    </GraphiQL>
  );
}

/** Says below the response what the last run gave, or how to run an operation. */
function StatusLine() {
  const activity = useSyncExternalStore(onActivity, currentActivity);
  const isPhone = usePhone();
  const isOpen = activity.kind === 'events' && activity.isOpen;
  const how = isPhone ? '\u25b6\ufe0e runs the operation' : `${RUN_KEYS} runs the operation at the cursor`;
  return (
    <output className="status-line" data-kind={activity.kind} data-open={isOpen || undefined}>
      {activity.kind === 'none' ? how : describe(activity)}
    </output>
  );
}

function describe(activity: Exclude<Activity, { kind: 'none' }>): string {
  switch (activity.kind) {
    case 'running':
      return 'Waiting for the response';
    case 'response':
      return [activity.status, `${activity.time} ms`, size(activity.bytes)].join(' \u00b7 ');
    case 'events': {
      const { count, lastAt, noun, isOpen } = activity;
      const counted = `${count} ${noun}${count === 1 ? '' : 's'}`;
      const last = lastAt && `last at ${lastAt.toLocaleTimeString()}`;
      return [counted, last, isOpen ? 'open' : 'ended'].filter(Boolean).join(' \u00b7 ');
    }
  }
}

function size(bytes: number): string {
  return bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
}

/** Shows examples in empty editors. On phones, wraps long lines and leaves their numbers out. */
function EditorHints() {
  const isPhone = usePhone();
  const { variables, headers, response, query } = useGraphiQL((state) => ({
    query: state.queryEditor,
    variables: state.variableEditor,
    headers: state.headerEditor,
    response: state.responseEditor,
  }));
  useEffect(() => {
    variables?.updateOptions({ placeholder: '{ "name": "value" }' });
    headers?.updateOptions({ placeholder: '{ "Authorization": "Bearer \u2026" }' });
    response?.updateOptions({ placeholder: 'The response appears here.' });
  }, [variables, headers, response]);
  useEffect(() => {
    for (const editor of [query, variables, headers, response])
      editor?.updateOptions({ wordWrap: isPhone ? 'on' : 'off', scrollBeyondLastColumn: 0 });
    for (const editor of [query, variables, headers])
      editor?.updateOptions({ lineNumbers: isPhone ? 'off' : 'on', folding: !isPhone });
  }, [isPhone, query, variables, headers, response]);
  return null;
}

/** Makes the page work without a pointer. */
function Keyboard() {
  const { query, variables, headers, response } = useGraphiQL((state) => ({
    query: state.queryEditor,
    variables: state.variableEditor,
    headers: state.headerEditor,
    response: state.responseEditor,
  }));
  useEffect(addKeys, []);
  useEffect(keepFocus, []);
  useEffect(() => query && addWayOut(query, 'Operation'), [query]);
  useEffect(() => variables && addWayOut(variables, 'Variables'), [variables]);
  useEffect(() => headers && addWayOut(headers, 'Headers'), [headers]);
  useEffect(() => response && addWayOut(response, 'Response'), [response]);
  return null;
}

/** A button for phones, where the panel covers the editors. It does what the button in the bar does. */
function ClosePanel() {
  const panel = useGraphiQL((state) => state.visiblePlugin);
  if (!panel) return null;
  return (
    <button type="button" className="close-panel" aria-label={`Close ${panel.title}`} onClick={closePanel}>
      {'\u00d7'}
    </button>
  );
}

function CopyLink() {
  const { query, variables, operationName } = useGraphiQL((state) => ({
    query: state.queryEditor,
    variables: state.variableEditor,
    operationName: state.operationName,
  }));
  const [copied, setCopied] = useState(false);
  async function copy() {
    const link = linkTo({ query: query?.getValue(), variables: variables?.getValue(), operationName });
    // Browsers have no clipboard API without HTTPS; the link is put into the address bar instead.
    if (navigator.clipboard === undefined) location.hash = new URL(link).hash;
    else await navigator.clipboard.writeText(link);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  }
  return (
    <ToolbarButton label={copied ? 'Copied' : 'Copy a link to this operation'} onClick={copy}>
      <svg
        className="graphiql-toolbar-icon"
        viewBox="0 0 24 24"
        fill="none"
        stroke="currentColor"
        aria-hidden="true"
      >
        <path
          d="M10 14a4.5 4.5 0 0 0 6.4 0l3-3a4.5 4.5 0 0 0-6.4-6.4l-1.2 1.2"
          strokeWidth="1.5"
          strokeLinecap="round"
        />
        <path
          d="M14 10a4.5 4.5 0 0 0-6.4 0l-3 3a4.5 4.5 0 0 0 6.4 6.4l1.2-1.2"
          strokeWidth="1.5"
          strokeLinecap="round"
        />
      </svg>
    </ToolbarButton>
  );
}

/** Moves the cursor to the operation that the link names, since GraphiQL runs the operation at the cursor. */
function StartAtLinkedOperation() {
  const editor = useGraphiQL((state) => state.queryEditor);
  const monaco = useMonaco((state) => state.monaco);
  const done = useRef(false);
  useEffect(() => {
    if (done.current || editor === undefined || monaco === undefined || !linked.operationName) return;
    done.current = true;
    const offset = offsetOf(editor.getValue(), linked.operationName);
    const position = editor.getModel()?.getPositionAt(offset);
    if (position) editor.setPosition(position);
    editor.focus();
  }, [editor, monaco]);
  return null;
}

function offsetOf(query: string, operationName: string): number {
  try {
    const { definitions } = parse(query);
    const found = definitions.find((node) => 'name' in node && node.name?.value === operationName);
    return found?.loc?.start ?? 0;
  } catch {
    return 0;
  }
}

const UPSTREAM_TEXT = '# Welcome to GraphiQL';
const HINTS = [
  `# ${RUN_KEYS} runs it, Ctrl-Space completes names.`,
  '# Escape leaves the editor.',
  '# The documentation is on the left.',
];
const HINTS_OF_PHONES = ['# \u25b6\ufe0e runs it.', '# The documentation is in the bar below.'];

/** Replaces GraphiQL's long welcome text on the first visit with a query for the schema. */
function FirstQuery() {
  const editor = useGraphiQL((state) => state.queryEditor);
  const schema = useGraphiQL((state) => state.schema);
  const done = useRef(false);
  useEffect(() => {
    if (done.current || editor === undefined || !schema) return;
    done.current = true;
    if (config.defaultQuery !== undefined || linked.query !== undefined) return;
    if (!editor.getValue().startsWith(UPSTREAM_TEXT)) return;
    editor.setValue(firstQuery(schema, phone.matches ? HINTS_OF_PHONES : HINTS));
  }, [editor, schema]);
  return null;
}
