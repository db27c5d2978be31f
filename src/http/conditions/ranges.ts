/** Bytes `start` to `end`, both included. */
export interface ByteRange {
  start: number;
  end: number;
}

const MAX_RANGES = 16;
const SPEC = /^(?:(\d+)-(\d*)|-(\d+))$/;

/**
 * Parses a `Range` header for a representation of `size` bytes (RFC 9110 §14.1.2); merges overlapping and
 * adjacent ranges. Returns undefined for another unit, bad syntax or more than 16 ranges: the header is
 * ignored. Returns an empty list when no range is satisfiable: the status is 416.
 */
export function parseRanges(header: string, size: number): ByteRange[] | undefined {
  if (header.slice(0, 6).toLowerCase() !== 'bytes=') return undefined;
  const specs = header.slice(6).split(',', 4 * MAX_RANGES + 1);
  const ranges: ByteRange[] = [];
  let requested = 0;
  for (const part of specs) {
    const spec = part.trim();
    if (spec === '') continue;
    const range = parseSpec(spec, size);
    if (range === undefined || ++requested > MAX_RANGES) return undefined;
    if (range !== 'unsatisfiable') ranges.push(range);
  }
  return requested === 0 ? undefined : merge(ranges);
}

function parseSpec(spec: string, size: number): ByteRange | 'unsatisfiable' | undefined {
  const match = SPEC.exec(spec);
  if (match === null) return undefined;
  if (match[3] !== undefined) {
    const suffix = Number(match[3]);
    if (suffix === 0) return 'unsatisfiable';
    // Content-Range cannot express zero bytes: a suffix of an empty file is the whole file.
    return size === 0 ? undefined : { start: Math.max(0, size - suffix), end: size - 1 };
  }
  const start = Number(match[1]);
  const last = match[2] === '' ? Number.POSITIVE_INFINITY : Number(match[2]);
  if (last < start) return undefined;
  return start >= size ? 'unsatisfiable' : { start, end: Math.min(last, size - 1) };
}

/** Compares all pairs of ranges, which is cheap for at most 16 ranges. Keeps the requested order. */
function merge(ranges: ByteRange[]): ByteRange[] {
  const merged: ByteRange[] = [];
  for (const range of ranges) {
    let grown = range;
    for (let i = merged.length - 1; i >= 0; i--) {
      const other = merged[i] as ByteRange;
      if (grown.start > other.end + 1 || other.start > grown.end + 1) continue;
      grown = { start: Math.min(grown.start, other.start), end: Math.max(grown.end, other.end) };
      merged.splice(i, 1);
      i = merged.length;
    }
    merged.push(grown);
  }
  return merged;
}
