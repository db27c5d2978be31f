// Builds the site: `npm run build`. `--base /docs/` for a site below a path, `--out folder`, `--versions file` for
// another list of older versions. Each of them is built from its tag, into a folder with its name.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { brokenLinks } from './links.mjs';
import { writeLlms } from './llms.mjs';
import { writeTwins } from './markdown.mjs';

const REPOSITORY = 'https://github.com/espalier-js/espalier';
const here = fileURLToPath(new URL('.', import.meta.url));
const root = resolve(here, '..');
const { values } = parseArgs({
  options: {
    base: { type: 'string', default: '/' },
    out: { type: 'string', default: join(here, 'dist') },
    versions: { type: 'string', default: join(here, 'versions.json') },
  },
});
const out = resolve(values.out);
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const older = JSON.parse(readFileSync(values.versions, 'utf8'));
const all = [
  { name: version, path: values.base, docs: join(root, 'docs'), ref: 'main', out },
  ...older.map(({ name, ref }) => ({
    name,
    ref,
    path: `${values.base}${name}/`,
    docs: join(here, '.cache/versions', name, 'docs'),
    out: join(out, name),
  })),
];

for (const { ref, docs } of all.slice(1)) checkOut(ref, resolve(docs, '..'));
for (const each of all) build(each);
// The links of older versions cannot be changed any more.
const names = older.map(({ name }) => `${name}/`);
const lines = await brokenLinks(out, values.base);
const broken = lines.filter((line) => !names.some((name) => line.startsWith(name)));
for (const line of broken) console.error(line);
if (broken.length > 0) process.exit(1);

/** Writes the pages of a tag into a folder. */
function checkOut(ref, folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const archive = execFileSync('git', ['archive', ref, 'docs'], { cwd: root, maxBuffer: 2 ** 28 });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
}

/** A process for each version, since VitePress reads its settings once. */
function build({ name, ref, path, docs, out: target }) {
  const env = {
    ...process.env,
    SITE_BASE: path,
    SITE_DOCS: docs,
    SITE_OUT: target,
    SITE_REF: ref,
    SITE_IS_OLDER: String(target !== out),
    SITE_VERSION: name,
    SITE_VERSIONS: JSON.stringify(all.map((each) => ({ name: each.name, path: each.path }))),
  };
  const vitepress = join(here, 'node_modules/vitepress/bin/vitepress.js');
  // VitePress links vue into the package of the working directory, where the pages of docs/ find it.
  const { status } = spawnSync(process.execPath, [vitepress, 'build', here], {
    cwd: root,
    env,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
  writeTwins(target, { docs, source: `${REPOSITORY}/blob/${ref}` });
  writeLlms(target, { base: path, version: name });
}
