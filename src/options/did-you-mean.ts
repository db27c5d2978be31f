/** Returns the known name that is closest to a misspelled name, if one is similar enough. */
export function didYouMean(name: string, known: readonly string[]): string | undefined {
  const letters = (text: string): string => text.toLowerCase().replace(/[^a-z]/g, '');
  const has = (candidate: string, part: string): boolean =>
    part.length >= MIN_PART && letters(candidate).includes(part);
  return (
    known.find((candidate) => letters(candidate) === letters(name)) ??
    closest(name, known) ??
    known.find((candidate) => has(name, letters(candidate)) || has(candidate, letters(name)))
  );
}

/**
 * The shortest name that counts as a part of another one: `depth` in `maxDepth`, but not `url` in `curly`.
 */
const MIN_PART = 5;

function closest(name: string, known: readonly string[]): string | undefined {
  const ranked = known.map((candidate) => [distance(name, candidate), candidate] as const);
  ranked.sort((a, b) => a[0] - b[0]);
  const best = ranked[0];
  return best !== undefined && best[0] <= 2 ? best[1] : undefined;
}

/** Levenshtein distance, one row at a time. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
