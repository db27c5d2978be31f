import { createFrameWriter, type FrameWriter } from './frames.ts';

/** Something with messages to write. */
export interface Sender {
  flush(): void;
}

/** Collects the sockets that have something to write and writes each once per burst. */
export interface Outbox {
  readonly write: FrameWriter;
  /** Has the sender flushed within a millisecond. */
  add(sender: Sender): void;
  /** Has the sender flushed when the current turn of the event loop ends: somebody waits for an answer. */
  hasten(sender: Sender): void;
  /** Counts a message, so that producers know when to let the event loop turn. */
  count(): void;
  /** True when so much is queued that a producer should await `turn()`. */
  congested(): boolean;
  /** Hands over what is queued and lets the event loop turn. */
  turn(): Promise<void>;
}

/** A burst is what arrives within this many milliseconds: events of one cause often come in successive turns. */
const BURST = 1;
/** Sockets written between two looks at the event loop, so that pings and handshakes are served in a huge fan-out. */
const SLICE = 512;
/** Messages queued before producers wait for a turn. */
const MANY = 32_768;

export function createOutbox(): Outbox {
  let waiting: Sender[] = [];
  let hasty: Sender[] = [];
  let armed = false;
  let messages = 0;

  function flushBurst(): void {
    const senders = waiting;
    waiting = senders.length > SLICE ? senders.splice(SLICE) : [];
    armed = waiting.length > 0;
    if (armed) setImmediate(flushBurst);
    else messages = 0;
    for (const sender of senders) sender.flush();
  }

  function flushHasty(): void {
    const senders = hasty;
    hasty = [];
    for (const sender of senders) sender.flush();
  }

  return {
    write: createFrameWriter(),
    add(sender) {
      waiting.push(sender);
      if (armed) return;
      armed = true;
      setTimeout(flushBurst, BURST);
    },
    hasten(sender) {
      if (hasty.push(sender) === 1) setImmediate(flushHasty);
    },
    count() {
      messages++;
    },
    congested: () => messages > MANY,
    turn() {
      flushBurst();
      return new Promise((resolve) => setImmediate(resolve));
    },
  };
}
