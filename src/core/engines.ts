import { GraphQLSchema } from 'graphql';
import { compiled, compiledIncrementallyOnSecondUse, compiledOnSecondUse } from '../engine/index.ts';
import {
  declaresIncremental,
  engineFromExecute,
  executeIncrementally,
  graphqlJs,
  incrementalDirectives,
  SUPPORTS_INCREMENTAL,
} from '../execution/graphql-js.ts';
import type {
  Engine,
  EngineSettings,
  ExecuteOperation,
  IncrementalFormat,
  MemoryAccount,
  PreparedOperation,
  ValidatedOperation,
} from '../execution/types.ts';
import { type OptionScope, optionError } from '../options/rules.ts';
import { withStreamEvents } from './observed-stream.ts';
import type { CoreSettings } from './options.ts';

type Settings = Pick<CoreSettings, 'incremental' | 'engine'>;

/**
 * Checks the option `incremental`.
 *
 * @throws TypeError (code `ERR_OPTION`) if it is on and cannot work.
 */
export function assertIncremental(
  scope: OptionScope,
  schema: unknown,
  { incremental, engine }: Settings,
): void {
  if (incremental === undefined || incremental === false) return;
  const fail = (reason: string): TypeError => optionError(scope, `option "incremental" is on, but ${reason}`);
  if (!SUPPORTS_INCREMENTAL) throw fail('graphql 16 has no incremental execution; install graphql 17');
  if (typeof engine === 'function') {
    throw fail('the function of the option "engine" returns one result; remove one of the two options');
  }
  if (schema instanceof GraphQLSchema && !declaresIncremental(schema)) {
    throw fail(
      'the schema does not declare @defer and @stream; add GraphQLDeferDirective and GraphQLStreamDirective of graphql',
    );
  }
}

/** Whether operations of a schema, or of a function that returns schemas, may be executed incrementally. */
export function mayBeIncremental(schema: unknown, { incremental, engine }: Settings): boolean {
  if (!SUPPORTS_INCREMENTAL || incremental === false || typeof engine === 'function') return false;
  return !(schema instanceof GraphQLSchema) || declaresIncremental(schema);
}

type AddIncremental = (
  operation: ValidatedOperation,
  execute: ExecuteOperation,
  account: MemoryAccount,
) => Pick<PreparedOperation, 'execute' | 'incremental'>;

/** Creates the function that prepares validated operations with an engine. */
export function createOperationFactory(
  engine: Engine,
  settings: EngineSettings,
  options: Settings,
): (operation: ValidatedOperation, account: MemoryAccount) => PreparedOperation {
  const addIncremental = createIncremental(options, settings);
  const { maxErrors } = settings;
  const isFunction = typeof options.engine === 'function';
  return (operation, account) => {
    const execute = engine(operation, settings, account);
    const added = addIncremental(operation, execute, account);
    const base: PreparedOperation = { ...operation, kind: 'prepared', maxErrors, ...added };
    const prepared = settings.withHooks?.(base, account) ?? base;
    const { timeLimit } = settings;
    const timed =
      timeLimit === undefined
        ? prepared
        : { ...prepared, timeLimit, execute: timeLimit.boundExecution(prepared) };
    return isFunction || prepared.incremental !== undefined ? withStreamEvents(timed) : timed;
  };
}

/** Creates the function that adds incremental execution to operations. */
function createIncremental({ incremental, engine }: Settings, settings: EngineSettings): AddIncremental {
  if (!SUPPORTS_INCREMENTAL || incremental === false || typeof engine === 'function') {
    return (_, execute) => ({ execute, incremental: undefined });
  }
  const given = typeof incremental === 'string' ? incremental : undefined;
  const execution = engine === 'compiled' ? compiledIncrementallyOnSecondUse : executeIncrementally;
  return (operation, execute, account) => {
    const { schema, document } = operation;
    const directives = declaresIncremental(schema) ? incrementalDirectives(document) : NONE;
    if (directives.size === 0 || operation.operation.operation === 'subscription') {
      return { execute, incremental: undefined };
    }
    const executors: Record<IncrementalFormat, ExecuteOperation> = {
      'v0.2': execution(operation, settings, 'v0.2', account),
      20220824: execution(operation, settings, '20220824', account),
    };
    return {
      execute: (inputs) => {
        const { incremental: format } = inputs;
        return format === undefined ? execute(inputs) : executors[format](inputs);
      },
      // Clients that name no format merge items of @stream in the format of 2022 only (urql 6, meros 1).
      incremental: given ?? (directives.has('stream') ? '20220824' : 'v0.2'),
    };
  };
}

const NONE: ReadonlySet<string> = new Set();

export function selectEngine(engine: CoreSettings['engine']): Engine {
  if (engine === 'compiled') return compiledOnSecondUse;
  return engine === 'graphql-js' ? graphqlJs : engineFromExecute(engine);
}

/** Returns the engine for documents that are prepared in advance: it compiles them immediately. */
export const selectEngineInAdvance = (engine: CoreSettings['engine']): Engine =>
  engine === 'compiled' ? compiled : selectEngine(engine);
