import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect as connectHttp2, constants, createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { staticFiles } from '../../middleware/static.ts';
import { until } from '../until.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

const { NGHTTP2_CANCEL } = constants;
const folder = makeFolder({
  'a.txt': '0123456789',
  'b.txt': 'never asked for before',
  'large.bin': Buffer.alloc(8_000_000, 'x'),
});

/** Descriptors of this process that lead into the folder. */
function openFiles(): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder);
    } catch {
      return false;
    }
  }).length;
}

async function untilClosed(): Promise<void> {
  await until(() => openFiles() === 0);
}

/** A client that asks and then reads no more than it is sent at once. */
async function slowReader(port: number, target: string, headers = ''): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
  await once(socket, 'data');
  socket.pause();
  return socket;
}

describe('53 clients that go away', () => {
  it.each([
    ['the whole', ''],
    ['a range', 'Range: bytes=100-\r\n'],
    ['several ranges', 'Range: bytes=0-3000000,4000000-7000000\r\n'],
  ])('leave no descriptor behind: %s', async (_what, headers) => {
    const port = await listen(bare(staticFiles(folder)));
    const sockets = await Promise.all(
      Array.from({ length: 60 }, () => slowReader(port, '/large.bin', headers)),
    );
    expect(openFiles()).toBe(60);
    for (const [index, socket] of sockets.entries())
      index % 2 === 0 ? socket.destroy() : socket.resetAndDestroy();
    await untilClosed();
    expect((await get(port, '/large.bin')).body).toHaveLength(8_000_000);
    await untilClosed();
  });

  it('before the file is even open', async () => {
    const port = await listen(bare(staticFiles(folder)));
    await get(port, '/large.bin', {}, 'HEAD');
    for (let i = 0; i < 100; i++) {
      const socket = connect(port, '127.0.0.1');
      socket.write('GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n', () => socket.destroy());
      await once(socket, 'close');
    }
    expect((await get(port, '/a.txt')).status).toBe(200);
    await untilClosed();
  });

  it('HEAD, 304, 412 and 416 open nothing', async () => {
    const port = await listen(bare(staticFiles(folder)));
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

/** Bytes that this process has read, from files and sockets alike. */
function bytesRead(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
}

it('37 what this process may not read is a miss', async () => {
  const locked = makeFolder({ 'www/a.txt': 'a', 'www/locked.txt': 'locked', 'www/dir/b.txt': 'b' });
  chmodSync(locked, 0o755);
  chmodSync(`${locked}/www/locked.txt`, 0);
  chmodSync(`${locked}/www/dir`, 0);
  // Root may read everything unless it gives that up.
  const unprivileged = ['setpriv', '--bounding-set', '-dac_override,-dac_read_search'];
  const command = process.getuid?.() === 0 ? unprivileged : [];
  const [program, ...rest] = [
    ...command,
    process.execPath,
    '--import',
    'tsx',
    'test/static/out-of-descriptors.ts',
  ];
  const child = spawn(program as string, [...rest, `${locked}/www`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [line] = await once(child.stdout, 'data');
    expect((await get(Number(line), '/a.txt')).text).toBe('a');
    for (const path of ['/locked.txt', '/dir/b.txt']) {
      const answer = await get(Number(line), path);
      expect([answer.status, answer.text]).toEqual([404, 'Not Found\n']);
    }
  } finally {
    child.kill();
    await once(child, 'exit');
    chmodSync(`${locked}/www/dir`, 0o755);
  }
});

describe('54 out of descriptors', () => {
  it('is answered 503 with Retry-After, and recovered from', async () => {
    const main = `exec "${process.execPath}" --import tsx test/static/out-of-descriptors.ts "${folder}"`;
    const child = spawn('sh', ['-c', `ulimit -n 128; ${main}`], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const [line] = await once(child.stdout, 'data');
      const port = Number(line);
      // One connection is open already when there is no descriptor left for a file.
      const asking = connect(port, '127.0.0.1');
      await once(asking, 'connect');
      asking.write('GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(String(await once(asking, 'data'))).toMatch(/^HTTP\/1\.1 200 /);
      const holders: Socket[] = [];
      let answer = '';
      while (!answer.includes(' 503 ')) {
        expect(holders.length).toBeLessThan(200);
        const holder = connect(port, '127.0.0.1');
        holder.on('error', () => {});
        await once(holder, 'connect');
        holders.push(holder);
        asking.write('GET /b.txt HTTP/1.1\r\nHost: x\r\n\r\n');
        answer = String(await once(asking, 'data'));
        if (answer.includes(' 200 '))
          asking.write('GET /large.bin HTTP/1.1\r\nHost: x\r\nRange: bytes=0-0\r\n\r\n');
        if (answer.includes(' 200 ')) answer = String(await once(asking, 'data'));
      }
      expect(answer).toMatch(/^retry-after: 1\r$/im);
      for (const holder of holders) holder.destroy();
      for (let status = ''; !status.includes(' 206 '); ) {
        asking.write('GET /large.bin HTTP/1.1\r\nHost: x\r\nRange: bytes=0-0\r\n\r\n');
        status = String(await once(asking, 'data'));
      }
      // What could not be opened then is not remembered as missing.
      asking.write('GET /b.txt HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(String(await once(asking, 'data'))).toMatch(/^HTTP\/1\.1 200 /);
      asking.destroy();
    } finally {
      child.kill();
      await once(child, 'exit');
    }
  });
});

describe('HTTP/2 by the compatibility API', () => {
  let port: number;
  const server = createHttp2Server();
  const files = staticFiles(folder, { precompressed: true });

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

  async function ask(headers: Record<string, string>) {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    const stream = session.request(headers);
    const chunks: Buffer[] = [];
    stream.on('data', (chunk) => chunks.push(chunk));
    const [seen] = await once(stream, 'response');
    if (!stream.readableEnded) await once(stream, 'end');
    session.close();
    return { status: seen[':status'] as number, headers: seen, body: Buffer.concat(chunks) };
  }

  it('answers files, conditions, ranges and misses', async () => {
    const whole = await ask({ ':path': '/a.txt' });
    expect(whole).toMatchObject({ status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' } });
    expect(whole.body.toString()).toBe('0123456789');
    expect((await ask({ ':path': '/a.txt', 'if-none-match': whole.headers.etag })).status).toBe(304);
    expect((await ask({ ':path': '/a.txt', range: 'bytes=1-2' })).body.toString()).toBe('12');
    expect((await ask({ ':path': '/a.txt', range: 'bytes=99-' })).status).toBe(416);
    expect((await ask({ ':path': '/large.bin' })).body).toHaveLength(8_000_000);
    expect((await ask({ ':path': '/large.bin', range: 'bytes=0-9,20-29' })).status).toBe(206);
    expect((await ask({ ':path': '/large.bin', ':method': 'HEAD' })).headers['content-length']).toBe(
      '8000000',
    );
    expect((await ask({ ':path': '/none' })).body.toString()).toBe('passed on');
  });

  it('closes its descriptor when the client cancels', async () => {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    for (let i = 0; i < 10; i++) {
      const stream = session.request({ ':path': '/large.bin' });
      await once(stream, 'data');
      stream.close(NGHTTP2_CANCEL);
      await once(stream, 'close');
    }
    await untilClosed();
    session.close();
    expect((await ask({ ':path': '/a.txt' })).status).toBe(200);
  });
});

it('39 a flood of made-up paths is answered, and what is there still is', async () => {
  const port = await listen(bare(staticFiles(folder)));
  await get(port, '/a.txt');
  const socket = connect(port, '127.0.0.1');
  let answered = 0;
  socket.on('data', (chunk) => {
    answered += String(chunk).split('passed on').length - 1;
  });
  for (let i = 0; i < 3000; i++) {
    socket.write(`GET ${i % 2 === 0 ? `/junk${i}` : `/a.txt/${i}?${i}`} HTTP/1.1\r\nHost: x\r\n\r\n`);
  }
  while (answered < 3000) await once(socket, 'data');
  socket.destroy();
  expect((await get(port, '/a.txt')).text).toBe('0123456789');
});
