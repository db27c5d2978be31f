/** @tags node */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2, constants, createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { staticFiles } from '../../middleware/static.ts';
import { descriptorsIn } from '../descriptors.ts';
import { until } from '../until.ts';
import { bare, bytesRead, get, listen, makeFolder } from './fixture.ts';

const { NGHTTP2_CANCEL } = constants;
// Large files are always streamed, however often they are requested.
const STREAMED = { cache: { maxBytes: '1mb' } };
const folder = makeFolder({
  'a.txt': '0123456789',
  'b.txt': 'not requested before',
  'large.bin': Buffer.alloc(8_000_000, 'x'),
});

async function untilClosed(): Promise<void> {
  await until(() => descriptorsIn(folder) === 0);
}

/** A client that stops reading after the first chunk. */
async function slowReader(port: number, target: string, headers = ''): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
  await once(socket, 'data');
  socket.pause();
  return socket;
}

describe('clients that disconnect', () => {
  it.each([
    ['a whole file', ''],
    ['a range', 'Range: bytes=100-\r\n'],
    ['several ranges', 'Range: bytes=0-3000000,4000000-7000000\r\n'],
  ])('staticFiles closes all files when clients that requested %s disconnect', async (_what, headers) => {
    const port = await listen(bare(staticFiles(folder, STREAMED)));
    const sockets = await Promise.all(
      Array.from({ length: 60 }, () => slowReader(port, '/large.bin', headers)),
    );
    expect(descriptorsIn(folder)).toBe(60);
    for (const [index, socket] of sockets.entries())
      index % 2 === 0 ? socket.destroy() : socket.resetAndDestroy();
    await untilClosed();
    expect((await get(port, '/large.bin')).body).toHaveLength(8_000_000);
    await untilClosed();
  });

  it('staticFiles closes the file when a client disconnects before it was opened', async () => {
    const port = await listen(bare(staticFiles(folder, STREAMED)));
    await get(port, '/large.bin', {}, 'HEAD');
    for (let i = 0; i < 100; i++) {
      const socket = connect(port, '127.0.0.1');
      socket.write('GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n', () => socket.destroy());
      await once(socket, 'close');
    }
    expect((await get(port, '/a.txt')).status).toBe(200);
    await untilClosed();
  });

  it('staticFiles reads no file for HEAD, 304, 412 and 416', async () => {
    const port = await listen(bare(staticFiles(folder, STREAMED)));
    const { headers } = await get(port, '/large.bin', {}, 'HEAD');
    await untilClosed();
    const before = bytesRead();
    await get(port, '/large.bin', {}, 'HEAD');
    await get(port, '/large.bin', { 'If-None-Match': headers.etag as string });
    await get(port, '/large.bin', { 'If-Match': '"x"' });
    await get(port, '/large.bin', { Range: 'bytes=99999999-' });
    expect(bytesRead() - before).toBeLessThan(1_000_000);
  });
});

