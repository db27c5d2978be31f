// Finds test files: by a part of the path, by what they import, and by what has changed.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

const textOf = (file) => readFileSync(join(root, file), 'utf8');

/** The test files whose paths match one of the patterns, which are those of Jest; all of them without a pattern. */
export function testFiles(patterns = []) {
  const expressions = patterns.map((pattern) => new RegExp(pattern.replace(/^\.\//, ''), 'i'));
  const matches = (file) => expressions.some((expression) => expression.test(`${root}${file}`));
  return filesBelow('test')
    .filter((file) => file.endsWith('.test.ts') && (patterns.length === 0 || matches(file)))
    .sort();
}

/** The files in a folder and its folders. Links are not followed: a test may have linked the whole package. */
export function filesBelow(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (!entry.isDirectory()) return path;
    return entry.name === 'node_modules' ? [] : filesBelow(path);
  });
}

/** Whether a file below test/ imports another one, directly or through others. */
export function reaches(file, target, seen = new Set()) {
  if (file === target) return true;
  if (seen.has(file) || !file.startsWith('test/')) return false;
  seen.add(file);
  const imports = textOf(file).matchAll(/^(?:import|export) (?!type )[^;]*?from '(\.[^']+\.ts)'/gm);
  return [...imports].some(([, path]) => reaches(posix.join(posix.dirname(file), path), target, seen));
}

/** Whether a test file has more cases in the thorough pass. */
export const readsTestAll = (file) => /TEST_ALL/.test(textOf(file));

/** Those of some test files that need a program as a whole. See programs.mjs. */
export function filesThatNeed(programs, files) {
  const needs = (file, { name, modules = [] }) =>
    !textOf(file).includes(`needs('${name}')`) && modules.some((module) => reaches(file, module));
  return files.filter((file) => programs.some((program) => needs(file, program)));
}

/** The test files that the changes since the branch left main may affect. */
export function changedTests() {
  const refs = run('git', [
    'for-each-ref',
    '--format=%(refname)',
    'refs/heads/main',
    'refs/remotes/origin/main',
  ]);
  const [base] = run('git', ['merge-base', 'HEAD', refs.at(-1) ?? 'HEAD']);
  return testsOf([
    ...run('git', ['diff', '--name-only', base]),
    ...run('git', ['ls-files', '--others', '--exclude-standard']),
  ]);
}

/** The test files that import one of some files, or read pages if one of them is a page. */
export function testsOf(files) {
  const changed = files.filter((file) => existsSync(join(root, file)));
  if (changed.length === 0) return [];
  const jest = ['node_modules/jest/bin/jest.js', '--listTests', '--findRelatedTests'];
  const related = run(process.execPath, [...jest, ...changed]).map((path) =>
    relative(root, path).replaceAll('\\', '/'),
  );
  const readsPages = (file) => /\.md'|snippets\.ts'/.test(textOf(file));
  const hasPage = changed.some((file) => file.endsWith('.md'));
  return testFiles().filter((file) => related.includes(file) || (hasPage && readsPages(file)));
}

function run(command, args) {
  const { stdout, stderr, status } = spawnSync(command, args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`);
  return stdout.split('\n').filter((line) => line !== '');
}
