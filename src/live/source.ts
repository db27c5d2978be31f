import { setImmediate } from 'node:timers';
import type { ExecutionArgs, ExecutionResult, GraphQLError } from 'graphql';
import * as graphql from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { EventResult } from '../../types/pubsub.ts';
import { withExtensions } from '../core/admission.ts';
import { type ObservedStream, observeStream } from '../core/observed-stream.ts';
import { inTime } from '../execution/deadline.ts';
import { visitFields } from '../execution/document.ts';
import { refusalError, toGraphQLError } from '../execution/graphql-error.ts';
import { executionArgs, setErrorCode } from '../execution/graphql-js.ts';
import { optionalExport } from '../execution/graphql-version.ts';
import { protectSource } from '../execution/safe-execution.ts';
import { isTraced, requestContext, subscribeChannel, trace } from '../execution/tracing.ts';
import {
  type ExecutionInputs,
  type ExecutionOutcome,
  isThenable,
  type PreparedOperation,
  type RequestError,
} from '../execution/types.ts';
import { stepOf } from '../options/rules.ts';
import { settle } from '../options/values.ts';
import { returnSource, type Source } from '../pubsub/cursor.ts';
import { type OperationCursors, withCursor } from './cursors.ts';

/** The numbers of source streams, for `stats()`. */
export interface SourceCounters {
  /** Source streams that are being read. */
  sources: number;
  /** Source streams whose `return` was called and has not finished. */
  unreleased: number;
}

/** The context of one event, and its caller: undefined without the option `caller`. */
export interface EventContext {
  readonly contextValue: unknown;
  readonly caller: ExecutionInputs['caller'];
}

/** Consumes the results of one source stream: an operation, or a group of equal ones. */
export interface EventConsumer {
  readonly inputs: ExecutionInputs;
  /** The JSON text of the `extensions` to add to each result. */
  readonly extensions: string | undefined;
  /** Returns the context of the next event; undefined if all events have the context of `inputs`. */
  readonly contextForEvent: (() => MaybePromise<EventContext>) | undefined;
  /** Sets `access` of the inputs of an event. Returns the reason if the caller has lost what the operation requires. */
  readonly authorizeEvent: ((inputs: ExecutionInputs) => MaybePromise<RequestError | undefined>) | undefined;
  /** The cursors of the source; undefined if the option `cursors` is not set. */
  readonly cursors: OperationCursors | undefined;
  /** Called when the position of the source is known, if it has positions. */
  onStarted(): void;
  /** Called when the source stream is open. */
  onOpen(): void;
  /** False while no client waits for events; they are then read but not executed. */
  isWanted(): boolean;
  /** Receives the result of one event, with its signed cursor. */
  onResult(outcome: ExecutionOutcome, cursor?: string): void;
  /** Called for each event until it returns undefined; a promise pauses the source. */
  waitForDrain(): Promise<unknown> | undefined;
  /** Called when the source stream has ended. */
  complete(): void;
  /** Called when the source stream could not be opened or has failed. */
  fail(errors: readonly GraphQLError[]): void;
  /**
   * Fires the signal of `inputs`. Called only when the source is open: graphql 17 leaks a source that is
   * aborted earlier.
   */
  abort(): void;
}

/**
 * Opens the source stream of a subscription, and executes its events one after the other. The function that
 * it returns releases the source.
 */
export function consumeSource(
  prepared: PreparedOperation,
  consumer: EventConsumer,
  counters: SourceCounters,
): () => void {
  let iterator: AsyncIterator<unknown> | undefined;
  let stream: ObservedStream | undefined;
  let released = false;

  async function read(): Promise<void> {
    // Awaited even if it is not a promise, so that the consumer is called after `consumeSource` has returned.
    const { cursors } = consumer;
    const subscribe = () => openInTime(prepared, consumer);
    const opened: SourceResult = await (cursors === undefined ? subscribe() : cursors.resume(subscribe));
    if (!isStream(opened)) return released ? undefined : consumer.fail(opened.errors ?? []);
    iterator = opened[Symbol.asyncIterator]();
    counters.sources++;
    // Released while the source was being opened.
    if (released) return returnIterator(iterator, consumer, counters);
    stream = observeStream('subscription', prepared, consumer.inputs.origin);
    onSourceOpen(iterator, cursors, consumer);
    const inputsFor = createEventInputs(consumer, prepared);
    const steps = new LoopSteps();
    for (;;) {
      const { done, value: event, cursor }: EventResult<unknown> = stepOf(await iterator.next());
      // As `yield` of an async generator. Its rejection would end the process.
      const value = isThenable(event) ? await event : event;
      if (released) return;
      if (done) break;
      let waiting = steps.next() ?? consumer.waitForDrain();
      for (; waiting !== undefined; waiting = consumer.waitForDrain()) {
        await waiting;
        if (released) return;
      }
      if (!consumer.isWanted()) {
        cursors?.skip(cursor);
        continue;
      }
      const created = inputsFor(value);
      const inputs = isThenable(created) ? await created : created;
      if (released) return;
      if (!(inputs instanceof EventInputs)) return failSource(inputs.errors);
      const running = executeEvent(prepared, inputs);
      const outcome = isThenable(running) ? await running : running;
      if (released) return;
      const signed = cursors?.deliver(cursor);
      stream?.count();
      consumer.onResult(withMembers(outcome, consumer.extensions, signed), signed);
    }
    markReleased('completed');
    consumer.complete();
  }

  function markReleased(reason: 'completed' | 'failed'): void {
    stream?.end(reason);
    if (iterator !== undefined) counters.sources--;
    iterator = undefined;
    released = true;
  }

  function failSource(errors: readonly GraphQLError[]): void {
    const source = iterator;
    markReleased('failed');
    // A failed execution leaves the source open. `return` of a source that has thrown has no effect.
    returnSource(source);
    consumer.fail(errors);
  }

  read().catch((error) => {
    if (!released) failSource([toGraphQLError(error)]);
  });

  return () => {
    if (released) return;
    released = true;
    stream?.end('cancelled');
    if (iterator !== undefined) returnIterator(iterator, consumer, counters);
  };
}

