/** Bytes of the longest header of a frame. */
export const ZSTD_HEADER_BYTES = 18;

const MAGIC = 0xfd2f_b528;
// Browsers refuse larger windows (RFC 9659). `zstd --ultra` and `--long` write them.
const MAX_WINDOW = 8 << 20;
const SINGLE_SEGMENT = 0x20;

/** Whether browsers decompress these zstd bytes, according to the header of the first frame (RFC 8878 §3.1.1.1). */
export function isWindowAccepted(header: Buffer): boolean {
  // The decoder finds out whether other bytes are a copy.
  if (header.length < ZSTD_HEADER_BYTES || header.readUInt32LE(0) !== MAGIC) return true;
  return windowOf(header) <= MAX_WINDOW;
}

function windowOf(header: Buffer): number {
  const descriptor = header.readUInt8(4);
  if ((descriptor & SINGLE_SEGMENT) === 0) {
    const window = header.readUInt8(5);
    return 2 ** (10 + (window >> 3)) * (1 + (window & 7) / 8);
  }
  // The window is the whole content, whose size follows the identifier of a dictionary. Short sizes are small.
  const position = 5 + ((1 << (descriptor & 3)) >> 1);
  const sizeBytes = 1 << (descriptor >> 6);
  if (sizeBytes < 4) return 0;
  return sizeBytes === 4 ? header.readUInt32LE(position) : Number(header.readBigUInt64LE(position));
}
