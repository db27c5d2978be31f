import { compiled, compiledIncrementally } from '../engine/index.ts';
import type { Engine, IncrementalEngine, MemoryAccount } from '../execution/engine.ts';
import { engineFromExecute, graphqlJs } from '../execution/graphql-js.ts';
import { executeIncrementally } from '../execution/incremental.ts';
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

/** Returns the engine for operations with deferred parts. */
export const selectIncrementalEngine = (engine: CoreSettings['engine']): IncrementalEngine =>
  engine === 'compiled' ? incrementalOnSecondUse : executeIncrementally;

/**
 * Keeps the compiled form of an operation from its second execution on, so that documents that are used once
 * retain no compiled form.
 */
function onSecondUse(
  create: (account?: MemoryAccount) => ExecuteOperation,
  account: MemoryAccount | undefined,
): ExecuteOperation {
  let execute: ExecuteOperation = (inputs) => {
    execute = (later) => {
      execute = create(account);
      return execute(later);
    };
    return create()(inputs);
  };
  return (inputs) => execute(inputs);
}

const compiledOnSecondUse: Engine = (operation, settings, account) =>
  onSecondUse((charged) => compiled(operation, settings, charged), account);

const incrementalOnSecondUse: IncrementalEngine = (operation, settings, format, account) =>
  onSecondUse((charged) => compiledIncrementally(operation, settings, format, charged), account);
