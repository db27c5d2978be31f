import type { GraphQLError } from 'graphql';
import { isThenable } from '../execution/promises.ts';
import type { ExecutionInputs, ExecutionOutcome, PreparedOperation } from '../execution/types.ts';
import { asGraphQLError, isStream, type Opened, openSource } from './source.ts';

/** Counts of sources, for `stats()`. */
export interface Counters {
  sources: number;
  /** Told to stop, not done yet. */
  unreleased: number;
}

/** Who reads a subscription's results: one operation, or a group. */
export interface Reader {
  readonly counters: Counters;
  readonly inputs: ExecutionInputs;
  /** False once nobody reads any more. */
  wanted(): boolean;
  /** The result of one event. */
  result(outcome: ExecutionOutcome): void;
  /** Asked before each execution, again and again: a promise holds the source up. */
  room(): Promise<void> | undefined;
  ended(): void;
  failed(errors: readonly GraphQLError[]): void;
  /** Fires the signal of `inputs`: when the source is open, as graphql 17 would lose one that is still being opened. */
  abort(): void;
}

/** Opens the source and executes its events one after the other. Returns what gives the source back. */
export function follow(prepared: PreparedOperation, reader: Reader): () => void {
  let iterator: AsyncIterator<unknown> | undefined;
  let released = false;

  async function read(): Promise<void> {
    // Awaited even where it is there already, so that nobody is told before `follow` has returned.
    const opened: Opened = await openSource(prepared, reader.inputs);
    if (!isStream(opened)) {
      if (!released) reader.failed(opened.errors ?? []);
      return;
    }
    iterator = opened[Symbol.asyncIterator]();
    reader.counters.sources++;
    // The last reader may have left while the source was being opened.
    if (released) return giveBack(iterator, reader);
    const { contextValue, variableValues } = reader.inputs;
    for (;;) {
      const { done, value } = await iterator.next();
      if (released) return;
      if (done === true) break;
      if (!reader.wanted()) continue;
      for (let room = reader.room(); room !== undefined; room = reader.room()) {
        await room;
        if (released) return;
      }
      const running = prepared.execute({ rootValue: value, contextValue, variableValues });
      const outcome = isThenable(running) ? await running : running;
      if (released) return;
      reader.result(outcome);
    }
    done();
    reader.ended();
  }

  function done(): void {
    if (iterator !== undefined) reader.counters.sources--;
    iterator = undefined;
    released = true;
  }

  read().catch((error) => {
    if (released) return;
    const source = iterator;
    done();
    // A failed execution leaves the source open; a source that threw is over, and returning it again does no harm.
    source?.return?.().catch(() => undefined);
    reader.failed([asGraphQLError(error)]);
  });

  return () => {
    if (released) return;
    released = true;
    if (iterator !== undefined) giveBack(iterator, reader);
  };
}

/** Never awaited: a generator stuck in an await cannot be returned (it is counted), a hand-written iterator can. */
function giveBack(iterator: AsyncIterator<unknown>, { counters, abort }: Reader): void {
  abort();
  counters.sources--;
  counters.unreleased++;
  const over = (): void => {
    counters.unreleased--;
  };
  try {
    const returning = iterator.return?.();
    if (returning === undefined) {
      over();
      return;
    }
    Promise.resolve(returning).then(over, over);
  } catch {
    over();
  }
}