/** Adds the `extensions` of the operation and the cursor of the event to a result, if there are any. */
function withMembers(
  outcome: ExecutionOutcome,
  extensions: string | undefined,
  cursor: string | undefined,
): ExecutionOutcome {
  if (extensions === undefined && cursor === undefined) return outcome;
  return withExtensions(outcome, cursor === undefined ? extensions : withCursor(extensions, cursor));
}

/** The inputs of one event. What tells whether its client is still there is that of the operation. */
class EventInputs implements ExecutionInputs {
  readonly rootValue: unknown;
  readonly contextValue: unknown;
  readonly variableValues: Record<string, unknown> | undefined;
  readonly isShared: boolean;
  readonly connectionParams: ExecutionInputs['connectionParams'];
  readonly caller: ExecutionInputs['caller'];
  access: ExecutionInputs['access'];
  caching: ExecutionInputs['caching'];
  readonly #operation: ExecutionInputs;

  constructor(operation: ExecutionInputs, rootValue: unknown, { contextValue, caller }: EventContext) {
    this.rootValue = rootValue;
    this.contextValue = contextValue;
    this.variableValues = operation.variableValues;
    this.isShared = operation.isShared === true;
    this.connectionParams = operation.connectionParams;
    this.caller = caller;
    this.access = operation.access;
    this.caching = undefined;
    this.#operation = operation;
  }

  get origin(): ExecutionInputs['origin'] {
    return this.#operation.origin;
  }

  get signal(): AbortSignal | undefined {
    return this.#operation.signal;
  }
}

/** Creates the function that returns the inputs of an event, or why its caller must not get it. */
function createEventInputs(
  { inputs, contextForEvent, authorizeEvent }: EventConsumer,
  { timeLimit }: PreparedOperation,
): (rootValue: unknown) => MaybePromise<EventInputs | RequestError> {
  const { contextValue, caller, origin } = inputs;
  if (contextForEvent === undefined)
    return (rootValue) => new EventInputs(inputs, rootValue, { contextValue, caller });
  return (rootValue) =>
    settle(inTime(timeLimit, contextForEvent(), origin), (context) => {
      const event = new EventInputs(inputs, rootValue, context);
      if (authorizeEvent === undefined) return event;
      return settle(inTime(timeLimit, authorizeEvent(event), origin), (refusal) => refusal ?? event);
    });
}

/** Executes one event. */
function executeEvent(prepared: PreparedOperation, inputs: EventInputs): MaybePromise<ExecutionOutcome> {
  const { around } = prepared;
  if (around === undefined) return prepared.execute(inputs);
  return around(inputs, prepared, () => prepared.execute(inputs));
}

/** Uses the positions of a source. Sources without `started` know their start when they are opened. */
function onSourceOpen(
  source: Source<unknown>,
  cursors: OperationCursors | undefined,
  consumer: EventConsumer,
): void {
  consumer.onOpen();
  if (cursors === undefined) return;
  cursors.follow(source);
  const started = source.started?.() ?? Promise.resolve();
  // The source itself reports its errors.
  started.then(() => consumer.onStarted()).catch(() => undefined);
}

/** Counts the release instead of awaiting it: `return` of an async generator waits for a pending `await` in it. */
export function returnIterator(
  iterator: Pick<AsyncIterator<unknown>, 'return'>,
  consumer: Pick<EventConsumer, 'abort'>,
  counters: SourceCounters,
): void {
  consumer.abort();
  counters.sources--;
  counters.unreleased++;
  const onReturned = (): void => {
    counters.unreleased--;
  };
  try {
    const returning = iterator.return?.();
    if (returning === undefined) {
      onReturned();
      return;
    }
    Promise.resolve(returning).then(onReturned, onReturned);
  } catch {
    onReturned();
  }
}

