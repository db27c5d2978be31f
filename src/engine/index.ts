import type { MaybePromise } from '../../types/connect.ts';
import { CONDITIONS } from '../execution/conditions.ts';
import type { Engine, EngineSettings, IncrementalEngine, MemoryAccount } from '../execution/engine.ts';
import { graphqlJs, outcomeFromResult } from '../execution/graphql-js.ts';
import { V17 } from '../execution/graphql-version.ts';
import { executeIncrementally } from '../execution/incremental.ts';
import { warnIfExecuteIsWrapped } from '../execution/observed/replaced-execute.ts';
import { isTraced, resolveChannel } from '../execution/tracing.ts';
import type { ExecuteOperation, ExecutionInputs, ExecutionOutcome } from '../execution/types.ts';
import { compileIncrementally } from './incremental/compile-program.ts';
import { type CompiledForm, CurrentForm, selectRun } from './operation/compiled-form.ts';
import { needsGraphqlJs, needsGraphqlJsIncrementally } from './operation/delegation.ts';
import { compileProgram } from './operation/execute.ts';
import { executeTraced, isExecutionTraced } from './operation/traced.ts';
import { createProgram } from './run/program.ts';

/**
 * The compiled engine. It turns an operation into closures that resolve its fields and write JSON bytes.
 * Responses equal those of graphql-js, which executes the operations that the engine does not support (see
 * operation/delegation.ts).
 */
export const compiled: Engine = (operation, settings, account) => {
  const reference = graphqlJs(operation, settings);
  if (needsGraphqlJs(operation)) return reference;
  warnIfExecuteIsWrapped();
  const program = createProgram(operation, settings);
  const source = {
    program,
    document: operation.document,
    account,
    conditions: CONDITIONS,
    compile: compileProgram,
  };
  const plain = new CurrentForm(source);
  const traced = new CurrentForm({ ...source, program: { ...program, tracesResolvers: true } });

  const context = { reference, settings };

  function runTraced(inputs: ExecutionInputs, form: CompiledForm): MaybePromise<ExecutionOutcome> {
    const run = selectRun(form, inputs);
    return run === undefined ? reference(inputs) : executeTraced({ operation, settings, run }, inputs);
  }

  return (inputs) => {
    if (V17) {
      if (isTraced(resolveChannel)) return runTraced(inputs, traced.get());
      traced.release();
      if (isExecutionTraced()) return runTraced(inputs, plain.get());
    }
    return runForm(plain.get(), inputs, context);
  };
};

/** The parts of an operation that its executions share. */
interface FormContext {
  readonly reference: ExecuteOperation;
  readonly settings: EngineSettings;
}

/** Executes the variant for the variables of a request; graphql-js does where there is none. */
function runForm(
  form: CompiledForm,
  inputs: ExecutionInputs,
  { reference, settings }: FormContext,
): MaybePromise<ExecutionOutcome> {
  const run = selectRun(form, inputs);
  if (run === undefined) return reference(inputs);
  const coerced = form.coerceVariables(inputs.variableValues);
  if ('errors' in coerced) return outcomeFromResult(coerced, settings, inputs);
  return run(inputs, coerced.variables, coerced.values);
}

/**
 * Like `compiled`, for operations with `@defer` whose parts are delivered in several payloads. Operations with
 * `@stream` and traced executions are given to graphql-js.
 */
export const compiledIncrementally: IncrementalEngine = (operation, settings, format, account) => {
  const reference = executeIncrementally(operation, settings, format);
  if (needsGraphqlJsIncrementally(operation)) return reference;
  warnIfExecuteIsWrapped();
  const form = new CurrentForm({
    program: createProgram(operation, settings),
    document: operation.document,
    account,
    conditions: INCREMENTAL_CONDITIONS,
    compile: (program, shared) => compileIncrementally(program, shared, format),
  });
  const context = { reference, settings };
  return (inputs) => {
    if (isExecutionTraced()) return reference(inputs);
    return runForm(form.get(), inputs, context);
  };
};

const INCREMENTAL_CONDITIONS: readonly string[] = [...CONDITIONS, 'defer'];

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

/** Like `compiled`, but retains nothing for a document that is used once. */
export const compiledOnSecondUse: Engine = (operation, settings, account) =>
  onSecondUse((charged) => compiled(operation, settings, charged), account);

/** Like `compiledIncrementally`, but retains nothing for a document that is used once. */
export const compiledIncrementallyOnSecondUse: IncrementalEngine = (operation, settings, format, account) =>
  onSecondUse((charged) => compiledIncrementally(operation, settings, format, charged), account);
