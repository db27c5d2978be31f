import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, brotliDecompressSync, gunzipSync } from 'node:zlib';
import { once, runTopic } from './harness.mjs';

const NAMES = ['20k.js', '200k.js'];
const root = makeFiles();

/** Scripts of two sizes, from the sources of this package. Copies are in another folder. */
function makeFiles() {
  const folder = join(tmpdir(), 'espalier-bench-compression');
  if (existsSync(folder)) return folder;
  const sources = fileURLToPath(new URL('../src', import.meta.url));
  const text = readdirSync(sources, { recursive: true })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(sources, name), 'utf8'))
    .join('\n');
  const made = mkdtempSync(`${folder}-`);
  for (const part of ['plain', 'copies']) mkdirSync(join(made, part));
  for (const [name, size] of [
    [NAMES[0], 20 * 1024],
    [NAMES[1], 200 * 1024],
  ]) {
    for (const part of ['plain', 'copies']) writeFileSync(join(made, part, name), text.slice(0, size));
    writeFileSync(join(made, 'copies', `${name}.br`), brotliCompressSync(text.slice(0, size)));
  }
  renameSync(made, folder);
  return folder;
}

async function ours(part, options) {
  const { default: express } = await import('express');
  const { staticFiles } = await import('espalier/static');
  return express().use(staticFiles(join(root, part), options));
}

/** Repeats requests until all files are compressed. */
async function compressed() {
  const { createServer } = await import('node:http');
  const server = createServer(await ours('plain', { compress: true }));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  for (const name of NAMES) {
    for (;;) {
      const { headers } = await once(port, requestOf(name));
      if (headers['content-encoding'] === 'br') break;
    }
  }
  return server;
}

async function withCompression(encoding) {
  const { default: express } = await import('express');
  const { default: compression } = await import('compression');
  const only = (req, _res, next) => {
    req.headers['accept-encoding'] = encoding;
    next();
  };
  return express()
    .use(only, compression())
    .use(express.static(join(root, 'plain')));
}

const requestOf = (name) => ({ path: `/${name}`, headers: { 'accept-encoding': 'gzip, br' } });

const decode = { br: brotliDecompressSync, gzip: gunzipSync };

/** Every response decompresses to the file. */
function checkBody(name) {
  const expected = readFileSync(join(root, 'plain', name));
  return ({ status, headers, body }, contestant) => {
    const decoded = (decode[headers['content-encoding']] ?? ((bytes) => bytes))(body);
    if (status !== 200 || !decoded.equals(expected)) throw new Error(`${contestant}: another body`);
    console.log(`${contestant}: ${name} ${body.length} bytes, ${headers['content-encoding'] ?? 'identity'}`);
  };
}

export const topic = {
  name: 'compression',
  title: 'Compression of static files',
  about:
    'Scripts for clients that accept brotli and gzip, under Express. `compress` compresses each file once. `compression` ' +
    'compresses each response, with its default levels. "copies" are precompressed files.',
  packages: ['express', 'compression'],
  ratios: ['compression, brotli', 'compression, gzip'],
  contestants: {
    'espalier, compress': compressed,
    'espalier, copies': () => ours('copies', { precompressed: true }),
    'espalier, identity': () => ours('plain'),
    'compression, brotli': () => withCompression('br'),
    'compression, gzip': () => withCompression('gzip'),
  },
  loads: NAMES.map((name) => ({
    name,
    requests: [requestOf(name)],
    count: name === NAMES[0] ? 4000 : 800,
    warmup: 200,
    check: checkBody(name),
  })),
};

await runTopic(import.meta.url, topic);
