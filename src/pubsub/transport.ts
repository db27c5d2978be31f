import type { EventLink } from './cursor.ts';
import type { HistoryStore, MemoryHistory } from './history.ts';

/** Carries messages between publishers and the subscribers of this process. */
export interface Transport {
  /** The stored events; undefined without the option `history`. */
  readonly history: HistoryStore | undefined;
  /** Whether messages of the subscribed channels arrive. */
  readonly isConnected: boolean;
  /** Resolves when the message was delivered or, with Redis, received by Redis. */
  publish(channel: string, payload: unknown): Promise<void>;
  /** Called for the first subscriber of a channel. */
  subscribe(channel: string): void;
  /** Called after the last subscriber of a channel has unsubscribed. */
  unsubscribe(channel: string): void;
  /** Resolves when messages of the channel arrive. */
  ready(channel: string): Promise<void>;
  close(): Promise<void>;
}

/** Callbacks of a transport. */
export interface TransportEvents {
  /**
   * A message has arrived. `size` returns its length as JSON. A message that is in the history has a `link`.
   */
  message(channel: string, payload: unknown, size: () => number, link?: EventLink): void;
  /** Messages of the channel arrive from now on. Called again after each lost connection. */
  subscribed(channel: string): void;
  /** Messages of all channels may have been lost. */
  gap(): void;
  /** Redis refuses subscriptions to the channel, or to every channel. */
  refused(error: Error, channel?: string): void;
  error(error: Error): void;
}

interface WellFormed {
  toWellFormed(): string;
}

/**
 * Returns the channel of a topic. It has U+FFFD for half of a surrogate pair: Redis returns the name of a channel
 * like this, because it was sent as UTF-8.
 */
export const channelOf = (prefix: string, topic: string): string =>
  ((prefix + topic) as string & WellFormed).toWellFormed();

/** Delivers messages within this process. */
export function createLocalTransport(events: TransportEvents, history?: MemoryHistory): Transport {
  const done = (): Promise<void> => Promise.resolve();
  return {
    history,
    isConnected: true,
    publish(channel, payload) {
      let known: number | undefined;
      const size = (): number => {
        known ??= jsonLength(payload);
        return known;
      };
      events.message(channel, payload, size, history?.append(channel, payload, size));
      return done();
    },
    subscribe: events.subscribed,
    unsubscribe() {},
    ready: done,
    close() {
      history?.close();
      return done();
    },
  };
}

/** The assumed length of payloads that JSON cannot express. */
const UNKNOWN_LENGTH = 1024;

function jsonLength(payload: unknown): number {
  try {
    return JSON.stringify(payload)?.length ?? 0;
  } catch {
    return UNKNOWN_LENGTH;
  }
}
