import { compiled, compiledIncrementallyOnSecondUse, compiledOnSecondUse } from '../engine/index.ts';
import { engineFromExecute, executeIncrementally, graphqlJs } from '../execution/graphql-js.ts';
import type { Engine, IncrementalEngine } from '../execution/types.ts';
import type { CoreSettings } from './options.ts';

/** Returns the engine that the option `engine` selects. */
export function selectEngine(engine: CoreSettings['engine']): Engine {
  if (engine === 'compiled') return compiledOnSecondUse;
  return engine === 'graphql-js' ? graphqlJs : engineFromExecute(engine);
}

/** Returns the engine for documents that are prepared in advance: it compiles them immediately. */
export const selectEngineInAdvance = (engine: CoreSettings['engine']): Engine =>
  engine === 'compiled' ? compiled : selectEngine(engine);

/** Returns the engine for operations with deferred parts. */
export const selectIncrementalEngine = (engine: CoreSettings['engine']): IncrementalEngine =>
  engine === 'compiled' ? compiledIncrementallyOnSecondUse : executeIncrementally;
