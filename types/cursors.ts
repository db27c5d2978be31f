import type { Hook } from './connect.ts';

/** A secret of at least 32 bytes. */
export type CursorKey = string | Uint8Array;

/** Options of cursors, with which clients continue a subscription after the last event that they received. */
export interface CursorOptions {
  /**
   * The secret that signs cursors, at least 32 bytes long; equal in all processes. Of a list, the first one
   * signs, and cursors of all are accepted: put a new secret first, and remove the old one after `maxAge`.
   */
  key: CursorKey | readonly CursorKey[];
  /**
   * Returns the user of a context. A cursor is valid for its user only. Subscriptions with a `share` key are
   * bound to that key instead.
   * @default none: cursors are bound to their operation only
   */
  user?: Hook<[context: unknown], string | number | null | undefined> | undefined;
  /** Milliseconds for which a cursor is valid. @default 86_400_000 (a day) */
  maxAge?: number | undefined;
}
