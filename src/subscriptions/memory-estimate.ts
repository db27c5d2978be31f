/** Bytes that one JSON value takes in addition to its text. */
const VALUE_BYTES = 32;

/** Estimates the memory of a JSON value in bytes. */
export function estimateMemory(value: unknown): number {
  let bytes = 0;
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    bytes += VALUE_BYTES;
    if (typeof next === 'string') bytes += next.length;
    else if (typeof next === 'object' && next !== null) {
      for (const [name, member] of Object.entries(next)) {
        bytes += Array.isArray(next) ? 0 : name.length;
        pending.push(member);
      }
    }
  }
  return bytes;
}
