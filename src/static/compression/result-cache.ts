/** The compressed bytes, or `useless` if they are not smaller than the file. */
export type CompressionResult = Buffer | 'useless';

interface Stored {
  readonly result: CompressionResult;
  usedAt: number;
}

// Results that were used within this time are not evicted, so that more files than fit cause no endless
// recompression.
const MIN_IDLE_MS = 60_000;
// A result without bytes, its key and its place in the Map take about this many bytes.
const OVERHEAD = 200;

/** Results of compression in memory, by content and coding. `maxBytes` bounds them. */
export class ResultCache {
  readonly #maxBytes: number;
  /** The least recently inserted results are first. */
  readonly #stored = new Map<string, Stored>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(key: string): CompressionResult | undefined {
    const stored = this.#stored.get(key);
    if (stored === undefined) return undefined;
    stored.usedAt = performance.now();
    return stored.result;
  }

  /**
   * Makes room for a result by evicting results that are not in use. Returns false if there are too few of
   * them.
   */
  makeRoom(bytes: number): boolean {
    const needed = bytes + OVERHEAD;
    if (needed > this.#maxBytes) return false;
    if (this.#bytes + needed <= this.#maxBytes) return true;
    const idleSince = performance.now() - MIN_IDLE_MS;
    for (const [key, stored] of this.#stored) {
      if (stored.usedAt > idleSince) continue;
      this.#stored.delete(key);
      this.#bytes -= sizeOf(stored.result);
      if (this.#bytes + needed <= this.#maxBytes) return true;
    }
    return false;
  }

  /** Stores a result if there is room for it. */
  set(key: string, result: CompressionResult): void {
    if (this.#stored.has(key) || !this.makeRoom(sizeOf(result) - OVERHEAD)) return;
    this.#stored.set(key, { result, usedAt: performance.now() });
    this.#bytes += sizeOf(result);
  }
}

function sizeOf(result: CompressionResult): number {
  return OVERHEAD + (result === 'useless' ? 0 : result.length);
}
