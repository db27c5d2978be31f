/** One timer for everything that has a deadline. */
export interface Sweep {
  /** Milliseconds since the sweep was made. */
  now(): number;
  /** Starts the timer where it stands still. */
  wake(): void;
  stop(): void;
}

/**
 * Calls `visit` every `period` milliseconds for as long as it answers that something is left to watch.
 * The timer never keeps the process alive: what it watches does.
 */
export function createSweep(period: number, visit: (now: number) => boolean): Sweep {
  const born = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const now = (): number => Math.floor(performance.now() - born);
  const stop = (): void => {
    clearInterval(timer);
    timer = undefined;
  };
  return {
    now,
    stop,
    wake() {
      timer ??= setInterval(() => {
        if (!visit(now())) stop();
      }, period).unref();
    },
  };
}
