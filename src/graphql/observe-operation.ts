import type { MaybePromise } from '../../types/connect.ts';
import { events } from '../core/diagnostics.ts';
import { ObservedOperation } from '../execution/observed.ts';
import {
  type GraphQLParams,
  isThenable,
  type PreparedOperation,
  type RemainingResults,
  type RequestError,
} from '../execution/types.ts';
import { type Exchange, type Result, STREAMED } from './exchange.ts';

/** The steps of an operation. */
interface Steps {
  prepare(): MaybePromise<PreparedOperation | RequestError>;
  run(prepared: PreparedOperation | RequestError): MaybePromise<Result>;
}

/** Runs an operation that subscribers of `espalier:graphql:operation` observe. */
export function observeOperation(
  { req }: Exchange,
  { extensions }: GraphQLParams,
  { prepare, run }: Steps,
): MaybePromise<Result> {
  const operation = new ObservedOperation({
    transport: 'http',
    request: req,
    socket: undefined,
    connectionParams: undefined,
    extensions,
  });
  const prepared = prepare();
  return isThenable(prepared)
    ? prepared.then((settled) => runObserved(operation, settled, run))
    : runObserved(operation, prepared, run);
}

function runObserved(
  operation: ObservedOperation,
  prepared: PreparedOperation | RequestError,
  run: Steps['run'],
): MaybePromise<Result> {
  const fail = (error: unknown): never => {
    operation.fail([error]);
    operation.end();
    throw error;
  };
  let result: MaybePromise<Result>;
  try {
    result = operation.begin(prepared, publish, run);
  } catch (error) {
    return fail(error);
  }
  return isThenable(result)
    ? result.then((settled) => endWith(operation, settled), fail)
    : endWith(operation, result);
}

const publish = (operation: ObservedOperation): void => events.operation.publish(operation);

/**
 * Ends an operation with its result or, if it has several, with its last payload. The operation of an event
 * stream ends with the stream.
 */
function endWith(operation: ObservedOperation, result: Result): Result {
  if (result === STREAMED) return result;
  if ('rest' in result && result.rest !== undefined) {
    return { ...result, rest: endAfter(operation, result.rest) };
  }
  if (!('kind' in result)) operation.fail(result.errors);
  operation.end();
  return result;
}

/** Ends an operation with its last payload. */
function endAfter(operation: ObservedOperation, rest: RemainingResults): RemainingResults {
  const observe = async (
    read: () => Promise<IteratorResult<string, undefined>>,
  ): Promise<IteratorResult<string, undefined>> => {
    try {
      const item = await operation.run(read);
      if (item.done === true) operation.end();
      return item;
    } catch (error) {
      operation.fail([error]);
      operation.end();
      throw error;
    }
  };
  return { next: () => observe(() => rest.next()), return: () => observe(() => rest.return()) };
}
