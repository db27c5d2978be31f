import type { Exchange } from './exchange.ts';
import type { Found } from './load.ts';
import { type Eyes, examine } from './look.ts';
import type { Slot } from './memory.ts';

/** Ends an exchange with what its path led to. */
export type Conclude = (exchange: Exchange, error: unknown, found: Found | undefined) => void;

// Looks under way at once. More would only queue in libuv's pool, in front of everybody else's DNS and file work.
const MAX_LOOKING = 16;

/**
 * Group commit: whoever asks within one turn of the event loop shares one look, which starts after the last of them
 * arrived; whoever asks while it is under way shares the next one. So an answer is never older than its
 * request, and a path is looked at, read and hashed once, however many ask.
 */
export function createLookups(eyes: Eyes, conclude: Conclude): (exchange: Exchange) => void {
  let queue: Slot[] = [];
  let scheduled = false;
  let looking = 0;

  function enqueue(slot: Slot): void {
    slot.state = 'queued';
    queue.push(slot);
    if (scheduled) return;
    scheduled = true;
    // The check phase: every request that this turn's poll phase delivered has been handled by then.
    setImmediate(startQueued);
  }

  function startQueued(): void {
    scheduled = false;
    const count = Math.min(queue.length, MAX_LOOKING - looking);
    const batch = count === queue.length ? queue : queue.slice(0, count);
    queue = count === queue.length ? [] : queue.slice(count);
    for (const slot of batch) start(slot);
  }

  function start(slot: Slot): void {
    const served = slot.waiting;
    slot.waiting = [];
    slot.state = 'looking';
    looking++;
    examine(eyes, slot, (error, found) => {
      looking--;
      slot.state = 'idle';
      if (slot.waiting.length > 0) enqueue(slot);
      else eyes.memory.release(slot);
      if (queue.length > 0 && !scheduled) {
        scheduled = true;
        setImmediate(startQueued);
      }
      for (const exchange of served) concludeApart(exchange, error, found);
    });
  }

  /** What one request's handlers throw must not leave the others waiting. */
  function concludeApart(exchange: Exchange, error: unknown, found: Found | undefined): void {
    try {
      exchange.scope.runInAsyncScope(conclude, undefined, exchange, error, found);
    } catch (thrown) {
      queueMicrotask(() => {
        throw thrown;
      });
    }
  }

  return (exchange) => {
    const { slot } = exchange;
    slot.waiting.push(exchange);
    if (slot.state === 'idle') enqueue(slot);
  };
}
