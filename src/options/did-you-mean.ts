/** Returns the known name that is closest to a misspelled name, if one is similar enough. */
export function didYouMean(name: string, known: readonly string[]): string | undefined {
  return (
    known.find((candidate) => letters(candidate) === letters(name)) ??
    closest(name, known) ??
    known.find((candidate) => containsWords(name, candidate) || containsWords(candidate, name))
  );
}

const letters = (text: string): string => text.toLowerCase().replace(/[^a-z]/g, '');

/** The shortest name that counts as a part of another one: `depth` in `maxDepth`, but not `url` in `curly`. */
const MIN_PART = 5;

/** Whether a part begins with a word of a name: `depth` in `maxDepth`, but not `onError` in `coercionErrors`. */
function containsWords(name: string, part: string): boolean {
  const wanted = letters(part);
  if (wanted.length < MIN_PART) return false;
  const words = name.split(/(?<=[a-z\d])(?=[A-Z])|[^A-Za-z\d]+/);
  return words.some((_, index) => letters(words.slice(index).join('')).startsWith(wanted));
}

/** Short names differ by one letter, so that `ttl` is not taken for `html`. Others keep their first letter. */
function closest(name: string, known: readonly string[]): string | undefined {
  const ranked = known.map((candidate) => [distance(name, candidate), candidate] as const);
  ranked.sort((a, b) => a[0] - b[0]);
  const [edits, best] = ranked[0] ?? [Number.POSITIVE_INFINITY, ''];
  if (edits <= 1) return best;
  return edits === 2 && name.length > 4 && name[0] === best[0] ? best : undefined;
}

/** The number of letters that were inserted, deleted, replaced, or exchanged with the next one. */
function distance(a: string, b: string): number {
  let previous: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isExchanged = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const exchanged = isExchanged ? (previous[j - 2] as number) + 1 : replaced;
      next.push(Math.min(replaced, exchanged, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    previous = row;
    row = next;
  }
  return row[b.length] as number;
}
