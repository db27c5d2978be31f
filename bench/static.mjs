import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { cpuOfProcesses, runTopic } from './harness.mjs';

const KIB = 1024;
const MIB = 1024 * KIB;
const SIZES = {
  '4k': 4 * KIB,
  '10k': 10 * KIB,
  '200k': 200 * KIB,
  '300k': 300 * KIB,
  '1m': MIB,
  '2m': 2 * MIB,
  '8m': 8 * MIB,
  '64m': 64 * MIB,
};
const MANY = 2000;
const many = Array.from({ length: MANY }, (_, i) => `many/${i}`);
// The cost curve: CPU time per request by the number of files that are requested at random.
const CURVE = [1000, 3000, 5000, 10_000, 50_000];
const LARGE_SIZES = { '300 KiB': '300k', '1 MiB': '1m', '2 MiB': '2m', '8 MiB': '8m', '64 MiB': '64m' };
const CONNECTIONS = [1, 8, 32, 128];
const photos = Array.from({ length: 1500 }, (_, i) => `photos/${i}`);
const root = makeFiles();

/** The same files for every contestant and every process of the run. */
function makeFiles() {
  const folder = join(tmpdir(), 'espalier-bench-static-2');
  if (existsSync(folder)) return folder;
  const made = mkdtempSync(`${folder}-`);
  for (const [name, size] of Object.entries(SIZES)) writeFileSync(`${made}/${name}.txt`, filled(size, name));
  mkdirSync(`${made}/many`);
  for (const name of many) writeFileSync(`${made}/${name}.txt`, filled(4 * KIB, name));
  for (const name of curveNames(50_000)) {
    mkdirSync(join(made, dirname(name)), { recursive: true });
    writeFileSync(`${made}/${name}.txt`, filled(4 * KIB, name));
  }
  mkdirSync(`${made}/photos`);
  for (const name of photos) writeFileSync(`${made}/${name}.txt`, filled(200 * KIB, name));
  try {
    renameSync(made, folder);
  } catch {
    rmSync(made, { recursive: true });
  }
  return folder;
}

/** The names of the first files of the curve, a hundred in each folder. */
function curveNames(count) {
  return Array.from({ length: count }, (_, i) => `curve/${Math.floor(i / 100)}/${i}`);
}

function filled(size, seed) {
  return Buffer.alloc(size, createHash('sha512').update(seed).digest('hex'));
}

/** The ETag that espalier, send, @fastify/send and nginx create for a file. */
function tagsOf(name) {
  const body = readFileSync(`${root}/${name}`);
  const { size, mtime } = statSync(`${root}/${name}`);
  const time = mtime.getTime();
  const hash = createHash('sha1').update(body).digest('base64').slice(0, 27);
  return {
    content: `"${size.toString(16)}-${hash}"`,
    send: `W/"${size.toString(16)}-${time.toString(16)}"`,
    nginx: `"${Math.floor(time / 1000).toString(16)}-${size.toString(16)}"`,
    sirv: `W/"${size}-${time}"`,
  };
}

/** Serves the same file for every path, to measure what many files cost in the same rounds. */
const oneFile = (make) => async () => {
  const listener = await make();
  return (req, res) => {
    req.url = '/static/4k.txt';
    listener(req, res);
  };
};

