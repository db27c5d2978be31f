import { ToolbarButton, useGraphiQL, useMonaco } from '@graphiql/react';
import { GraphiQL } from 'graphiql';
import { parse } from 'graphql';
import { useEffect, useRef, useState } from 'react';
import { fetcher } from '../send/fetcher.ts';
import { config, forgetLink, linked, linkTo } from '../settings.ts';
import { FirstQuery } from './first-query.tsx';
import { storage } from './storage.ts';

/** The GraphiQL page. */
export function Page() {
  return (
    <GraphiQL
      fetcher={fetcher}
      storage={storage}
      initialQuery={linked.query}
      initialVariables={linked.variables ?? (linked.query === undefined ? undefined : '')}
      defaultQuery={config.defaultQuery}
      defaultHeaders={config.defaultHeaders}
      isHeadersEditorEnabled={config.headersEditor}
      shouldPersistHeaders={config.persistHeaders}
      forcedTheme={config.theme === 'system' ? undefined : config.theme}
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
      <StartAtLinkedOperation />
      <FirstQuery />
    </GraphiQL>
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
