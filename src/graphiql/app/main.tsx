import './nonce.ts';
import { isMacOs, KEY_MAP, KeyMod } from '@graphiql/react';
import EditorWorker from 'monaco-editor/esm/vs/editor/editor.worker.js?worker';
import JsonWorker from 'monaco-editor/esm/vs/language/json/json.worker.js?worker';
import GraphQLWorker from 'monaco-graphql/esm/graphql.worker.js?worker';
import '@graphiql/react/style.css';
import '@graphiql/plugin-history/style.css';
import '@graphiql/plugin-doc-explorer/style.css';
import 'graphiql/graphiql.css';
import './page.css';
import { createRoot } from 'react-dom/client';
import { Page } from './page.tsx';

// Monaco requests its workers by label. The policy allows only workers from files of this page.
self.MonacoEnvironment = {
  getWorker(_id: string, label: string): Worker {
    if (label === 'graphql') return new GraphQLWorker();
    return label === 'json' ? new JsonWorker() : new EditorWorker();
  },
};

// GraphiQL binds its shortcuts to Monaco's `WinCtrl`, which is Ctrl on macOS but the Windows key elsewhere. The editors copy
// these bindings, so they are replaced before the editors are created.
if (!isMacOs) {
  for (const { keybindings } of [KEY_MAP.prettify, KEY_MAP.mergeFragments, KEY_MAP.copyQuery]) {
    keybindings.forEach((binding, index) => {
      keybindings[index] = (binding & ~KeyMod.WinCtrl) | KeyMod.CtrlCmd;
    });
  }
}

const container = document.querySelector('#graphiql');
if (container !== null) createRoot(container).render(<Page />);
