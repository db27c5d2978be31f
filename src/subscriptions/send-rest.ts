import { LoopSteps } from '../core/yield-to-event-loop.ts';
import { toGraphQLError } from '../execution/graphql-error.ts';
import type { RemainingResults } from '../execution/types.ts';
import { returnIterator, type SourceCounters } from './consume-source.ts';
import type { LiveOperation } from './live-operation.ts';

/**
 * Sends the results of an operation after its first one, each when the client has received the previous ones.
 * They are the source of the operation, which is released when the client cancels it or disconnects.
 */
export function sendRest(rest: RemainingResults, operation: LiveOperation, counters: SourceCounters): void {
  let isReading = true;
  counters.sources++;
  operation.appliesBackpressure = true;

  /** Returns false if the source was released before. */
  function stopReading(): boolean {
    if (!isReading) return false;
    isReading = false;
    counters.sources--;
    return true;
  }

  async function read(): Promise<void> {
    const steps = new LoopSteps();
    while (isReading) {
      await (operation.waitForDrain() ?? steps.next());
      if (!isReading) return;
      const { done, value } = await rest.next();
      if (!isReading) return;
      if (done === true) {
        stopReading();
        operation.complete();
      } else operation.send(value, 'soon');
    }
  }

  operation.setSource(() => {
    if (!isReading) return;
    isReading = false;
    returnIterator(rest, operation, counters);
  });
  read().catch((error) => {
    if (stopReading()) operation.fail([toGraphQLError(error)]);
  });
}
