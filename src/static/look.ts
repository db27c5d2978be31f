import { stat } from 'node:fs';
import type { Entry } from './entry.ts';
import { meansAbsent } from './file-errors.ts';
import type { Glance } from './glance.ts';
import { sameVersion } from './identity.ts';
import type { Found } from './load.ts';
import type { Witness } from './locate.ts';
import type { Memory, Slot } from './memory.ts';

/** Reads what a key leads to, anew. */
export type Load = (key: string) => Promise<Found>;

/** What a look needs. */
export interface Eyes {
  readonly load: Load;
  /** Whether the links on the way to an entry lead to the same place, inside the root, as when it was loaded. */
  readonly isInPlace: (entry: Entry) => Promise<boolean>;
  readonly memory: Memory;
  readonly glance: Glance;
  /** Milliseconds for which what was seen may be trusted. */
  readonly window: number;
  /** Told of each entry that is remembered. */
  readonly kept: (slot: Slot, entry: Entry) => void;
}

/** Called once, with an error or with what was found. */
export type Done = (error: unknown, found: Found | undefined) => void;

// Milliseconds after which the way to a remembered file is resolved again.
const RESOLVED_FOR = 60_000;

/** What is remembered of a slot, if a look on the event loop says that it is so still. */
export function recognise(eyes: Eyes, slot: Slot, now: number): Entry | undefined {
  const { entry } = slot;
  if (entry === undefined || entry.young || now >= slot.resolvedUntil) return undefined;
  if (!eyes.glance(entry.witnesses)) return undefined;
  slot.trustedUntil = trustUntil(entry, eyes.window);
  return entry;
}

/** Looks off the loop at what is remembered of a slot, or anew; what is found is remembered. */
export function examine(eyes: Eyes, slot: Slot, done: Done): void {
  const { entry } = slot;
  if (entry === undefined || entry.young) {
    reload(eyes, slot, done);
    return;
  }
  const accept = (): void => {
    slot.trustedUntil = trustUntil(entry, eyes.window);
    done(undefined, entry);
  };
  areUnchanged(entry.witnesses, (error, unchanged) => {
    if (error !== undefined) done(error, undefined);
    else if (!unchanged) reload(eyes, slot, done);
    else if (performance.now() < slot.resolvedUntil) accept();
    else resolveAgain(eyes, slot, entry, (inPlace) => (inPlace ? accept() : reload(eyes, slot, done)));
  });
}

function resolveAgain(eyes: Eyes, slot: Slot, entry: Entry, done: (inPlace: boolean) => void): void {
  const until = performance.now() + RESOLVED_FOR;
  eyes.isInPlace(entry).then(
    (inPlace) => {
      slot.resolvedUntil = inPlace ? until : 0;
      done(inPlace);
    },
    // What is wrong with it shows when it is loaded.
    () => done(false),
  );
}

function reload(eyes: Eyes, slot: Slot, done: Done): void {
  eyes.memory.forget(slot);
  const until = performance.now() + RESOLVED_FOR;
  eyes.load(slot.key).then(
    (found) => {
      if (found.kind === 'entry') {
        eyes.memory.keep(slot, found);
        eyes.kept(slot, found);
        slot.resolvedUntil = until;
        slot.trustedUntil = trustUntil(found, eyes.window);
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
