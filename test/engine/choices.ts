/**
 * Choices that are read from bytes, so that fast-check can shrink a case by shrinking the bytes. After the last byte every
 * choice is the first one.
 */
export interface Choices {
  /** A number from 0 to below `count`. */
  choose(count: number): number;
  /** Returns true in this many of 256 cases. */
  chance(of256: number): boolean;
  pick<T>(items: readonly T[]): T;
}

export function readChoices(bytes: Uint8Array): Choices {
  let at = 0;
  const next = (): number => bytes[at++] ?? 0;
  return {
    choose: (count) => next() % count,
    chance: (of256) => 255 - next() < of256,
    pick: (items) => items[next() % items.length] as (typeof items)[number],
  };
}

/** A pseudo-random number from a text and a seed, so that a field behaves the same whenever it is called. */
export function hash(text: string, seed: number): number {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  for (let i = 0; i < text.length; i++) {
    state = Math.imul(state ^ text.charCodeAt(i), 0x01000193) >>> 0;
    state ^= state >>> 13;
  }
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b) >>> 0;
  return (state ^ (state >>> 13)) >>> 0;
}
