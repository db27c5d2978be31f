/** A stock of read buffers that are used again and again. */
export interface Chunks {
  /** A buffer for one transfer. */
  take(): Buffer;
  give(chunk: Buffer): void;
}

const KIB = 1024;
// Large ones while few transfers are under way (fewer trips to the thread pool), the usual size until the stock is used
// up, small ones beyond.
const LARGE = 1024 * KIB;
const USUAL = 256 * KIB;
const SMALL = 64 * KIB;

/** Bounds the memory of all transfers: buffers of `capacity` bytes are lent at once, of which a quarter is kept when idle. */
export function createChunks(capacity: number): Chunks {
  const free = new Map<number, Buffer[]>([
    [LARGE, []],
    [USUAL, []],
  ]);
  let lent = 0;
  let kept = 0;

  return {
    take() {
      const size = lent + LARGE <= capacity / 2 ? LARGE : lent + USUAL <= capacity ? USUAL : SMALL;
      if (size === SMALL) return Buffer.allocUnsafeSlow(SMALL);
      lent += size;
      const chunk = free.get(size)?.pop();
      if (chunk === undefined) return Buffer.allocUnsafeSlow(size);
      kept -= size;
      return chunk;
    },
    give(chunk) {
      const stock = free.get(chunk.length);
      if (stock === undefined) return;
      lent -= chunk.length;
      if (kept + chunk.length > capacity / 4) return;
      kept += chunk.length;
      stock.push(chunk);
    },
  };
}
