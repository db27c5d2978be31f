import type { MaybePromise } from '../../../types/connect.ts';
import type { EngineSettings } from '../../execution/engine.ts';
import { outcomeFromResult } from '../../execution/graphql-js.ts';
import {
  coercionChannel,
  executeChannel,
  isTraced,
  operationContext,
  requestContext,
  resolveChannel,
  selectionChannel,
  type TraceContext,
  type TracingChannel,
  trace,
} from '../../execution/tracing.ts';
import {
  type ExecutionInputs,
  type ExecutionOutcome,
  isThenable,
  type ValidatedOperation,
} from '../../execution/types.ts';
import type { ProgramRun } from './execute.ts';
import { type CoercedVariables, toCoerced, type VariableErrors, variableValues } from './variables.ts';

/** Whether a channel that executions publish on has subscribers. */
export function isExecutionTraced(): boolean {
  return (
    isTraced(executeChannel) ||
    isTraced(resolveChannel) ||
    isTraced(coercionChannel) ||
    isTraced(selectionChannel)
  );
}

/** The compiled form of an operation for one request. */
interface TracedOperation {
  readonly operation: ValidatedOperation;
  readonly settings: EngineSettings;
  readonly run: ProgramRun;
}

/** Executes an operation and publishes the events that graphql-js publishes. */
export function executeTraced(
  traced: TracedOperation,
  inputs: ExecutionInputs,
): MaybePromise<ExecutionOutcome> {
  const { operation, settings } = traced;
  // graphql-js coerces the variables of a subscription once, and its events are not executions.
  const isEvent = operation.operation.operation === 'subscription';
  const execute = (): MaybePromise<Settled> => executeSteps(traced, inputs, isEvent);
  const settled = isEvent ? execute() : traceStep(executeChannel, requestContext(operation, inputs), execute);
  const toOutcome = (result: Settled): ExecutionOutcome =>
    'kind' in result ? result : outcomeFromResult(result, settings, inputs);
  return isThenable(settled) ? settled.then(toOutcome) : toOutcome(settled);
}

/** The outcome of an execution, or the errors of variables, which are formatted after the events. */
type Settled = ExecutionOutcome | VariableErrors;

function executeSteps(
  { operation, settings, run }: TracedOperation,
  inputs: ExecutionInputs,
  isEvent: boolean,
): MaybePromise<Settled> {
  const coerced = coerce(operation, settings, inputs, isEvent);
  if ('errors' in coerced) return coerced;
  return traceStep(selectionChannel, operationContext(operation, inputs), () => {
    const outcome = run(inputs, coerced.variables, coerced.values);
    return isThenable(outcome) ? outcome.then(retained) : retained(outcome);
  });
}

function coerce(
  operation: ValidatedOperation,
  settings: EngineSettings,
  inputs: ExecutionInputs,
  isEvent: boolean,
): CoercedVariables | VariableErrors {
  const read = (): object =>
    variableValues(operation.schema, operation.operation, settings, inputs.variableValues);
  if (isEvent || !isTraced(coercionChannel)) return toCoerced(read());
  return toCoerced(trace(coercionChannel, operationContext(operation, inputs), read));
}

/** Subscribers may read the response later, so its buffer must not be reused. */
function retained(outcome: ExecutionOutcome): ExecutionOutcome {
  return outcome.release === undefined ? outcome : { ...outcome, release: undefined };
}

function traceStep(
  channel: TracingChannel,
  context: TraceContext,
  step: () => MaybePromise<Settled>,
): MaybePromise<Settled> {
  return isTraced(channel) ? trace(channel, context, step, setResult) : step();
}

/** Results by outcome, since graphql-js publishes one object on both channels. */
const results = new WeakMap<Settled, object>();

/**
 * Sets the result that graphql-js publishes. The data is parsed from the response when a subscriber reads it.
 */
function setResult(context: TraceContext, settled: Settled): void {
  Object.defineProperty(context, 'result', {
    configurable: true,
    enumerable: true,
    get: () => resultOf(settled),
    set: (value: object) => results.set(settled, value),
  });
}

function resultOf(settled: Settled): object {
  if (!('kind' in settled)) return settled;
  let result = results.get(settled);
  if (result === undefined) {
    const { data } = JSON.parse(settled.body.toString());
    result = settled.kind === 'data' ? { data } : { errors: settled.errors, data };
    results.set(settled, result);
  }
  return result;
}
