/**
 * Ten minutes (or `--seconds=N`) of mixed traffic of 200 clients against one server: hot files, 304s, ranges, large files, 404s,
 * malformed requests, aborted and slow clients. Meanwhile files are replaced, rewritten, extended, truncated, renamed and
 * deleted, their permissions change, and a linked directory is switched. Every complete response is checked byte by byte: it must
 * be one version with the ETag of that version. At the end the server must have no open descriptor, no socket and no more heap than
 * at the start.
 */
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { given } from './lib/arguments.mjs';
import { openFiles } from './lib/open-files.mjs';

const here = fileURLToPath(import.meta.url);
const tagsSeen = new Map();

/** Ways to change a file. A file that grows keeps its letter, so that its bytes stay uniform. */
const CHANGES = {
  replace(path, size) {
    writeFileSync(`${path}.new`, version(size));
    renameSync(`${path}.new`, path);
  },
  rewrite: (path, size) => writeFileSync(path, version(size)),
  grow: (path) => appendFileSync(path, readFileSync(path).subarray(0, 500)),
  truncate: (path, size) => truncateSync(path, Math.floor(size / 2)),
  chmod: (path) => chmodSync(path, Math.random() < 0.5 ? 0o600 : 0o644),
  rename(path) {
    renameSync(path, `${path}.moved`);
    renameSync(`${path}.moved`, path);
  },
  delete(path, size) {
    rmSync(path);
    writeFileSync(path, version(size));
  },
};

if (process.env.SOAK_ROOT) await serve(process.env.SOAK_ROOT);
else await soak();

async function serve(root) {
  const { staticFiles } = await import('../dist/static.mjs');
  const files = staticFiles(root, { fallback: 'small0.txt', cache: { maxBytes: 4 << 20 } });
  const server = createServer((req, res) =>
    files(req, res, (error) => {
      res.statusCode = error ? 500 : 404;
      res.end(error ? String(error.stack) : 'none');
    }),
  );
  process.on('message', () => {
    global.gc();
    const fds = openFiles();
    const { heapUsed, arrayBuffers, rss } = process.memoryUsage();
    const resources = process.getActiveResourcesInfo();
    process.send({
      heapMiB: heapUsed / 2 ** 20,
      buffersMiB: arrayBuffers / 2 ** 20,
      rssMiB: rss / 2 ** 20,
      files: fds.filter((target) => target.startsWith(root)).length,
      sockets: fds.filter((target) => target.startsWith('socket:')).length,
      timers: resources.filter((name) => name === 'Timeout' || name === 'Immediate').length,
    });
  });
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
}

async function soak() {
  if (!existsSync(new URL('../dist/static.mjs', import.meta.url))) throw new Error('run npm run build first');
  const seconds = Number(given('seconds', 600));
  const root = mkdtempSync(join(tmpdir(), 'espalier-soak-'));
  const names = makeFiles(root);
  const child = fork(here, { execArgv: ['--expose-gc'], env: { ...process.env, SOAK_ROOT: root } });
  const { port } = await message(child);
  const counts = {};
  try {
    await traffic({ port, root, names, counts, until: Date.now() + 5000 });
    const before = await settled(child);
    await traffic({ port, root, names, counts, until: Date.now() + seconds * 1000 });
    const after = await settled(child);
    console.table({ before, after });
    console.table(counts);
    judge(before, after, counts);
  } finally {
    child.kill();
    rmSync(root, { recursive: true, force: true });
  }
}

function judge(before, after, counts) {
  const faults = [];
  if (counts.wrong) faults.push(`${counts.wrong} wrong responses`);
  if (counts.status500) faults.push('5xx responses');
  if (after.files > 0) faults.push(`${after.files} files left open`);
  if (after.sockets > before.sockets) faults.push('sockets left open');
  if (after.timers > before.timers) faults.push('timers left');
  if (after.heapMiB > before.heapMiB + 5) faults.push('the heap grew');
  if (after.buffersMiB > before.buffersMiB + 12) faults.push('buffers grew');
  console.log(faults.length === 0 ? 'no faults' : `faults: ${faults.join(', ')}`);
  process.exitCode = faults.length === 0 ? 0 : 1;
}

function makeFiles(root) {
  const names = [];
  const make = (name, size, count) => {
    for (let i = 0; i < count; i++) {
      writeFileSync(join(root, `${name}${i}.txt`), version(size));
      names.push({ name: `${name}${i}.txt`, size });
    }
  };
  make('small', 2000, 300);
  make('middle', 120_000, 30);
  make('large', 3_000_000, 6);
  // Releases that a link is switched between; their files never change.
  for (const release of ['one', 'two']) {
    mkdirSync(join(root, release));
    for (let i = 0; i < 20; i++) writeFileSync(join(root, release, `linked${i}.txt`), version(30_000));
  }
  symlinkSync('one', join(root, 'current'));
  for (let i = 0; i < 20; i++) names.push({ name: `current/linked${i}.txt`, size: 30_000, isLinked: true });
  return names;
}

