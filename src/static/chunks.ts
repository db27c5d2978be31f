const CHUNK = 256 * 1024;
const SMALL_CHUNK = 64 * 1024;

/** A stock of read buffers that are used again and again. */
export interface Chunks {
  /** A buffer for one transfer: a large one while the stock lasts, a small one beyond. */
  take(): Buffer;
  give(chunk: Buffer): void;
}

/** Bounds the memory of all transfers: `capacity` bytes of large buffers, of which a quarter is kept when idle. */
export function createChunks(capacity: number): Chunks {
  const free: Buffer[] = [];
  const most = Math.floor(capacity / CHUNK);
  let made = 0;
  return {
    take() {
      const chunk = free.pop();
      if (chunk !== undefined) return chunk;
      if (made >= most) return Buffer.allocUnsafeSlow(SMALL_CHUNK);
      made++;
      return Buffer.allocUnsafeSlow(CHUNK);
    },
    give(chunk) {
      if (chunk.length !== CHUNK) return;
      if (free.length < most / 4) free.push(chunk);
      else made--;
    },
  };
}
