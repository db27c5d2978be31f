import type { GraphQLSchema } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { events } from '../diagnostics/events.ts';
import type { ObservedOperation } from '../execution/observed.ts';
import {
  type ExecutionOutcome,
  isThenable,
  observedResults,
  type PreparedOperation,
  type RemainingResults,
  type RequestError,
  withRest,
} from '../execution/types.ts';
import { CLIENT_ABORTED } from '../http/body.ts';
import { caught, settle } from '../options/values.ts';
import { withExtensions } from './admission.ts';
import type { Call } from './call.ts';
import { assertVariableLimits } from './limits.ts';

/** The operation goes on in a stream, which sends its results. */
interface Streamed {
  readonly kind: 'stream';
}

const STREAMED: Streamed = { kind: 'stream' };

/** The result of one operation: of its execution, the reason why it was not executed, or a stream. */
export type Result = ExecutionOutcome | RequestError | Streamed;

/**
 * Runs one operation, whatever its transport: the functions below are the steps in their order. They are synchronous as
 * long as the application is, and each wait for it is bounded by the option `timeout`.
 *
 * @throws what a function of the application throws, `CLIENT_ABORTED` if nobody waits for the result any more, and
 * HttpError if the request is refused.
 */
export function run(call: Call): MaybePromise<Result> {
  const { variables, index } = call.params;
  // The operations of a batch share the limit, and were checked together.
  if (variables !== undefined && index === undefined)
    assertVariableLimits([variables], call.core.maxVariables);
  const { findCaller } = call.core;
  if (findCaller === undefined) return count(call);
  return settle(inTime(call, call.findCaller(findCaller)), (caller) => {
    call.caller = caller;
    return count(call);
  });
}

/** Counts the operation of its client, if clients have limits. */
function count(call: Call): MaybePromise<Result> {
  const { clients } = call.core;
  if (clients === undefined) return findSchema(call);
  const refusal = inTime(call, clients.operation(call.source, call.caller));
  return settle(refusal, (refused) => refused ?? findSchema(call));
}

const findSchema = (call: Call): MaybePromise<Result> =>
  settle(inTime(call, call.findSchema()), (schema) => prepare(call, schema));

function prepare(call: Call, schema: GraphQLSchema): MaybePromise<Result> {
  const prepared = inTime(call, call.core.prepare(schema, call.params, call.source));
  return settle(call.inTurn(prepared), (settled) =>
    call.observed === undefined ? accept(call, settled) : observe(call, call.observed, settled),
  );
}

function accept(call: Call, prepared: PreparedOperation | RequestError): MaybePromise<Result> {
  if (prepared.kind === 'error') return prepared;
  // The application gets the text of a document that the request has named by its id.
  if (call.params.document !== undefined) call.params = { ...call.params, query: prepared.source };
  const refusal = call.accept(prepared);
  if (refusal !== undefined) return refusal;
  return settle(inTime(call, call.createContext()), (context) => useContext(call, prepared, context));
}

function useContext(call: Call, prepared: PreparedOperation, context: unknown): MaybePromise<Result> {
  assertWanted(call);
  call.contextValue = context;
  return call.handOver(prepared) ? STREAMED : admit(call, prepared);
}

/** Continues with an operation that has its context. */
export function admit(call: Call, prepared: PreparedOperation): MaybePromise<Result> {
  call.start(prepared);
  if (prepared.admit === undefined) return execute(call, prepared);
  return settle(inTime(call, prepared.admit(call)), (refusal) => useAdmission(call, prepared, refusal));
}

function useAdmission(
  call: Call,
  prepared: PreparedOperation,
  refusal: RequestError | undefined,
): MaybePromise<Result> {
  assertWanted(call);
  return refusal ?? execute(call, prepared);
}

function execute(call: Call, prepared: PreparedOperation): MaybePromise<Result> {
  if (prepared.operation.operation === 'subscription') {
    call.subscribe(prepared);
    return STREAMED;
  }
  const { around } = prepared;
  const outcome =
    around === undefined ? call.execute(prepared) : around(call, prepared, () => call.execute(prepared));
  const { extensions } = call;
  return extensions === undefined ? outcome : settle(outcome, (done) => withExtensions(done, extensions));
}

/** Ends the wait for a function of the application, such as `context` or that of the schema, when it is too slow. */
function inTime<T>(call: Call, value: MaybePromise<T>): MaybePromise<T> {
  const { timeLimit } = call.core;
  return timeLimit === undefined || !isThenable(value) ? value : timeLimit.bound(value, call.origin);
}

/** No code of the application runs if nobody can receive the result: above all no mutation. */
function assertWanted(call: Call): void {
  if (!call.isWanted()) throw CLIENT_ABORTED;
}

const publish = (operation: ObservedOperation): void => events.operation.publish(operation);

/** Continues with an operation that subscribers of `espalier:graphql:operation` observe. */
function observe(
  call: Call,
  observed: ObservedOperation,
  prepared: PreparedOperation | RequestError,
): MaybePromise<Result> {
  const steps = () =>
    settle(
      observed.begin(prepared, publish, (seen) => accept(call, seen)),
      (result) => endWith(observed, result),
    );
  const fail = (error: unknown): never => {
    observed.fail([error]);
    observed.end();
    throw error;
  };
  return caught(steps, fail);
}

/** Ends an operation with its result or, if it has several, with its last payload. A stream ends it itself. */
function endWith(observed: ObservedOperation, result: Result): Result {
  if (result.kind === 'stream') return result;
  if (result.kind === 'error') observed.fail(result.errors);
  else if (result.rest !== undefined) return withRest(result, endAfter(observed, result.rest));
  observed.end();
  return result;
}

function endAfter(observed: ObservedOperation, rest: RemainingResults): RemainingResults {
  return observedResults(rest, async (read) => {
    try {
      const item = await observed.run(read);
      if (item.done === true) observed.end();
      return item;
    } catch (error) {
      observed.fail([error]);
      observed.end();
      throw error;
    }
  });
}