/** Bytes of one letter, so that a body shows whether it is one version. */
function version(size) {
  return Buffer.alloc(size + Math.floor(Math.random() * 100), 97 + Math.floor(Math.random() * 26));
}

async function traffic(run) {
  const workers = [];
  for (let i = 0; i < 190; i++) workers.push(repeat(run, reader));
  workers.push(repeat(run, junk), repeat(run, aborter), repeat(run, slowReader), repeat(run, editor));
  await Promise.all(workers);
}

async function repeat(run, act) {
  while (Date.now() < run.until) await act(run);
}

function count(run, what) {
  run.counts[what] = (run.counts[what] ?? 0) + 1;
}

async function reader(run) {
  const { name } = pick(run.names);
  const headers = {};
  const dice = Math.random();
  if (dice < 0.2)
    headers.range = `bytes=${Math.floor(Math.random() * 1000)}-${1000 + Math.floor(Math.random() * 5000)}`;
  else if (dice < 0.3) headers.range = 'bytes=0-9,100-109,-5';
  else if (dice < 0.6 && tagsSeen.has(name)) headers['if-none-match'] = tagsSeen.get(name);
  const answer = await ask(run.port, `/${name}`, headers);
  if (answer === undefined) return count(run, 'cut');
  count(run, `status${answer.status}`);
  if (answer.status === 404 && name.startsWith('current/'))
    wrong(run, name, 'a 404 while its link was switched');
  if (answer.status === 200) check(run, name, answer);
  if (answer.status === 206 && !headers.range.includes(',') && !uniform(answer.body))
    wrong(run, name, 'a mixed range');
}

function check(run, name, { headers, body }) {
  if (Number(headers['content-length']) !== body.length || !uniform(body))
    return wrong(run, name, 'a mixed body');
  if (headers.etag === undefined) return undefined;
  tagsSeen.set(name, headers.etag);
  const tag = `"${body.length.toString(16)}-${createHash('sha1').update(body).digest('base64').slice(0, 27)}"`;
  return tag === headers.etag ? undefined : wrong(run, name, 'a tag of other bytes');
}

function wrong(run, name, what) {
  console.error(`${name}: ${what}`);
  count(run, 'wrong');
}

function uniform(body) {
  return body.length === 0 || body.equals(Buffer.alloc(body.length, body[0]));
}

async function junk(run) {
  const answer = await ask(run.port, `/none-${Math.random()}/${Math.random()}?${Math.random()}`, {});
  count(run, answer?.status === 404 ? 'junk' : 'wrong');
}

async function aborter(run) {
  const socket = connect(run.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`GET /large${Math.floor(Math.random() * 6)}.txt HTTP/1.1\r\nHost: x\r\n\r\n`);
  await new Promise((done) => {
    socket.once('data', done);
    socket.once('close', done);
  });
  if (Math.random() < 0.5) socket.destroy();
  else socket.resetAndDestroy();
  count(run, 'aborted');
}

async function slowReader(run) {
  const socket = connect(run.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write('GET /large0.txt HTTP/1.1\r\nHost: x\r\n\r\n');
  for (let i = 0; i < 5; i++) {
    socket.pause();
    await new Promise((done) => setTimeout(done, 100));
    socket.resume();
    await new Promise((done) => {
      socket.once('data', done);
      socket.once('close', done);
    });
  }
  socket.destroy();
  count(run, 'slow');
}

async function editor(run) {
  const { name, size, isLinked } = pick(run.names);
  const path = join(run.root, name);
  const changes = Object.keys(CHANGES);
  const change = isLinked ? 'switch' : changes[Math.floor(Math.random() * changes.length)];
  if (isLinked) {
    symlinkSync(readlinkSync(join(run.root, 'current')) === 'one' ? 'two' : 'one', join(run.root, 'next'));
    renameSync(join(run.root, 'next'), join(run.root, 'current'));
  } else CHANGES[change](path, size);
  count(run, `edit: ${change}`);
  await new Promise((done) => setTimeout(done, 5));
}

function pick(list) {
  return list[Math.floor(Math.random() ** 2 * list.length)];
}

function ask(port, path, headers) {
  return new Promise((resolve) => {
    const req = request({ port, path, headers }, (res) => {
      const chunks = [];
      res.on('data', (chunk) => chunks.push(chunk));
      res.on('error', () => resolve(undefined));
      res.on('end', () =>
        resolve({ status: res.statusCode, headers: res.headers, body: Buffer.concat(chunks) }),
      );
    });
    req.on('error', () => resolve(undefined));
    req.end();
  });
}

async function settled(child) {
  await new Promise((done) => setTimeout(done, 6000));
  child.send('measure');
  return message(child);
}

function message(child) {
  return new Promise((done) => child.once('message', done));
}
