// From the module: fake timers of a test must not delay events.
import { setImmediate, setTimeout } from 'node:timers';

/** A queue of messages that can be written. */
export interface Flushable {
  flush(): void;
}

/** Flushes the queues of an endpoint, each once per burst, however many messages it has. */
export interface FlushScheduler {
  /** Flushes the queue after a millisecond, together with messages that have arrived until then. */
  flushBatched(queue: Flushable): void;
  /** Flushes the queue at the end of this iteration of the event loop: the client waits for a response. */
  flushSoon(queue: Flushable): void;
  /** Counts a queued message, for `isBackpressured`. */
  countMessage(): void;
  /** True if so many messages are queued that a producer should await `yield()`. */
  isBackpressured(): boolean;
  /** Flushes all queues and yields to the event loop. */
  yield(): Promise<void>;
}

/** Milliseconds of a burst: related events often arrive in successive iterations of the event loop. */
const BURST_TIME = 1;
/** Queues flushed before the scheduler yields, so that a huge fan-out does not delay pings and handshakes. */
const MAX_FLUSHES = 512;
/** The number of queued messages from which producers have to yield. */
const MAX_MESSAGES = 32_768;

export function createFlushScheduler(): FlushScheduler {
  let batched: Flushable[] = [];
  let urgent: Flushable[] = [];
  let isScheduled = false;
  let messages = 0;

  function flushBurst(): void {
    const queues = batched;
    batched = queues.length > MAX_FLUSHES ? queues.splice(MAX_FLUSHES) : [];
    isScheduled = batched.length > 0;
    if (isScheduled) setImmediate(flushBurst);
    else messages = 0;
    for (const queue of queues) queue.flush();
  }

  /**
   * Executing the first events of a burst may take longer than the time of the burst. The event loop then reads
   * the other events, which have arrived meanwhile, before the sockets are written.
   */
  function flushAfterPoll(): void {
    setImmediate(flushBurst);
  }

  function flushUrgent(): void {
    const queues = urgent;
    urgent = [];
    for (const queue of queues) queue.flush();
  }

  return {
    flushBatched(queue) {
      batched.push(queue);
      if (isScheduled) return;
      isScheduled = true;
      setTimeout(flushAfterPoll, BURST_TIME);
    },
    flushSoon(queue) {
      if (urgent.push(queue) === 1) setImmediate(flushUrgent);
    },
    countMessage() {
      messages++;
    },
    isBackpressured: () => messages > MAX_MESSAGES,
    yield() {
      flushBurst();
      return new Promise((resolve) => setImmediate(resolve));
    },
  };
}
