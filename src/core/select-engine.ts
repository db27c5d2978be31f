import { compiled } from '../engine/index.ts';
import { engineFromExecute, graphqlJs } from '../execution/graphql-js.ts';
import type { Engine, ExecuteOperation } from '../execution/types.ts';
import type { CoreSettings } from './options.ts';

/** Returns the engine that the option `engine` selects. */
export function selectEngine(engine: CoreSettings['engine']): Engine {
  if (engine === 'compiled') return compiledOnSecondUse;
  return engine === 'graphql-js' ? graphqlJs : engineFromExecute(engine);
}

/**
 * Executes an operation with graphql-js once, and compiles it when it is executed again: the compiled form of a document
 * that is used once would cost more than it saves.
 */
const compiledOnSecondUse: Engine = (operation, settings, account) => {
  let execute: ExecuteOperation = (inputs) => {
    execute = (later) => {
      execute = compiled(operation, settings, account);
      return execute(later);
    };
    return graphqlJs(operation, settings)(inputs);
  };
  return (inputs) => execute(inputs);
};
