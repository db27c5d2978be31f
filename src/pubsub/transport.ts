/** Carries messages between publishers and the subscribers of this process. */
export interface Transport {
  /** Resolves when the message was delivered or, with Redis, received by Redis. */
  publish(channel: string, payload: unknown): Promise<void>;
  /** Called for the first subscriber of a channel. */
  subscribe(channel: string): void;
  /** Called after the last subscriber of a channel has left. */
  unsubscribe(channel: string): void;
  /** Resolves when messages of the channel arrive. */
  ready(channel: string): Promise<void>;
  close(): Promise<void>;
}

/** Callbacks of a transport. */
export interface TransportEvents {
  /** A message has arrived. `size` returns its length as JSON. */
  message(channel: string, payload: unknown, size: () => number): void;
  /** Messages of all channels may have been lost. */
  gap(): void;
  /** Redis refuses subscriptions to the channel, or to every channel. */
  refused(error: Error, channel?: string): void;
  error(error: Error): void;
}

/** Delivers messages within this process. */
export function createLocalTransport({ message }: TransportEvents): Transport {
  const done = (): Promise<void> => Promise.resolve();
  return {
    publish(channel, payload) {
      let size: number | undefined;
      message(channel, payload, () => {
        size ??= jsonLength(payload);
        return size;
      });
      return done();
    },
    subscribe() {},
    unsubscribe() {},
    ready: done,
    close: done,
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
