import { stat } from 'node:fs';
import { meansAbsent } from '../file/file-errors.ts';
import { sameVersion } from '../file/file-version.ts';
import type { Found } from '../file/load.ts';
import type { Entry } from '../file/loaded-file.ts';
import type { Dependency } from '../file/resolve-file.ts';
import type { Breaker } from './circuit-breaker.ts';
import type { Memory, Slot } from './file-cache.ts';
import { recheckOf } from './is-unchanged-sync.ts';

/** Reads what a key leads to, anew. */
export type Load = (key: string) => Promise<Found>;

/** What a look needs. */
export interface LookupContext {
  readonly load: Load;
  /** Whether the links on the way to an entry lead to the same place, inside the root, as when it was loaded. */
  readonly isInPlace: (entry: Entry) => Promise<boolean>;
  readonly memory: Memory;
  /** The device whose files may be looked at on the event loop; undefined: none. */
  readonly device: bigint | undefined;
  /** Whether looks on the event loop are fast enough. */
  readonly breaker: Breaker;
  /** Milliseconds for which what was seen may be trusted. */
  readonly window: number;
  /** Told of each entry that is remembered. */
  readonly kept: (slot: Slot, entry: Entry) => void;
}

/** Called once, with an error or with what was found. */
export type Done = (error: unknown, found: Found | undefined) => void;

// Milliseconds after which the way to a remembered file is resolved again.
const RESOLVED_FOR = 60_000;

/** Whether a look on the event loop says that what is remembered of a slot is so still. */
export function isFresh(context: LookupContext, slot: Slot, now: number): boolean {
  const { entry, recheck } = slot;
  if (entry === undefined || recheck === undefined || now >= slot.resolvedUntil || !recheck()) return false;
  slot.trustedUntil = trustUntil(entry, context.window);
  return true;
}

/** Looks off the loop at what is remembered of a slot, or anew; what is found is remembered. */
export function revalidate(context: LookupContext, slot: Slot, done: Done): void {
  const { entry } = slot;
  if (entry === undefined || entry.young) {
    reload(context, slot, done);
    return;
  }
  const accept = (): void => {
    slot.trustedUntil = trustUntil(entry, context.window);
    done(undefined, entry);
  };
  areUnchanged(entry.dependencies, (error, unchanged) => {
    if (error !== undefined) done(error, undefined);
    else if (!unchanged) reload(context, slot, done);
    else if (performance.now() < slot.resolvedUntil) accept();
    else resolveAgain(context, slot, entry, (inPlace) => (inPlace ? accept() : reload(context, slot, done)));
  });
}

function resolveAgain(
  context: LookupContext,
  slot: Slot,
  entry: Entry,
  done: (inPlace: boolean) => void,
): void {
  const until = performance.now() + RESOLVED_FOR;
  context.isInPlace(entry).then(
    (inPlace) => {
      slot.resolvedUntil = inPlace ? until : 0;
      done(inPlace);
    },
    // What is wrong with it shows when it is loaded.
    () => done(false),
  );
}

function reload(context: LookupContext, slot: Slot, done: Done): void {
  context.memory.forget(slot);
  const until = performance.now() + RESOLVED_FOR;
  context.load(slot.key).then(
    (found) => {
      if (found.kind === 'entry') {
        context.memory.keep(slot, found);
        context.kept(slot, found);
        slot.recheck = found.young ? undefined : recheckOf(found.dependencies, context.device);
        slot.resolvedUntil = until;
        slot.trustedUntil = trustUntil(found, context.window);
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
  dependencies: readonly Dependency[],
  done: (error: unknown, unchanged: boolean) => void,
): void {
  let pending = dependencies.length;
  let unchanged = true;
  let failure: unknown;
  for (const { path, identity } of dependencies) {
    stat(path, { bigint: true }, (error, now) => {
      if (error === null) unchanged &&= identity !== undefined && sameVersion(identity, now);
      else if (meansAbsent(error)) unchanged &&= identity === undefined;
      else failure = error;
      if (--pending === 0) done(failure, unchanged);
    });
  }
}
