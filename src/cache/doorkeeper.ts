/** Bits of the filter: 128 KiB. */
const BITS = 1 << 20;
/** Keys until the filter begins again; at this number about a tenth of new keys counts as known. */
const MAX_KEYS = 100_000;

/**
 * Recognises keys that were requested before, in a bounded amount of memory. A full store takes only results that
 * are requested twice, so that a scan of many different queries neither evicts results in use nor pays for storing.
 */
export class Doorkeeper {
  #bits: Uint32Array | undefined;
  #count = 0;

  /** Whether a key is known. Adds it. */
  knows(key: string): boolean {
    if (this.#bits === undefined || this.#count >= MAX_KEYS) {
      this.#bits = new Uint32Array(BITS / 32);
      this.#count = 0;
    }
    const bit = hash(key) & (BITS - 1);
    const mask = 1 << (bit & 31);
    const word = this.#bits[bit >>> 5] as number;
    if ((word & mask) !== 0) return true;
    this.#bits[bit >>> 5] = word | mask;
    this.#count++;
    return false;
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  return value ^ (value >>> 15);
}
