// Checks that another file imports each export of src/: an export without an importer makes a reader search for it.
// Usage: node scripts/check-exports.mjs [root]. Prints one line per violation and exits with 1 if there are violations.
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { listFiles, readSources, targetOf, unlessRemoved } from './layout/parse.mjs';

// Folders that also import modules of src/, in addition to types/, src/ and middleware/.
const IMPORTERS = ['client', 'test', 'bench', 'scripts', 'site', 'examples'];
const NAMED = /(?:import|export)\s+(?:type\s+)?\{([^}]*)\}\s*from\s*['"](\.[^'"]+)['"]/g;
const OTHER = /['"`](\.{1,2}\/[^'"`\n]*)['"`]/g;
const ALL = '*';

const root = process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url));
const modules = readSources(root);
const imported = new Map([...modules.keys()].map((file) => [file, new Set()]));

for (const [file, { imports }] of modules) {
  for (const { specifier, names = [ALL] } of imports) add(file, specifier, names);
}
for (const file of IMPORTERS.flatMap((folder) => listFiles(root, folder))) {
  if (!/\.[cm]?[jt]sx?$/.test(file)) continue;
  const text = unlessRemoved(() => readFileSync(join(root, file), 'utf8'));
  if (text !== undefined) addImportsOf(file, text);
}

const unused = [...modules].flatMap(([file, { exports }]) =>
  exports
    .filter(({ name }) => isChecked(file) && !isImported(file, name))
    .map(({ name, line }) => `export: ${file}:${line}: no other file imports ${name}: do not export it`),
);
for (const line of unused) console.log(line);
if (unused.length > 0) process.exitCode = 1;
else console.log('Exports: all are imported');

/** Declarations of generated modules have no file to import. */
function isChecked(file) {
  return file.startsWith('src/') && !file.endsWith('.d.ts');
}

function isImported(file, name) {
  const names = imported.get(file);
  return names.has(ALL) || names.has(name);
}

function add(file, specifier, names) {
  const target = targetOf(file, specifier, modules);
  if (target === undefined || target === file) return;
  for (const name of names) imported.get(target).add(name);
}

/** Reads the imports of a file outside of the sources. A path elsewhere, such as that of `import()`, takes all names. */
function addImportsOf(file, text) {
  const rest = text.replace(NAMED, (_clause, names, specifier) => {
    add(file, specifier, names.split(',').map(importedName));
    return '';
  });
  for (const [, path] of rest.matchAll(OTHER)) {
    add(file, path, [ALL]);
    // A test may pass the path of a module, relative to the root, to another process.
    add('', `./${posix.normalize(path).replace(/^(\.\.\/)+/, '')}`, [ALL]);
  }
}

function importedName(specifier) {
  return specifier
    .trim()
    .replace(/^type\s+/, '')
    .split(/\s+as\s+/)[0];
}
