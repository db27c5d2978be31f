/**
 * Proper uses of words that rules.mjs rejects: the file (or a folder, with a slash at its end), the words as
 * they are written in the text, and the reason why they are correct. `check-words.mjs` rejects an entry that is not needed.
 *
 * @typedef {{ file: string, words: string | '*', reason: string }} Allowance
 * @type {readonly Allowance[]}
 */
export const ALLOWED = [
  { file: 'scripts/words/', words: '*', reason: 'the rules themselves' },
  { file: 'src/static/file/media-type-table.ts', words: '*', reason: 'names of media types' },
  { file: 'test/words.test.ts', words: '*', reason: 'feeds the rules to the checker' },
];
