import { ALL_TAGS } from './tags.ts';

/** The tags per generation. */
const MAX_TAGS = 10_000;

/**
 * The recent invalidations of one process. An execution that began before an invalidation may have read old
 * data, so its result must not be stored, and the tags of a result are known only at its end.
 */
export class InvalidationLog {
  #version = 0;
  /** The result of an execution that began earlier cannot be stored, because the log does not reach back. */
  #oldest = 0;
  #youngStart = 0;
  #young = new Map<string, number>();
  #old = new Map<string, number>();

  /** Increases with each invalidation. */
  get version(): number {
    return this.#version;
  }

  add(tags: readonly string[]): void {
    this.#version++;
    if (tags.includes(ALL_TAGS)) {
      this.#forgetAll();
      return;
    }
    for (const tag of tags) {
      if (this.#young.size >= MAX_TAGS) this.#startGeneration();
      this.#young.set(tag, this.#version);
    }
  }

  /** Whether none of the tags was invalidated since `version`. */
  isCurrent(tags: readonly string[], version: number): boolean {
    if (version === this.#version) return true;
    if (version < this.#oldest) return false;
    return !tags.some((tag) => (this.#young.get(tag) ?? this.#old.get(tag) ?? 0) > version);
  }

  #startGeneration(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#oldest = this.#youngStart;
    this.#youngStart = this.#version;
  }

  #forgetAll(): void {
    this.#oldest = this.#version;
    this.#youngStart = this.#version;
    this.#young = new Map();
    this.#old = new Map();
  }
}
