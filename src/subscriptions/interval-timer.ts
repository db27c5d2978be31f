import { setImmediate } from 'node:timers';
/** One timer for all deadlines of an endpoint. */
export interface IntervalTimer {
  /** Milliseconds since the timer was created. */
  now(): number;
  /** Starts the timer if it is stopped. */
  start(): void;
  stop(): void;
}

/**
 * Calls `tick` every `period` milliseconds while it returns true, which means that deadlines are left.
 * Received data is handled before each tick: after a blocked event loop it may show that a deadline was met.
 * The timer never keeps the process alive.
 */
export function createIntervalTimer(period: number, tick: (now: number) => boolean): IntervalTimer {
  const created = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const now = (): number => Math.floor(performance.now() - created);
  const stop = (): void => {
    clearInterval(timer);
    timer = undefined;
  };
  const run = (): void => {
    if (timer !== undefined && !tick(now())) stop();
  };
  return {
    now,
    stop,
    start() {
      // The event loop polls for data between its timers and its immediates.
      timer ??= setInterval(() => setImmediate(run), period).unref();
    },
  };
}
