/** Choices read from a list of bytes, so that fast-check can shrink a whole case by shrinking the bytes. Past its end every choice is the first. */
export interface Tape {
  /** A number from 0 to below `count`. */
  choose(count: number): number;
  /** True in so many of 256 cases. */
  chance(of256: number): boolean;
  pick<T>(items: readonly T[]): T;
}

export function readTape(bytes: Uint8Array): Tape {
  let at = 0;
  const next = (): number => bytes[at++] ?? 0;
  return {
    choose: (count) => next() % count,
    chance: (of256) => 255 - next() < of256,
    pick: (items) => items[next() % items.length] as (typeof items)[number],
  };
}

/** A number that depends on nothing but a text and a seed: what a field does must not depend on when it is asked. */
export function hash(text: string, seed: number): number {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  for (let i = 0; i < text.length; i++) {
    state = Math.imul(state ^ text.charCodeAt(i), 0x01000193) >>> 0;
    state ^= state >>> 13;
  }
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b) >>> 0;
  return (state ^ (state >>> 13)) >>> 0;
}
