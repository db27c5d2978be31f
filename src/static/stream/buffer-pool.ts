const KIB = 1024;
// Large buffers need fewer calls of the thread pool and are used while few transfers run. Then medium buffers
// are used until the capacity is reached, and small buffers beyond it.
const LARGE = 512 * KIB;
const MEDIUM = 256 * KIB;
const SMALL = 64 * KIB;

/**
 * Read buffers for transfers. At most `capacity` bytes are in use or kept for reuse, and a quarter of it when
 * no transfer runs: a new buffer costs more than reading into it, because the kernel has to clear its pages
 * first.
 */
export class BufferPool {
  readonly #capacity: number;
  readonly #large: Buffer[] = [];
  readonly #medium: Buffer[] = [];
  #bytesInUse = 0;
  #bytesIdle = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Returns a buffer for one transfer, which must release it. */
  acquire(): Buffer {
    const size = this.#nextSize();
    if (size === SMALL) return this.acquireSmall();
    this.#bytesInUse += size;
    const buffer = (size === LARGE ? this.#large : this.#medium).pop();
    if (buffer === undefined) return Buffer.allocUnsafeSlow(size);
    this.#bytesIdle -= size;
    return buffer;
  }

  /** Returns a small buffer, which need not be released. */
  acquireSmall(): Buffer {
    return Buffer.allocUnsafeSlow(SMALL);
  }

  release(buffer: Buffer): void {
    if (buffer.length === SMALL) return;
    this.#bytesInUse -= buffer.length;
    if (this.#bytesInUse + this.#bytesIdle + buffer.length > this.#capacity) return;
    this.#bytesIdle += buffer.length;
    (buffer.length === LARGE ? this.#large : this.#medium).push(buffer);
    if (this.#bytesInUse === 0) this.#trim();
  }

  #trim(): void {
    while (this.#bytesIdle > this.#capacity / 4) {
      const buffer = this.#medium.pop() ?? this.#large.pop();
      this.#bytesIdle -= buffer?.length ?? this.#bytesIdle;
    }
  }

  #nextSize(): number {
    if (this.#bytesInUse + LARGE <= this.#capacity / 2) return LARGE;
    return this.#bytesInUse + MEDIUM <= this.#capacity ? MEDIUM : SMALL;
  }
}