it('staticFiles sends 404 for files that the process may not read', async () => {
  const locked = makeFolder({
    'www/a.txt': 'a',
    'www/a.txt.gz': gzipSync('a'),
    'www/locked.txt': 'locked',
    'www/dir/b.txt': 'b',
  });
  chmodSync(locked, 0o755);
  chmodSync(`${locked}/www/locked.txt`, 0);
  chmodSync(`${locked}/www/a.txt.gz`, 0);
  chmodSync(`${locked}/www/dir`, 0);
  // Root may read every file unless it drops these capabilities.
  const unprivileged = ['setpriv', '--bounding-set', '-dac_override,-dac_read_search'];
  const command = process.getuid?.() === 0 ? unprivileged : [];
  const [program, ...rest] = [
    ...command,
    process.execPath,
    '--import',
    'tsx',
    'test/static/restricted-server.ts',
  ];
  const child = spawn(program as string, [...rest, `${locked}/www`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [line] = await once(child.stdout, 'data');
    // The file itself may be read, its compressed copy may not.
    expect((await get(Number(line), '/a.txt', { 'Accept-Encoding': 'gzip' })).text).toBe('a');
    for (const path of ['/locked.txt', '/dir/b.txt']) {
      const response = await get(Number(line), path);
      expect([response.status, response.text]).toEqual([
        404,
        expect.stringMatching(/^(?:NotFound)?Error: (?:Not Found$|EACCES)/),
      ]);
    }
  } finally {
    child.kill();
    await once(child, 'exit');
    chmodSync(`${locked}/www/dir`, 0o755);
  }
});

it('staticFiles sends 404 for links to files that the permission model of Node excludes', async () => {
  // Where the program finds the packages that it loads.
  const root = resolve(__dirname, '../..');
  const site = makeFolder({ 'www/a.txt': 'a', 'private/secret.txt': 'secret' }, join(root, 'artifacts'));
  symlinkSync('../private/secret.txt', `${site}/www/link.txt`);
  symlinkSync('../private/secret.txt', `${site}/www/a.txt.gz`);
  // A bundle, because a loader of TypeScript would need further permissions.
  const bundler = ['node_modules/rolldown/bin/cli.mjs', 'test/static/restricted-server.ts'];
  execFileSync(process.execPath, [
    ...bundler,
    '--platform',
    'node',
    '--format',
    'esm',
    '-d',
    `${site}/program`,
  ]);
  const known = process.allowedNodeEnvironmentFlags;
  const child = spawn(
    process.execPath,
    [
      known.has('--permission') ? '--permission' : '--experimental-permission',
      ...(known.has('--allow-net') ? ['--allow-net'] : []),
      `--allow-fs-read=${site}/www/`,
      `--allow-fs-read=${site}/program/`,
      `--allow-fs-read=${root}/package.json`,
      `--allow-fs-read=${root}/node_modules/`,
      `${site}/program/restricted-server.js`,
      `${site}/www`,
      'follow',
    ],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  try {
    const [line] = await once(child.stdout, 'data');
    expect((await get(Number(line), '/a.txt', { 'Accept-Encoding': 'gzip' })).text).toBe('a');
    expect((await get(Number(line), '/link.txt')).status).toBe(404);
  } finally {
    child.kill();
    await once(child, 'exit');
  }
});

describe('a process without free descriptors', () => {
  it('staticFiles sends 503 with Retry-After when descriptors run out, warns once, and recovers', async () => {
    const main = `exec "${process.execPath}" --import tsx test/static/restricted-server.ts "${folder}"`;
    const child = spawn('sh', ['-c', `ulimit -n 128; ${main}`], { stdio: ['ignore', 'pipe', 'pipe'] });
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      log += chunk;
    });
    try {
      const [line] = await once(child.stdout, 'data');
      const port = Number(line);
      // This connection is open before the descriptors run out.
      const client = connect(port, '127.0.0.1');
      await once(client, 'connect');
      client.write('GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(String(await once(client, 'data'))).toMatch(/^HTTP\/1\.1 200 /);
      const holders: Socket[] = [];
      let response = '';
      while (!response.includes(' 503 ')) {
        expect(holders.length).toBeLessThan(200);
        const holder = connect(port, '127.0.0.1');
        holder.on('error', () => {});
        await once(holder, 'connect');
        holders.push(holder);
        client.write('GET /b.txt HTTP/1.1\r\nHost: x\r\n\r\n');
        response = String(await once(client, 'data'));
        if (response.includes(' 200 '))
          client.write('GET /large.bin HTTP/1.1\r\nHost: x\r\nRange: bytes=0-0\r\n\r\n');
        if (response.includes(' 200 ')) response = String(await once(client, 'data'));
      }
      expect(response).toMatch(/^retry-after: 1\r$/im);
      for (let count = 0; count < 3; count++) {
        client.write('GET /b.txt HTTP/1.1\r\nHost: x\r\n\r\n');
        await once(client, 'data');
      }
      for (const holder of holders) holder.destroy();
      for (let status = ''; !status.includes(' 206 '); ) {
        client.write('GET /large.bin HTTP/1.1\r\nHost: x\r\nRange: bytes=0-0\r\n\r\n');
        status = String(await once(client, 'data'));
      }
      // A file that could not be opened is not cached as missing.
      client.write('GET /b.txt HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(String(await once(client, 'data'))).toMatch(/^HTTP\/1\.1 200 /);
      client.destroy();
    } finally {
      child.kill();
      await once(child, 'close');
    }
    expect(
      log.match(/\[ESPALIER_STATIC\] StaticWarning: staticFiles: clients get 503 .* \(EMFILE\)/g),
    ).toHaveLength(1);
  });
});

describe('the HTTP/2 compatibility API', () => {
  let port: number;
  const server = createHttp2Server();
  const files = staticFiles(folder, { ...STREAMED, precompressed: true });

  beforeAll(async () => {
    server.on('request', (req, res) => {
      files(req as never, res as never, () => {
        res.statusCode = 404;
        res.end('passed on');
      });
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => new Promise((done) => server.close(done)));

  async function request(headers: Record<string, string>) {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    const stream = session.request(headers);
    const chunks: Buffer[] = [];
    stream.on('data', (chunk) => chunks.push(chunk));
    const [head] = await once(stream, 'response');
    if (!stream.readableEnded) await once(stream, 'end');
    session.close();
    return { status: head[':status'] as number, headers: head, body: Buffer.concat(chunks) };
  }

  it('staticFiles serves files, conditions, ranges and 404 over HTTP/2', async () => {
    const whole = await request({ ':path': '/a.txt' });
    expect(whole).toMatchObject({ status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' } });
    expect(whole.body.toString()).toBe('0123456789');
    expect((await request({ ':path': '/a.txt', 'if-none-match': whole.headers.etag })).status).toBe(304);
    expect((await request({ ':path': '/a.txt', range: 'bytes=1-2' })).body.toString()).toBe('12');
    expect((await request({ ':path': '/a.txt', range: 'bytes=99-' })).status).toBe(416);
    expect((await request({ ':path': '/large.bin' })).body).toHaveLength(8_000_000);
    expect((await request({ ':path': '/large.bin', range: 'bytes=0-9,20-29' })).status).toBe(206);
    expect((await request({ ':path': '/large.bin', ':method': 'HEAD' })).headers['content-length']).toBe(
      '8000000',
    );
    expect((await request({ ':path': '/none' })).body.toString()).toBe('passed on');
  });

  it('staticFiles closes the file when an HTTP/2 client cancels the stream', async () => {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    for (let i = 0; i < 10; i++) {
      const stream = session.request({ ':path': '/large.bin' });
      await once(stream, 'data');
      stream.close(NGHTTP2_CANCEL);
      await once(stream, 'close');
    }
    await untilClosed();
    session.close();
    expect((await request({ ':path': '/a.txt' })).status).toBe(200);
  });
});

it('staticFiles responds to 3000 unknown paths and still serves existing files', async () => {
  const port = await listen(bare(staticFiles(folder, STREAMED)));
  await get(port, '/a.txt');
  const socket = connect(port, '127.0.0.1');
  let responses = 0;
  socket.on('data', (chunk) => {
    responses += String(chunk).split('passed on').length - 1;
  });
  for (let i = 0; i < 3000; i++) {
    socket.write(`GET ${i % 2 === 0 ? `/junk${i}` : `/a.txt/${i}?${i}`} HTTP/1.1\r\nHost: x\r\n\r\n`);
  }
  while (responses < 3000) await once(socket, 'data');
  socket.destroy();
  expect((await get(port, '/a.txt')).text).toBe('0123456789');
});

it('staticFiles caches a large file that is requested often, and detects its changes', async () => {
  const root = makeFolder({ 'a.bin': Buffer.alloc(3 << 20, 'a'), 'b.bin': Buffer.alloc(9 << 20, 'b') });
  const port = await listen(bare(staticFiles(root)));
  const bytesOf = async (path: string): Promise<number> => {
    const before = bytesRead();
    const socket = connect(port, '127.0.0.1');
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    // The client must read too, so that only about one more reading of the body is the server's.
    for await (const _chunk of socket);
    return bytesRead() - before;
  };
  const first = (await get(port, '/a.bin', {}, 'HEAD')).headers.etag;
  for (let i = 0; i < 10; i++) await get(port, '/a.bin');
  expect(await bytesOf('/a.bin')).toBeLessThan(4 << 20);
  const cached = await get(port, '/a.bin', { Range: 'bytes=5-6' });
  expect([cached.status, cached.text, cached.headers.etag]).toEqual([206, 'aa', first]);
  writeFileSync(`${root}/a.bin`, Buffer.alloc(3 << 20, 'c'));
  expect((await get(port, '/a.bin', { Range: 'bytes=5-6' })).text).toBe('cc');
  for (let i = 0; i < 10; i++) await get(port, '/b.bin');
  expect(await bytesOf('/b.bin')).toBeGreaterThan(17 << 20);
});
