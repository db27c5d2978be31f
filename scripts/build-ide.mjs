// Builds the IDE into dist/graphiql: a module for each file, an index, a manifest, and the licence notices of the
// bundled packages. Does nothing when neither our sources nor the versions of the bundled packages changed.
// Modules contain the files as brotli in base64, so that every bundler and archive of modules includes them.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';
import { noticesOf, packageAt, packagesIn } from './notices.mjs';

const root = join(import.meta.dirname, '..');
const app = join(root, 'src/graphiql/app');
const target = join(root, 'dist/graphiql');
const compress = promisify(brotliCompress);

const TYPES = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8', ttf: 'font/ttf' };

const sources = hashSources();
if (isCurrent()) {
  console.log('GraphiQL: unchanged');
} else {
  const started = Date.now();
  console.log('GraphiQL: bundling');
  const { files, manifest, packages } = await bundle();
  console.log(`GraphiQL: compressing ${files.length} files`);
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  // Largest first and all at the same time: zlib's threads take one each.
  const sizes = await Promise.all(files.sort((a, b) => b.bytes.length - a.bytes.length).map(writeCompressed));
  writeFileSync(join(target, 'THIRD-PARTY-NOTICES.txt'), noticesOf(root, packages));
  writeFileSync(join(target, 'index.cjs'), indexModule(manifest));
  // The manifest is written last, because its existence means that the other files are complete.
  writeFileSync(
    join(target, 'manifest.json'),
    `${JSON.stringify({ ...manifest, sources, packages }, null, 2)}\n`,
  );
  const total = sizes.reduce((sum, size) => sum + size, 0);
  console.log(`GraphiQL: ${kB(total)} in ${((Date.now() - started) / 1000).toFixed(1)} s`);
}

function hashSources() {
  const hash = createHash('sha256').update(readFileSync(import.meta.filename));
  for (const name of readdirSync(app, { recursive: true }).sort()) {
    if (/\.(tsx?|css|mjs|json)$/.test(name)) hash.update(`${name}\0`).update(readFileSync(join(app, name)));
  }
  return hash.digest('hex');
}

function isCurrent() {
  if (!existsSync(join(target, 'manifest.json'))) return false;
  const built = JSON.parse(readFileSync(join(target, 'manifest.json'), 'utf8'));
  if (built.sources !== sources) return false;
  return Object.entries(built.packages).every(
    ([folder, { version }]) => packageAt(root, folder)?.version === version,
  );
}

async function bundle() {
  const { build } = await import('vite');
  const folders = new Set();
  const collect = () => ({
    name: 'collect-packages',
    generateBundle(_options, output) {
      for (const { modules = {} } of Object.values(output)) {
        for (const id of Object.keys(modules)) {
          const folder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id.replace(/^\0/, ''))?.[0];
          if (folder) folders.add(relative(root, folder));
        }
      }
    },
  });
  const config = {
    configFile: join(app, 'vite.config.mjs'),
    plugins: [collect()],
    worker: { plugins: () => [collect()] },
  };
  const { output } = await build(config);
  const vite = JSON.parse(output.find(({ fileName }) => fileName === 'vite.json').source);
  const files = output
    .filter(({ fileName }) => fileName !== 'vite.json')
    .map(({ fileName, code, source }) => ({ name: fileName, bytes: Buffer.from(code ?? source) }));
  return { files, manifest: describe(vite, files), packages: packagesIn(root, [...folders].sort()) };
}

/** The manifest for the server: the first files of a page, and every file with its media type. */
function describe(vite, files) {
  const entry = Object.values(vite).find(({ isEntry }) => isEntry);
  const imports = (chunk) => (chunk.imports ?? []).flatMap((key) => [vite[key].file, ...imports(vite[key])]);
  return {
    entry: entry.file,
    styles: files.map(({ name }) => name).filter((name) => name.endsWith('.css')),
    preload: [...new Set(imports(entry))],
    files: Object.fromEntries(files.map(({ name }) => [name, TYPES[name.split('.').at(-1)]])),
  };
}

/** CommonJS, because `import` and `require` can load it. Each file is loaded when it is requested first. */
function indexModule({ entry, styles, preload, files }) {
  const list = Object.entries(files).map(([name, type]) => {
    const load = `() => require(${JSON.stringify(`./${name}.cjs`)})`;
    return `  ${JSON.stringify(name)}: { type: ${JSON.stringify(type)}, load: ${load} },\n`;
  });
  return `exports.page = ${JSON.stringify({ entry, styles, preload })};\nexports.files = {\n${list.join('')}};\n`;
}

async function writeCompressed({ name, bytes }) {
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  };
  const compressed = await compress(bytes, { params });
  writeFileSync(join(target, `${name}.cjs`), `module.exports = '${compressed.toString('base64')}';\n`);
  console.log(`GraphiQL:   ${name} ${kB(bytes.length)} -> ${kB(compressed.length)}`);
  return compressed.length;
}

function kB(bytes) {
  return `${(bytes / 1000).toFixed(0)} kB`;
}
