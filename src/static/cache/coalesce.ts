import type { Found } from '../file/load.ts';
import type { Exchange } from '../respond/request-context.ts';
import type { Slot } from './file-cache.ts';
import { isFresh, type LookupContext, revalidate } from './revalidate.ts';

/** Ends an exchange with what its path led to. */
export type Conclude = (exchange: Exchange, error: unknown, found: Found | undefined) => void;

// Looks under way at once. More would only queue in libuv's pool, in front of everybody else's DNS and file work.
const MAX_LOOKING = 16;
// Looks in one turn of the event loop, which on the loop take about a millisecond. The rest have the next turn.
const MAX_PER_TURN = 256;
// Looks on the loop from one reading of the clock to the next: a reading costs a tenth of a look.
const PER_READING = 8;

/**
 * Group commit: whoever asks within one turn of the event loop shares one look, which starts after the last of them
 * arrived; whoever asks while it is under way shares the next one. So an answer is never older than its
 * request, and a path is looked at, read and hashed once, however many ask.
 */
export function createLookups(context: LookupContext, conclude: Conclude): (exchange: Exchange) => void {
  let asked: Slot[] = [];
  let scheduled = false;
  let looking = 0;
  /** Those that a thread has to look at, when one is free. */
  const deferred: Slot[] = [];

  function enqueue(slot: Slot): void {
    slot.state = 'queued';
    asked.push(slot);
    schedule();
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    // The check phase: every request that this turn's poll phase delivered has been handled by then.
    setImmediate(lookAtAll);
  }

  function lookAtAll(): void {
    scheduled = false;
    const batch = asked;
    asked = batch.length > MAX_PER_TURN ? batch.splice(MAX_PER_TURN) : [];
    if (asked.length > 0) schedule();
    // First all the looks, then all the answers: the code of each is warm.
    const fresh: Exchange[] = [];
    for (let i = 0; i < batch.length; i += PER_READING) lookAtSome(batch.slice(i, i + PER_READING), fresh);
    lookAtDeferred();
    for (const exchange of fresh) concludeApart(exchange, undefined, exchange.slot.entry);
  }

  /** Looks on the loop, adds those whom a look served to `fresh`, and leaves the rest to threads. */
  function lookAtSome(slots: readonly Slot[], fresh: Exchange[]): void {
    const began = performance.now();
    let looked = false;
    for (const slot of slots) {
      const mayLook = slot.recheck !== undefined && context.breaker.allows(began);
      looked ||= mayLook;
      if (mayLook && isFresh(context, slot, began)) {
        slot.state = 'idle';
        for (const exchange of begin(slot)) fresh.push(exchange);
      } else deferred.push(slot);
    }
    if (looked) context.breaker.record(began, performance.now());
  }

  function lookAtDeferred(): void {
    while (looking < MAX_LOOKING && deferred.length > 0) lookOffLoop(deferred.shift() as Slot);
  }

  function lookOffLoop(slot: Slot): void {
    const served = begin(slot);
    slot.state = 'looking';
    looking++;
    revalidate(context, slot, (error, found) => {
      looking--;
      slot.state = 'idle';
      if (slot.waiting !== undefined) enqueue(slot);
      else context.memory.release(slot);
      lookAtDeferred();
      for (const exchange of served) concludeApart(exchange, error, found);
    });
  }

  /** Those whom the look that begins now will serve. */
  function begin(slot: Slot): Exchange[] {
    const served = slot.waiting ?? [];
    slot.waiting = undefined;
    return served;
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
    if (slot.waiting === undefined) slot.waiting = [exchange];
    else slot.waiting.push(exchange);
    if (slot.state === 'idle') enqueue(slot);
  };
}
