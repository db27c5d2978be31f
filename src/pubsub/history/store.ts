import type { EventLink } from '../cursor.ts';

/** An event of the history. */
export interface StoredEvent extends EventLink {
  readonly payload: unknown;
  /** Returns the length of the payload as JSON. */
  readonly size: () => number;
}

/** The size and the age of a channel's history. */
export interface HistoryExtent {
  readonly length: number;
  /** The time of the oldest event, in milliseconds since 1970; undefined without events. */
  readonly oldest: number | undefined;
}

/** Stores the last events of each channel. */
export interface HistoryStore {
  /** Returns the id of the newest event of a channel, or `START`. */
  newest(channel: string): Promise<string>;
  /**
   * Reads the id of the newest event without repeating the read; undefined without an event or without a
   * reply. Only stores whose messages can be dropped have it.
   */
  peek?(channel: string): Promise<string | undefined>;
  /**
   * Returns the events that follow an id, oldest first, a limited number per call; undefined if they are not
   * all stored.
   */
  read(channel: string, after: string): Promise<readonly StoredEvent[] | undefined>;
  extent(channel: string): Promise<HistoryExtent>;
}

/** The limits of the history of one topic. */
export interface HistoryLimits {
  /** Events. */
  readonly length: number;
  /** Milliseconds. */
  readonly age: number;
}

/** The id before the first event of a channel. */
export const START = '0-0';

/**
 * Milliseconds after which the id of the newest event is forgotten, in addition to `age`: clients of an idle
 * topic can resume.
 */
export const IDLE_MILLISECONDS: number = 7 * 24 * 60 * 60 * 1000;

/** The maximum number of events that `read` returns. */
export const PAGE_LENGTH = 256;
