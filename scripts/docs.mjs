// Writes the generated parts of docs/: `npm run docs`. With --check it changes nothing and fails if a file is not current.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DIAGRAMS } from './diagrams/diagrams.mjs';
import { headline } from './diagrams/headline.mjs';
import { referencePages } from './reference/pages.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const check = process.argv.includes('--check');

const files = new Map();
for (const [name, text] of referencePages(root)) files.set(join('docs/api', name), text);
for (const [name, text] of Object.entries(DIAGRAMS)) files.set(join('docs/images', `${name}.svg`), text);

files.set(
  'docs/images/diagram-headline.svg',
  headline(readFileSync(join(root, 'docs/benchmarks.md'), 'utf8')),
);

const generated = (name) => name.startsWith('docs/api/') || name.startsWith('docs/images/diagram-');
const present = ['docs/api', 'docs/images']
  .flatMap((folder) =>
    existsSync(join(root, folder)) ? readdirSync(join(root, folder)).map((name) => join(folder, name)) : [],
  )
  .filter(generated);
const stale = [
  ...present.filter((name) => !files.has(name)),
  ...[...files]
    .filter(
      ([name, text]) => !existsSync(join(root, name)) || readFileSync(join(root, name), 'utf8') !== text,
    )
    .map(([name]) => name),
];

if (!check) {
  mkdirSync(join(root, 'docs/api'), { recursive: true });
  for (const name of present) if (!files.has(name)) rmSync(join(root, name));
  for (const name of stale) if (files.has(name)) writeFileSync(join(root, name), files.get(name));
}
for (const name of stale) console.log(check ? `${name} is not current: run npm run docs` : `wrote ${name}`);
if (check && stale.length > 0) process.exitCode = 1;
