import { compiled } from '../engine/index.ts';
import { engineFromExecute, graphqlJs } from '../execution/graphql-js.ts';
import type { Engine } from '../execution/types.ts';
import type { CoreSettings } from './options.ts';

/** The engine an option names. */
export function engineOf(engine: CoreSettings['engine']): Engine {
  if (engine === 'compiled') return compiled;
  return engine === 'graphql-js' ? graphqlJs : engineFromExecute(engine);
}
