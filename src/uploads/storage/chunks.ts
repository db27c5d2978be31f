/** Returns the bytes from a position to the end of their chunk; undefined when no chunk contains it. */
export function bytesAt(chunks: readonly Buffer[], position: number): Buffer | undefined {
  let start = 0;
  for (const chunk of chunks) {
    const end = start + chunk.length;
    if (position >= start && position < end) {
      return position === start ? chunk : chunk.subarray(position - start);
    }
    start = end;
  }
  return undefined;
}

/** Removes bytes from the start of a list of chunks; a write may end inside a chunk. */
export function dropBytes(chunks: Buffer[], bytes: number): void {
  let left = bytes;
  let whole = 0;
  while (whole < chunks.length && left >= (chunks[whole] as Buffer).length) {
    left -= (chunks[whole] as Buffer).length;
    whole++;
  }
  chunks.splice(0, whole);
  if (left > 0) chunks[0] = (chunks[0] as Buffer).subarray(left);
}
