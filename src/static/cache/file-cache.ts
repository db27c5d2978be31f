import type { Entry } from '../file/loaded-file.ts';
import type { Exchange } from '../respond/request-context.ts';
import type { Recheck } from './is-unchanged-sync.ts';

/** Bounds of a memory. */
export interface Bounds {
  readonly maxBytes: number;
  readonly maxEntries: number;
}

/** A path below the mount, while something is known of it or somebody waits for it. */
export interface Slot {
  readonly key: string;
  /** Whether the key is spelled in a URL as it stands here, so that a request may be looked up by its raw path. */
  readonly literal: boolean;
  entry: Entry | undefined;
  /** The look on the event loop that tells whether the entry is as it was; undefined: threads have to look. */
  recheck: Recheck | undefined;
  /** Until when the entry may be answered unseen, on the monotonic clock. */
  trustedUntil: number;
  /** Until when the links on the way to the file count as they were found, on the monotonic clock. */
  resolvedUntil: number;
  /** Whether it was answered since the last sweep. */
  used: boolean;
  /** Those whom the next look will serve. No empty list: thousands of short-lived ones would outlive their generation. */
  waiting: Exchange[] | undefined;
  /** Whether a look is queued, or under way, for which it is too late to wait. */
  state: 'idle' | 'queued' | 'looking';
}

/** Entries by path, bounded by bytes and count. Only files that exist get in, so made-up paths cannot push any out. */
export interface Memory {
  /** The slot of a path, made when there is none. */
  slotOf(key: string): Slot;
  /** The slot of a path that something is known of. */
  peek(key: string): Slot | undefined;
  keep(slot: Slot, entry: Entry): void;
  forget(slot: Slot): void;
  /** Lets go of a slot that nobody waits for and nothing is known of. */
  release(slot: Slot): void;
}

// Not the bare root, which may need a redirect of the mount itself.
const LITERAL = /^\/[\w\-.~!$&'()*+,;=:@/]+$/;

/** Makes an empty memory. */
export function createMemory(bounds: Bounds): Memory {
  const slots = new Map<string, Slot>();
  let bytes = 0;
  let entries = 0;

  function forget(slot: Slot): void {
    if (slot.entry === undefined) return;
    bytes -= slot.entry.bytes;
    entries--;
    slot.entry = undefined;
    slot.recheck = undefined;
    slot.trustedUntil = 0;
  }

  /** Second chance: what was used since the last sweep goes to the end of the line instead of out. */
  function sweep(): void {
    for (const slot of slots.values()) {
      if (bytes <= bounds.maxBytes && entries <= bounds.maxEntries) return;
      if (slot.state !== 'idle' || slot.entry === undefined) continue;
      slots.delete(slot.key);
      if (slot.used) {
        slot.used = false;
        slots.set(slot.key, slot);
      } else forget(slot);
    }
  }

  return {
    slotOf(key) {
      const known = slots.get(key);
      if (known !== undefined) return known;
      const slot: Slot = {
        key,
        literal: LITERAL.test(key),
        entry: undefined,
        recheck: undefined,
        trustedUntil: 0,
        resolvedUntil: 0,
        used: false,
        waiting: undefined,
        state: 'idle',
      };
      slots.set(key, slot);
      return slot;
    },
    peek: (key) => slots.get(key),
    keep(slot, entry) {
      forget(slot);
      slot.entry = entry;
      bytes += entry.bytes;
      entries++;
      if (bytes > bounds.maxBytes || entries > bounds.maxEntries) sweep();
    },
    forget,
    release(slot) {
      if (slot.entry === undefined && slot.state === 'idle') slots.delete(slot.key);
    },
  };
}
