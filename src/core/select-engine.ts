import { compiled } from '../engine/index.ts';
import { engineFromExecute, graphqlJs } from '../execution/graphql-js.ts';
import type { Engine } from '../execution/types.ts';
import type { CoreSettings } from './options.ts';

/** Returns the engine that the option `engine` selects. */
export function selectEngine(engine: CoreSettings['engine']): Engine {
  if (engine === 'compiled') return compiled;
  return engine === 'graphql-js' ? graphqlJs : engineFromExecute(engine);
}
