import type { GraphQLError } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { toGraphQLError } from '../core/errors.ts';
import { withExtensions } from '../core/operation-hook.ts';
import {
  type ExecutionInputs,
  type ExecutionOutcome,
  isThenable,
  type PreparedOperation,
  type ResultStream,
} from '../execution/types.ts';
import { isStream, type OpenSource, openSource, type SourceResult } from './source-stream.ts';

/** The numbers of source streams, for `stats()`. */
export interface SourceCounters {
  /** Source streams that are being read. */
  sources: number;
  /** Source streams whose `return` was called and has not finished. */
  unreleased: number;
}

/** Consumes the results of one source stream: an operation, or a group of equal ones. */
export interface EventConsumer {
  readonly inputs: ExecutionInputs;
  /** The JSON text of the `extensions` to add to each result. */
  readonly extensions: string | undefined;
  /** Returns the context of the next event; undefined if all events have the context of `inputs`. */
  readonly contextForEvent: (() => MaybePromise<unknown>) | undefined;
  /** False while no client waits for events; they are then read but not executed. */
  isWanted(): boolean;
  /** Receives the result of one event. */
  onResult(outcome: ExecutionOutcome): void;
  /** Called before each execution until it returns undefined; a promise pauses the source. */
  waitForDrain(): Promise<void> | undefined;
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
 * Opens the source stream of a subscription, or of another operation by `open`, and executes its events one
 * after the other. The function that it returns releases the source.
 */
export function consumeSource(
  prepared: PreparedOperation,
  consumer: EventConsumer,
  counters: SourceCounters,
  open: OpenSource = openSource,
): () => void {
  let iterator: AsyncIterator<unknown> | undefined;
  let released = false;

  async function read(): Promise<void> {
    // Awaited even if it is not a promise, so that the consumer is called after `consumeSource` has returned.
    const opened: SourceResult = await open(prepared, consumer.inputs);
    if (!isStream(opened)) {
      if (!released) consumer.fail(opened.errors ?? []);
      return;
    }
    iterator = opened[Symbol.asyncIterator]();
    counters.sources++;
    // Released while the source was being opened.
    if (released) return returnIterator(iterator, consumer, counters);
    const { contextForEvent } = consumer;
    const { variableValues, origin } = consumer.inputs;
    let { contextValue } = consumer.inputs;
    for (;;) {
      const { done, value } = await iterator.next();
      if (released) return;
      if (done === true) break;
      if (!consumer.isWanted()) continue;
      for (let drained = consumer.waitForDrain(); drained !== undefined; drained = consumer.waitForDrain()) {
        await drained;
        if (released) return;
      }
      if (contextForEvent !== undefined) {
        contextValue = await contextForEvent();
        if (released) return;
      }
      const running = prepared.execute({ rootValue: value, contextValue, variableValues, origin });
      const outcome = isThenable(running) ? await running : running;
      if (released) return;
      consumer.onResult(withExtensions(outcome, consumer.extensions));
    }
    markReleased();
    consumer.complete();
  }

  function markReleased(): void {
    if (iterator !== undefined) counters.sources--;
    iterator = undefined;
    released = true;
  }

  read().catch((error) => {
    if (released) return;
    const source = iterator;
    markReleased();
    // A failed execution leaves the source open. `return` of a source that has thrown has no effect.
    source?.return?.().catch(() => undefined);
    consumer.fail([toGraphQLError(error)]);
  });

  return () => {
    if (released) return;
    released = true;
    if (iterator !== undefined) returnIterator(iterator, consumer, counters);
  };
}

/** Consumes several results of one operation, like the events of a subscription. */
export function consumeResults(
  { results, toOutcome }: ResultStream,
  prepared: PreparedOperation,
  consumer: EventConsumer,
  counters: SourceCounters,
): () => void {
  const execute: PreparedOperation['execute'] = ({ rootValue }) => toOutcome(rootValue);
  return consumeSource({ ...prepared, execute }, consumer, counters, () => results);
}

/**
 * Counts the release instead of awaiting it: `return` of an async generator waits for a pending `await` in
 * it.
 */
function returnIterator(
  iterator: AsyncIterator<unknown>,
  consumer: EventConsumer,
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