/** The limit: fixed Buffers with the headers of espalier. Only the path and If-None-Match are read. */
function fixed(prefix) {
  const heads = new Map();
  for (const name of ['4k', '10k', '200k', '300k', '1m', '2m', '8m', ...many]) {
    const body = readFileSync(`${root}/${name}.txt`);
    const shared = {
      'Cache-Control': 'public, max-age=0',
      ETag: tagsOf(`${name}.txt`).content,
      'Last-Modified': statSync(`${root}/${name}.txt`).mtime.toUTCString(),
      'Accept-Ranges': 'bytes',
      'X-Content-Type-Options': 'nosniff',
    };
    const whole = { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Length': body.length, ...shared };
    heads.set(`${prefix}/${name}.txt`, { body, whole, shared });
  }
  return (req, res) => {
    const { body, whole, shared } = heads.get(req.url);
    if (req.headers['if-none-match'] !== undefined) {
      res.writeHead(304, shared);
      res.end();
    } else {
      res.writeHead(200, whole);
      res.end(body);
    }
  };
}

const lost = (res) => {
  res.statusCode = 404;
  res.end();
};

async function onNode(options) {
  const { staticFiles } = await import('espalier/static');
  const serve = staticFiles(root, options);
  return (req, res) => {
    req.url = req.url.slice('/static'.length);
    serve(req, res, () => lost(res));
  };
}

async function onExpress(handler) {
  const { default: express } = await import('express');
  return express().use('/static', handler(express));
}

async function oursOnExpress(options) {
  const { staticFiles } = await import('espalier/static');
  return onExpress(() => staticFiles(root, options));
}

async function sirvOnExpress() {
  const { default: sirv } = await import('sirv');
  return onExpress(() => sirv(root, { etag: true }));
}

async function underNginx() {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-bench-nginx-'));
  const port = await freePort();
  writeFileSync(
    `${folder}/nginx.conf`,
    `daemon off; master_process off; user root; pid ${folder}/pid; error_log ${folder}/error.log;
    events { worker_connections 512; }
    http {
      access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; open_file_cache max=4096 inactive=60s;
      types { text/plain txt; } charset utf-8;
      client_body_temp_path ${folder}/1; proxy_temp_path ${folder}/2; fastcgi_temp_path ${folder}/3;
      uwsgi_temp_path ${folder}/4; scgi_temp_path ${folder}/5;
      server { listen 127.0.0.1:${port}; location /static/ { alias ${root}/; add_header X-Content-Type-Options nosniff; } }
    }`,
  );
  // One process, so that its CPU time is the total.
  const main = spawn('nginx', ['-p', folder, '-c', `${folder}/nginx.conf`], { stdio: 'ignore' });
  await untilListening(port);
  return {
    port,
    cpu: () => cpuOfProcesses([main.pid]),
    async close() {
      main.kill('SIGQUIT');
      await new Promise((done) => main.once('exit', done));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

async function untilListening(port) {
  for (;;) {
    const open = await new Promise((done) => {
      const socket = connect(port, '127.0.0.1', () => done(true)).on('error', () => done(false));
      socket.on('close', () => {});
      socket.on('connect', () => socket.destroy());
    });
    if (open) return;
  }
}

/** Readers that take one chunk and then pause, so that the memory of the server contains all data that it buffers for them. */
async function slowReaders({ port, count }) {
  const sockets = [];
  for (let i = 0; i < count; i++) {
    await new Promise((done, fail) => {
      const socket = connect(port, '127.0.0.1', () =>
        socket.write('GET /static/64m.txt HTTP/1.1\r\nHost: x\r\n\r\n'),
      );
      sockets.push(socket);
      socket.on('error', fail);
      socket.once('data', () => {
        socket.pause();
        done();
      });
    });
  }
  await new Promise((done) => setTimeout(done, 1000));
  for (const socket of sockets) socket.destroy();
  return { operations: count };
}

/** Requests for all files of a list, in an order that is unrelated to the order of their names. */
const atRandom = (names) => ({
  requests: (index) => ({ path: `/static/${names[(index * 7919) % names.length]}.txt` }),
  distinct: names.length,
  expect: { status: 200 },
});

/** CPU time by the number of hot files. The warm-up requests each file at least once. */
function curve(name, names) {
  return {
    name,
    ...atRandom(names),
    count: 20_000,
    warmup: Math.max(20_000, names.length),
    contestants: ['Express: espalier', 'Express: express.static', 'Express: sirv', 'createServer: espalier'],
    ratios: ['Express: express.static', 'Express: sirv'],
  };
}

/** Large bodies from memory and from disk. A body over 8 MiB is never in memory. */
function largeBody(label, name, connections) {
  const size = SIZES[name];
  const isCached = size <= 8 * MIB;
  const fixedBuffer = isCached ? ['Express: fixed Buffer', 'Express: espalier'] : [];
  const count = Math.min(4000, Math.max(40, Math.round((1.5 * 1024 * MIB) / size)));
  return {
    name: `${label}, ${connections} connection${connections === 1 ? '' : 's'}`,
    requests: file(name),
    connections,
    count,
    least: connections,
    // Bodies over 256 KiB are cached when they were requested several times.
    warmup: Math.max(40, connections),
    expect: isCached ? expectBody(name) : { status: 200 },
    contestants: [...fixedBuffer, 'Express: espalier, from disk', 'Express: express.static'],
    ratios: isCached ? ['Express: fixed Buffer', 'Express: express.static'] : ['Express: express.static'],
  };
}

const file = (name, headers = {}) => [{ path: `/static/${name}.txt`, headers }];
const expectBody = (name) => ({ status: 200, body: readFileSync(`${root}/${name}.txt`, 'utf8') });
const tags = tagsOf('10k.txt');
const small = ['fixed Buffer', 'espalier', 'espalier, window', 'sirv', '@fastify/static', 'nginx'];
const underExpress = ['Express: fixed Buffer', 'Express: espalier', 'Express: express.static'];

export const topic = {
  name: 'static',
  title: 'staticFiles',
  about:
    'Files of several sizes. "fixed Buffer" sends a prepared Buffer with the same headers and never reads the disk, so ' +
    'it is the lower bound for Node. "window" is `revalidateAfter: 1000`. Without it every response is checked against the disk.',
  packages: ['express', 'serve-static', 'sirv', 'fastify', '@fastify/static'],
  ratios: ['fixed Buffer', 'Express: fixed Buffer', 'Express: express.static'],
  contestants: {
    'fixed Buffer': async () => fixed('/static'),
    espalier: () => onNode(),
    'espalier, window': () => onNode({ cache: { revalidateAfter: 1000 } }),
    sirv: async () => {
      const serve = (await import('sirv')).default(root, { etag: true });
      return (req, res) => {
        req.url = req.url.slice('/static'.length);
        serve(req, res, () => lost(res));
      };
    },
    '@fastify/static': async () => {
      const app = (await import('fastify')).default();
      app.register((await import('@fastify/static')).default, { root, prefix: '/static/' });
      await app.ready();
      return app.server;
    },
    nginx: underNginx,
    'Express: fixed Buffer': () => onExpress(() => fixed('')),
    'Express: espalier': () => oursOnExpress(),
    'Express: espalier, from disk': () => oursOnExpress({ cache: false }),
    'Express: sirv': sirvOnExpress,
    'Express: express.static': () => onExpress((express) => express.static(root)),
    'fixed Buffer, one file': oneFile(async () => fixed('/static')),
    'espalier, one file': oneFile(() => onNode()),
    'Express: fixed Buffer, one file': oneFile(() => onExpress(() => fixed(''))),
    'Express: espalier, one file': oneFile(() => oursOnExpress()),
    'createServer: espalier': async () => {
      const { createServer: create } = await import('espalier/server');
      return create(await oursOnExpress());
    },
  },
  loads: [
    {
      name: '10 KiB',
      requests: file('10k'),
      contestants: [...small, ...underExpress, 'createServer: espalier'],
      expect: expectBody('10k'),
    },
    {
      name: '304',
      requests: file('10k', { 'if-none-match': `${tags.content}, ${tags.send}, ${tags.nginx}` }),
      contestants: [
        'fixed Buffer',
        'espalier',
        'espalier, window',
        'nginx',
        ...underExpress,
        'createServer: espalier',
      ],
      expect: { status: 304 },
    },
    {
      // It compares with one ETag, not with a list.
      name: '304, sirv',
      requests: file('10k', { 'if-none-match': tags.sirv }),
      contestants: ['sirv'],
      expect: { status: 304 },
    },
    {
      name: '4 KiB, one of 2000 files',
      requests: (index) => ({ path: `/static/${many[(index * 7919) % MANY]}.txt` }),
      distinct: MANY,
      contestants: [
        'fixed Buffer, one file',
        'fixed Buffer',
        'espalier, one file',
        'espalier',
        'espalier, window',
        'sirv',
        'nginx',
        'Express: fixed Buffer, one file',
        'Express: fixed Buffer',
        'Express: espalier, one file',
        'Express: espalier',
        'Express: express.static',
      ],
      ratios: [
        'fixed Buffer, one file',
        'fixed Buffer',
        'espalier, one file',
        'Express: fixed Buffer',
        'Express: espalier, one file',
        'Express: express.static',
      ],
      expect: { status: 200 },
    },
    {
      name: '200 KiB',
      requests: file('200k'),
      count: 6000,
      expect: expectBody('200k'),
      contestants: [...small, ...underExpress],
    },
    {
      name: '2 MiB',
      requests: file('2m'),
      connections: 16,
      count: 1500,
      expect: expectBody('2m'),
      contestants: ['fixed Buffer', 'espalier', 'sirv', '@fastify/static', 'nginx', ...underExpress.slice(1)],
    },
    {
      name: '64 MiB',
      requests: file('64m'),
      connections: 4,
      count: 60,
      contestants: ['espalier', 'sirv', '@fastify/static', 'nginx', ...underExpress.slice(1)],
      expect: { status: 200 },
    },
    ...CURVE.map((count) => curve(`4 KiB, one of ${count} hot files`, curveNames(count))),
    curve('200 KiB, one of 1500 hot files', photos),
    ...Object.entries(LARGE_SIZES).flatMap(([label, name]) =>
      CONNECTIONS.map((connections) => largeBody(label, name, connections)),
    ),
    {
      name: '64 MiB to 100 slow readers',
      unit: 'reader',
      count: 100,
      least: 100,
      warmup: 0,
      fresh: true,
      drive: slowReaders,
      columns: ['rssMiB', 'peakRssMiB'],
      contestants: ['espalier', 'sirv', '@fastify/static', ...underExpress.slice(1)],
    },
  ],
};

await runTopic(import.meta.url, topic);
