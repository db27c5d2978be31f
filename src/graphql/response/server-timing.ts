/** Durations of one request's phases, for its Server-Timing header (W3C Server Timing). */
export interface Phases {
  /** Ends a phase: what has passed since the last one ended is its. */
  end(name: string): void;
  /** The header. */
  toString(): string;
}

/** A stopwatch for one request. */
export function startPhases(): Phases {
  const parts: string[] = [];
  let last = performance.now();
  return {
    end(name) {
      const now = performance.now();
      parts.push(`${name};dur=${(now - last).toFixed(2)}`);
      last = now;
    },
    toString: () => parts.join(', '),
  };
}
