import './nonce.ts';
import './workers.ts';
import '@graphiql/react/style.css';
import '@graphiql/plugin-history/style.css';
import '@graphiql/plugin-doc-explorer/style.css';
import 'graphiql/graphiql.css';
import './page/page.css';
import { createRoot } from 'react-dom/client';
import { Page } from './page/page.tsx';
import { bindShortcutsToCtrl } from './page/shortcuts.ts';

bindShortcutsToCtrl();

const container = document.querySelector('#graphiql');
if (container !== null) createRoot(container).render(<Page />);
