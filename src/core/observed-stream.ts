import { events, type StreamEndEvent, type StreamStartEvent } from '../diagnostics/events.ts';
import {
  type ErrorOrigin,
  type ExecuteOperation,
  type PreparedOperation,
  type RemainingResults,
  withRest,
} from '../execution/types.ts';
import { settle } from '../options/values.ts';

/** A stream of results that subscribers of the diagnostics channels observe. */
export class ObservedStream {
  #payloads = 0;
  readonly #start: StreamStartEvent;
  readonly #startedAt = performance.now();
  #hasEnded = false;

  constructor(start: StreamStartEvent) {
    this.#start = start;
    events.streamStart.publish(start);
  }

  count(): void {
    this.#payloads++;
  }

  /** Publishes the end of the stream once. */
  end(reason: StreamEndEvent['reason']): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const duration = performance.now() - this.#startedAt;
    events.streamEnd.publish({ stream: this.#start, payloads: this.#payloads, reason, duration });
  }
}

/** Publishes the start of a stream; undefined without a subscriber. */
export function observeStream(
  kind: StreamStartEvent['kind'],
  operation: PreparedOperation,
  origin: ErrorOrigin | undefined,
): ObservedStream | undefined {
  const { streamStart, streamEnd } = events;
  if (!streamStart.hasSubscribers && !streamEnd.hasSubscribers) return undefined;
  return new ObservedStream({ kind, operation, origin });
}

/** Adds the events of streams to an operation that may have several results. */
export function withStreamEvents(operation: PreparedOperation): PreparedOperation {
  const execute: ExecuteOperation = (inputs) =>
    settle(operation.execute(inputs), (outcome) => {
      const stream = outcome.rest && observeStream('incremental', operation, inputs.origin);
      return stream && outcome.rest ? withRest(outcome, observeRest(outcome.rest, stream)) : outcome;
    });
  return { ...operation, execute };
}

function observeRest(rest: RemainingResults, stream: ObservedStream): RemainingResults {
  stream.count();
  return {
    async next() {
      try {
        const result = await rest.next();
        if (result.done === true) stream.end('completed');
        else stream.count();
        return result;
      } catch (error) {
        stream.end('failed');
        throw error;
      }
    },
    return() {
      stream.end('cancelled');
      return rest.return();
    },
    openIds: rest.openIds,
  };
}
