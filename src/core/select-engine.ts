import { compiled } from '../engine/index.ts';
import type { Engine } from '../execution/engine.ts';
import { engineFromExecute, graphqlJs } from '../execution/graphql-js.ts';
import type { ExecuteOperation } from '../execution/types.ts';
import type { CoreSettings } from './options.ts';

/** Returns the engine that the option `engine` selects. */
export function selectEngine(engine: CoreSettings['engine']): Engine {
  if (engine === 'compiled') return compiledOnSecondUse;
  return engine === 'graphql-js' ? graphqlJs : engineFromExecute(engine);
}

/** Returns the engine for documents that are prepared in advance: it compiles them immediately. */
export const selectEngineInAdvance = (engine: CoreSettings['engine']): Engine =>
  engine === 'compiled' ? compiled : selectEngine(engine);

/**
 * Keeps the compiled form of an operation from its second execution on, so that documents that are used once
 * retain no compiled form.
 */
const compiledOnSecondUse: Engine = (operation, settings, account) => {
  let execute: ExecuteOperation = (inputs) => {
    execute = (later) => {
      execute = compiled(operation, settings, account);
      return execute(later);
    };
    return compiled(operation, settings)(inputs);
  };
  return (inputs) => execute(inputs);
};
