// Bundles a server with one bundler and its usual settings: node bundle.mjs <bundler> <entry> <output folder>
import { cpSync, lstatSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const [, , bundler, entry, target] = process.argv;

const bundlers = {
  async esbuild() {
    const { build } = await import('esbuild');
    const outfile = join(target, 'server.cjs');
    await build({ entryPoints: [entry], bundle: true, platform: 'node', outfile, logLevel: 'warning' });
  },
  async 'esbuild, ES module'() {
    const { build } = await import('esbuild');
    // Express and its packages are CommonJS modules, which call `require` for modules of Node.
    const banner = {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    };
    const outfile = join(target, 'server.mjs');
    await build({
      entryPoints: [entry],
      bundle: true,
      platform: 'node',
      format: 'esm',
      banner,
      outfile,
      logLevel: 'warning',
    });
  },
  /** Leaves packages out of a bundle of esbuild: 'external: espalier,graphql'. */
  async external(names) {
    const { build } = await import('esbuild');
    const outfile = join(target, 'server.cjs');
    const external = names.split(',');
    await build({ entryPoints: [entry], bundle: true, platform: 'node', outfile, external });
  },
  async rollup() {
    const { rollup } = await import('rollup');
    const { default: resolve } = await import('@rollup/plugin-node-resolve');
    const { default: commonjs } = await import('@rollup/plugin-commonjs');
    const { default: json } = await import('@rollup/plugin-json');
    const plugins = [resolve({ preferBuiltins: true }), commonjs(), json()];
    // redis, ioredis and iovalkey are optional peers. Circular imports and `this` at the top level are those of other packages.
    const onwarn = ({ code, message }) => {
      if (/espalier/.test(message) && code !== 'CIRCULAR_DEPENDENCY' && code !== 'UNRESOLVED_IMPORT')
        console.error(message);
    };
    const build = await rollup({ input: entry, plugins, onwarn });
    await build.write({ dir: target, entryFileNames: 'server.mjs', chunkFileNames: '[name].mjs' });
  },
  async rolldown() {
    const { rolldown } = await import('rolldown');
    const build = await rolldown({ input: entry, platform: 'node' });
    await build.write({ dir: target, entryFileNames: 'server.mjs', chunkFileNames: '[name].mjs' });
  },
  async webpack() {
    const { default: webpack } = await import('webpack');
    const output = { path: target, filename: 'server.cjs' };
    const optimization = { minimize: false };
    const stats = await new Promise((resolve, reject) => {
      const done = (error, result) => (error ? reject(error) : resolve(result));
      webpack({ mode: 'development', devtool: false, target: 'node20', entry, output, optimization }, done);
    });
    const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
    // redis, ioredis and iovalkey are optional peers.
    const isOurs = ({ message, moduleName }) =>
      /espalier/.test(moduleName) && !/'(io)?(redis|valkey)'/.test(message);
    for (const { message } of [...errors, ...warnings.filter(isOurs)]) console.error(message);
  },
  async ncc() {
    const { default: ncc } = await import('@vercel/ncc');
    const { code, assets } = await ncc(entry, { quiet: true, cache: false });
    writeFileSync(join(target, 'server.mjs'), code);
    for (const [name, { source }] of Object.entries(assets)) write(join(target, name), source);
  },
  /** Prints the files that the tracer of Next.js and Vercel finds. */
  async '@vercel/nft'() {
    const { nodeFileTrace } = await import('@vercel/nft');
    // On Node 20 the tracer does not know the condition module-sync, which Node itself has.
    const { fileList } = await nodeFileTrace([entry], { base: target, moduleSyncCatchall: true });
    console.error([...fileList].join('\n'));
  },
  /** Copies the files that the tracer of Next.js and Vercel finds, with its settings there, and links between them. */
  async traced() {
    const { nodeFileTrace } = await import('@vercel/nft');
    const { fileList, esmFileList } = await nodeFileTrace([entry], { base: '/', moduleSyncCatchall: true });
    for (const name of new Set([...fileList, ...esmFileList])) {
      const [source, copy] = [join('/', name), join(target, name)];
      mkdirSync(dirname(copy), { recursive: true });
      if (lstatSync(source).isSymbolicLink()) symlinkSync(join(target, realpathSync(source)), copy);
      else cpSync(source, copy);
    }
  },
  /** A single executable application of Node (https://nodejs.org/api/single-executable-applications.html). */
  async 'single executable'() {
    await bundlers.esbuild();
    const { execFileSync } = await import('node:child_process');
    const run = (...args) => execFileSync(process.execPath, args, { stdio: 'ignore' });
    const [config, blob, executable] = ['sea.json', 'sea.blob', 'server'].map((name) => join(target, name));
    const settings = { main: join(target, 'server.cjs'), output: blob, disableExperimentalSEAWarning: true };
    writeFileSync(config, JSON.stringify(settings));
    run('--experimental-sea-config', config);
    cpSync(process.execPath, executable);
    const postject = createRequire(import.meta.url).resolve('postject/dist/cli.js');
    const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
    run(postject, executable, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', fuse);
  },
};

function write(path, bytes) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, bytes);
}

mkdirSync(target, { recursive: true });
const [name, argument] = bundler.split(': ');
await bundlers[name](argument);
