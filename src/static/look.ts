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
  readonly memory: Memory;
  readonly glance: Glance;
  /** Milliseconds for which what was seen may be trusted. */
  readonly window: number;
  /** Told of each entry that is remembered. */
  readonly kept: (slot: Slot, entry: Entry) => void;
}

/** Called once, with an error or with what was found. */
export type Done = (error: unknown, found: Found | undefined) => void;

/** What is remembered of a slot, if a look on the event loop says that it is so still. */
export function recognise(eyes: Eyes, slot: Slot): Entry | undefined {
  const { entry } = slot;
  if (entry === undefined || entry.young || !eyes.glance(entry.witnesses)) return undefined;
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
  areUnchanged(entry.witnesses, (error, unchanged) => {
    if (error !== undefined) return done(error, undefined);
    if (!unchanged) return reload(eyes, slot, done);
    slot.trustedUntil = trustUntil(entry, eyes.window);
    done(undefined, entry);
  });
}

function reload(eyes: Eyes, slot: Slot, done: Done): void {
  eyes.memory.forget(slot);
  eyes.load(slot.key).then(
    (found) => {
      if (found.kind === 'entry') {
        eyes.memory.keep(slot, found);
        eyes.kept(slot, found);
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
