/*
 * graphql 17 publishes the steps of an execution on tracing channels. Engines other than graphql-js publish
 * the same events with the functions below, which follow `diagnostics.ts` of graphql-js 17.1.
 */
import { tracingChannel } from 'node:diagnostics_channel';
import type { MaybePromise } from '../../types/connect.ts';
import { V17 } from './graphql-version.ts';
import { type ExecutionInputs, isThenable, type ValidatedOperation } from './types.ts';

export type TracingChannel = ReturnType<typeof tracingChannel>;

export const executeChannel: TracingChannel = tracingChannel('graphql:execute');
export const coercionChannel: TracingChannel = tracingChannel('graphql:execute:variableCoercion');
export const selectionChannel: TracingChannel = tracingChannel('graphql:execute:rootSelectionSet');
export const resolveChannel: TracingChannel = tracingChannel('graphql:resolve');
export const subscribeChannel: TracingChannel = tracingChannel('graphql:subscribe');

/** Whether a channel has subscribers. graphql 16 has no channels, so their subscribers get no events. */
export const isTraced: (channel: TracingChannel) => boolean = V17
  ? (channel) => channel.hasSubscribers ?? EVENTS.some((event) => channel[event].hasSubscribers)
  : () => false;

/** Node 20 before 20.13 has no `hasSubscribers` of all channels together. */
const EVENTS = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;

/** The object that all events of one step share. Subscribers may add properties. */
export interface TraceContext {
  result?: unknown;
  error?: unknown;
  [property: string]: unknown;
}

/** Runs a step and publishes its events. `setResult` sets what graphql-js publishes as the result of the step. */
export function trace<T>(
  channel: TracingChannel,
  context: TraceContext,
  step: () => MaybePromise<T>,
  setResult: (context: TraceContext, value: T) => void = assignResult,
): MaybePromise<T> {
  return channel.start.runStores(context, () => {
    let returned: MaybePromise<T>;
    try {
      returned = step();
    } catch (error) {
      context.error = error;
      channel.error.publish(context);
      channel.end.publish(context);
      throw error;
    }
    if (!isThenable(returned)) {
      setResult(context, returned);
      channel.end.publish(context);
      return returned;
    }
    channel.end.publish(context);
    return returned.then(
      (value) => {
        setResult(context, value);
        channel.asyncStart.publish(context);
        channel.asyncEnd.publish(context);
        return value;
      },
      (error) => {
        context.error = error;
        channel.error.publish(context);
        channel.asyncStart.publish(context);
        channel.asyncEnd.publish(context);
        throw error;
      },
    );
  });
}

function assignResult(context: TraceContext, value: unknown): void {
  context.result = value;
}

/** The context of the steps below the execution of an operation. */
export function operationContext(
  { schema, document, operation }: ValidatedOperation,
  { variableValues }: Pick<ExecutionInputs, 'variableValues'>,
): TraceContext {
  return {
    schema,
    document,
    operation,
    rawVariableValues: variableValues,
    operationName: operation.name?.value,
    operationType: operation.operation,
  };
}

/**
 * The context of `graphql:execute` and `graphql:subscribe`, where graphql-js computes the name and type when
 * they are read.
 */
export function requestContext(
  { schema, document, operation }: ValidatedOperation,
  { variableValues }: Pick<ExecutionInputs, 'variableValues'>,
): TraceContext {
  return {
    schema,
    document,
    rawVariableValues: variableValues,
    get operationName() {
      return operation.name?.value;
    },
    get operationType() {
      return operation.operation;
    },
  };
}
