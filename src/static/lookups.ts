import { stat } from 'node:fs';
import type { Entry } from './entry.ts';
import type { Exchange } from './exchange.ts';
import { meansAbsent } from './file-errors.ts';
import { sameVersion } from './identity.ts';
import type { Found } from './load.ts';
import type { Witness } from './locate.ts';
import type { Memory, Slot } from './memory.ts';
import type { Settings } from './settings.ts';

/** Reads what a key leads to, anew. */
export type Load = (key: string) => Promise<Found>;

/** Ends an exchange with what its path led to. */
export type Conclude = (exchange: Exchange, error: unknown, found: Found | undefined) => void;

// Looks under way at once. More would only queue in libuv's pool, in front of everybody else's DNS and file work.
const MAX_LOOKING = 16;

/**
 * Group commit: whoever asks within one turn of the event loop shares one look, which starts after the last of them
 * arrived; whoever asks while it is under way shares the next one. So an answer is never older than its
 * request, and a path is looked at, read and hashed once, however many ask.
 */
export function createLookups(
  load: Load,
  settings: Settings,
  memory: Memory,
  conclude: Conclude,
): (exchange: Exchange) => void {
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
    examine(load, settings, memory, slot, (error, found) => {
      looking--;
      slot.state = 'idle';
      if (slot.waiting.length > 0) enqueue(slot);
      else memory.release(slot);
      if (queue.length > 0 && !scheduled) {
        scheduled = true;
        setImmediate(startQueued);
      }
      for (const exchange of served)
        exchange.scope.runInAsyncScope(conclude, undefined, exchange, error, found);
    });
  }

  return (exchange) => {
    const { slot } = exchange;
    slot.waiting.push(exchange);
    if (slot.state === 'idle') enqueue(slot);
  };
}

type Done = (error: unknown, found: Found | undefined) => void;

function examine(load: Load, settings: Settings, memory: Memory, slot: Slot, done: Done): void {
  const { entry } = slot;
  if (entry === undefined || entry.young) {
    reload(load, settings, memory, slot, done);
    return;
  }
  areUnchanged(entry.witnesses, (error, unchanged) => {
    if (error !== undefined) return done(error, undefined);
    if (!unchanged) return reload(load, settings, memory, slot, done);
    slot.trustedUntil = trustUntil(entry, settings.cache.revalidateAfter);
    done(undefined, entry);
  });
}

function reload(load: Load, settings: Settings, memory: Memory, slot: Slot, done: Done): void {
  memory.forget(slot);
  load(slot.key).then(
    (found) => {
      if (found.kind === 'entry') {
        memory.keep(slot, found);
        slot.trustedUntil = trustUntil(found, settings.cache.revalidateAfter);
      }
      done(undefined, found);
    },
    (error: unknown) => done(error, undefined),
  );
}

/** A file that changed within the window just passed is likely to change again: it is looked at each time. */
function trustUntil(entry: Entry, window: number): number {
  if (window === 0 || entry.young || Date.now() - entry.changedAt <= window) return 0;
  return performance.now() + window;
}

/** Looks again, off the event loop, at everything that led to an entry. */
function areUnchanged(
  witnesses: readonly Witness[],
  done: (error: unknown, unchanged: boolean) => void,
): void {
  let pending = witnesses.length;
  let unchanged = true;
  let failure: unknown;
  for (const { path, identity } of witnesses) {
    stat(path, { bigint: true }, (error, now) => {
      if (error === null) unchanged &&= identity !== undefined && sameVersion(identity, now);
      else if (meansAbsent(error)) unchanged &&= identity === undefined;
      else failure = error;
      if (--pending === 0) done(failure, unchanged);
    });
  }
}
