// Rejects words of the list in words/rules.mjs in prose: documents, comments, docstrings, messages, test titles.
// Also rejects lines of documents over 110 columns. `node scripts/check-words.mjs [files or folders]`; without
// paths it reads everything, and then also rejects entries of words/allowed.mjs that are not needed.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { isAbsolute, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ALLOWED } from './words/allowed.mjs';
import { RULES } from './words/rules.mjs';
import { CHECKED, longLines, proseOf } from './words/text.mjs';

const COLUMNS = 110;
const root = fileURLToPath(new URL('../', import.meta.url));
const rules = RULES.map(({ pattern, use, raw = false }) => ({
  use,
  raw,
  pattern: new RegExp(`(?<![\\w-])(?:${pattern.replaceAll(' ', '\\s+')})(?![\\w-])`, 'gi'),
}));
const needed = new Set();

function allowance(file, words) {
  return ALLOWED.find(
    (entry) =>
      (entry.file === file || (entry.file.endsWith('/') && file.startsWith(entry.file))) &&
      (entry.words === '*' || entry.words.toLowerCase() === words.toLowerCase()),
  );
}

function problemsOf(file, path) {
  const text = readFileSync(path, 'utf8');
  const prose = proseOf(file, text);
  const problems = [];
  const taken = new Set();
  for (const { pattern, use, raw } of rules) {
    for (const match of (raw ? text : prose).matchAll(pattern)) {
      const words = match[0].replace(/\s+/g, ' ');
      const allowed = allowance(file, words);
      if (allowed !== undefined) needed.add(allowed);
      else if (!taken.has(match.index)) {
        const line = prose.slice(0, match.index).split('\n').length;
        problems.push({ line, text: `"${words}": ${use}` });
        taken.add(match.index);
      }
    }
  }
  if (file.endsWith('.md')) {
    for (const { line, columns } of longLines(text, COLUMNS)) {
      problems.push({ line, text: `${columns} columns: wrap at ${COLUMNS}` });
    }
  }
  return problems.sort((a, b) => a.line - b.line);
}

/** Tracked and new files of the repository; a path outside it is read as it is. */
function filesIn(paths) {
  const outside = paths.filter((path) => relative(root, path).startsWith('..'));
  const inside = paths.filter((path) => !outside.includes(path)).map((path) => relative(root, path) || '.');
  if (paths.length > 0 && inside.length === 0) return outside;
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--', ...inside], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  // An unmerged file is listed more than once.
  return [...outside, ...new Set(listed.split('\n').filter((name) => CHECKED.test(name)))];
}

const paths = process.argv.slice(2).map((path) => resolve(path));
let count = 0;
for (const file of filesIn(paths)) {
  const path = isAbsolute(file) ? file : resolve(root, file);
  let problems;
  try {
    problems = problemsOf(file, path);
  } catch (error) {
    // A file that was deleted and not yet committed is still listed.
    if (error.code === 'ENOENT' && !isAbsolute(file)) continue;
    throw error;
  }
  for (const { line, text } of problems) console.log(`${file}:${line} ${text}`);
  count += problems.length;
}
for (const entry of paths.length === 0 ? ALLOWED : []) {
  if (needed.has(entry)) continue;
  console.log(`scripts/words/allowed.mjs "${entry.words}" in ${entry.file}: not needed, remove it`);
  count++;
}
if (count > 0) console.log(`\n${count} problems. The glossary is in CONTRIBUTING.md.`);
process.exitCode = count > 0 ? 1 : 0;
