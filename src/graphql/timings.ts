/** The durations of one request's phases, for its `Server-Timing` header (W3C Server Timing). */
export interface Timings {
  /** Ends a phase, which began at the end of the previous phase. */
  end(phase: string): void;
  /** The value of the header. */
  toString(): string;
}

/** Starts the clock for one request. */
export function startTimings(): Timings {
  const phases: string[] = [];
  let last = performance.now();
  return {
    end(phase) {
      const now = performance.now();
      phases.push(`${phase};dur=${(now - last).toFixed(2)}`);
      last = now;
    },
    toString: () => phases.join(', '),
  };
}
