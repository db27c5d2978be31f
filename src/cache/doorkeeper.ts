/** Bits of the filter: 128 KiB. */
const BITS = 1 << 20;
/** Keys until the filter begins again; at this number about 3 % of new keys count as known. */
const MAX_KEYS = 100_000;
/** Keys begin with the digest of an operation. Its last characters separate operations as well as all of them. */
const SKIPPED = 32;

/**
 * Recognises keys that were requested before, with a Bloom filter: the doorkeeper of the TinyLFU paper. A full store
 * takes only results that are requested twice, so that a scan of many different queries evicts no results in use.
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
    const value = hash(key);
    const hadFirst = addBit(this.#bits, value);
    // Two bits per key: a new key that counts as known is stored, which costs more than its lookup.
    const hadSecond = addBit(this.#bits, Math.imul(value, 0x9e3779b1) >>> 12);
    if (hadFirst && hadSecond) return true;
    this.#count++;
    return false;
  }
}

/** Adds a bit. Returns whether the filter had it. */
function addBit(bits: Uint32Array, position: number): boolean {
  const index = (position & (BITS - 1)) >>> 5;
  const mask = 1 << (position & 31);
  const word = bits[index] as number;
  bits[index] = word | mask;
  return (word & mask) !== 0;
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = text.length > SKIPPED * 2 ? SKIPPED : 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  return value ^ (value >>> 15);
}