/** The source stream that a subscription's root field returned, or the errors that it returned instead. */
type SourceResult = AsyncIterable<unknown> | ExecutionResult;

/** graphql 17 checks the arguments in a separate step. */
type ValidateSubscriptionArgs = (args: ExecutionArgs) => readonly graphql.GraphQLError[] | ExecutionArgs;
const validateSubscriptionArgs = optionalExport('validateSubscriptionArgs') as
  | ValidateSubscriptionArgs
  | undefined;

/** Opens the source stream. `operation.execute` runs for each event, with the event as root value. */
type OpenSource = (operation: PreparedOperation, inputs: ExecutionInputs) => MaybePromise<SourceResult>;

/** Opens the source stream of a subscription. */
const openSource: OpenSource = (operation, inputs) =>
  isTraced(subscribeChannel)
    ? trace(subscribeChannel, requestContext(operation, inputs), () => open(operation, inputs))
    : open(operation, inputs);

/** Ends a subscription whose source is not open in time. A source that is open later is released. */
function openInTime(prepared: PreparedOperation, consumer: EventConsumer): MaybePromise<SourceResult> {
  const { inputs } = consumer;
  return inTime(prepared.timeLimit, openSource(prepared, inputs), inputs.origin, {
    onTimeout: () => consumer.abort(),
    discard: (opened) => {
      if (isStream(opened)) returnSource(opened[Symbol.asyncIterator]());
    },
  });
}

const open: OpenSource = (operation, inputs) => {
  const args = executionArgs(operation, inputs, { maxErrors: operation.maxErrors });
  protectSource(args, inputs);
  if (validateSubscriptionArgs === undefined) {
    return Promise.resolve(graphql.createSourceEventStream(args)).then(
      (result) => withCodes(result, operation),
      (error: unknown) => {
        if (selectsField(operation)) throw explained(error, operation);
        return { errors: [refusalError('The subscription selects no field', 'GRAPHQL_VALIDATION_FAILED')] };
      },
    );
  }
  const checked = validateSubscriptionArgs(args);
  return Array.isArray(checked)
    ? withCodes({ errors: checked }, operation)
    : graphql.createSourceEventStream(checked as ExecutionArgs);
};

/** Names the field without a source of events, which graphql 16 does not: its error has no path. */
function explained(error: unknown, { operation, schema }: PreparedOperation): unknown {
  if (!(error instanceof Error)) return error;
  const [, received] = /^Subscription field must return Async Iterable\. (.*)/.exec(error.message) ?? [];
  const field = operation.selectionSet.selections.find((each) => each.kind === graphql.Kind.FIELD);
  if (received !== undefined && field !== undefined) {
    const coordinate = `${schema.getSubscriptionType()?.name}.${field.name.value}`;
    error.message = `${coordinate} has no source of events. Its "subscribe" function, or the function of its name in rootValue, must return an async iterable. ${received}`;
  }
  return error;
}

/**
 * Whether a subscription has a field after `@skip` and `@include`: graphql 16 throws a TypeError for one that has none. Its
 * validation refuses conditions with variables.
 */
function selectsField(operation: PreparedOperation): boolean {
  let hasField = false;
  visitFields(
    operation,
    () => undefined,
    () => {
      hasField = true;
      return [];
    },
  );
  return hasField;
}

/** Adds the code to errors of variables, and of a schema without subscriptions. Errors of resolvers have a path. */
function withCodes(result: SourceResult, { maxErrors, schema }: PreparedOperation): SourceResult {
  if (isStream(result) || result.errors === undefined) return result;
  const errors = result.errors.slice(0, maxErrors);
  // graphql 17 refuses the operation in its validation.
  const isSupported = schema.getSubscriptionType() != null;
  const code = isSupported ? 'BAD_USER_INPUT' : 'GRAPHQL_VALIDATION_FAILED';
  for (const error of errors) if (error.path === undefined) setErrorCode(error, code);
  return { errors };
}

const isStream = (result: SourceResult): result is AsyncIterable<unknown> => Symbol.asyncIterator in result;

/** The steps of one loop without a pause, and the milliseconds of all loops together: steps may be large. */
const MAX_STEPS = 100;
const MAX_MILLISECONDS = 10;

/** The time of the first step in this turn of the event loop. */
let began: number | undefined;

function isTurnOver(): boolean {
  if (began !== undefined) return performance.now() - began > MAX_MILLISECONDS;
  began = performance.now();
  setImmediate(() => {
    began = undefined;
  });
  return false;
}

/** Counts the steps of a loop that would block the event loop if all its promises were resolved already. */
export class LoopSteps {
  #steps = 0;

  /** Called for each step. Returns a promise if the loop has to yield to the event loop before it. */
  next(): Promise<void> | undefined {
    const isOver = isTurnOver();
    if (++this.#steps % MAX_STEPS > 0 && !isOver) return undefined;
    return new Promise((resolve) => setImmediate(resolve));
  }
}
