/** @tags node-lines */
import { createHash } from 'node:crypto';
import {
  closeSync,
  ftruncateSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { staticFiles } from '../../middleware/static.ts';
import { bare, get, listen, makeFolder, put, receivedBytes, type TestResponse } from './fixture.ts';

const hashTag = (body: Buffer): string =>
  `"${body.length.toString(16)}-${createHash('sha1').update(body).digest('base64').slice(0, 27)}"`;

function replace(path: string, content: string | Buffer): void {
  writeFileSync(`${path}.new`, content);
  renameSync(`${path}.new`, path);
}

describe('freshness', () => {
  it('staticFiles sends the same ETag for the same bytes, on every server and after touch', async () => {
    const one = makeFolder({ 'a.txt': 'content', 'large.bin': Buffer.alloc(400_000, 'x') });
    const two = makeFolder({ 'a.txt': 'content', 'large.bin': Buffer.alloc(400_000, 'x') });
    utimesSync(`${two}/a.txt`, 1, 1);
    const ports = [
      await listen(bare(staticFiles(one))),
      await listen(bare(staticFiles(two))),
      await listen(bare(staticFiles(two, { cache: { maxBytes: 1 } }))),
    ];
    for (const path of ['/a.txt', '/large.bin']) {
      const tags = new Set<unknown>();
      for (const port of ports) tags.add(await waitForEtag(port, path));
      expect([...tags]).toEqual([expect.stringMatching(/^"/)]);
    }
    const before = await get(ports[0] as number, '/a.txt');
    utimesSync(`${one}/a.txt`, 100, 100);
    const after = await get(ports[0] as number, '/a.txt', { 'If-None-Match': before.headers.etag as string });
    expect(after.status).toBe(304);
    expect(after.headers['last-modified']).not.toBe(before.headers['last-modified']);
  });

  it('staticFiles sends the new content to the first request after every kind of change', async () => {
    const root = makeFolder({ 'a.txt': 'version 000' });
    const path = `${root}/a.txt`;
    const times = statSync(path);
    const port = await listen(bare(staticFiles(root)));
    const ways = [
      (content: string) => replace(path, content),
      (content: string) => writeFileSync(path, content),
      (content: string) => {
        const fd = openSync(path, 'r+');
        writeSync(fd, content, 0);
        closeSync(fd);
      },
    ];
    for (let i = 1; i <= 90; i++) {
      const content = `version ${String(i).padStart(3, '0')}`;
      (ways[i % ways.length] as (content: string) => void)(content);
      // The size never changes, and here the mtime does not change either.
      if (i % 2 === 0) utimesSync(path, times.atime, times.mtime);
      const responses = await Promise.all([get(port, '/a.txt'), get(port, '/a.txt?x'), get(port, '/a.txt')]);
      for (const response of responses) {
        expect(response.text).toBe(content);
        expect(response.headers.etag).toBe(hashTag(Buffer.from(content)));
      }
    }
  });

  it('staticFiles detects deleted and created files with the next request', async () => {
    const root = makeFolder({ 'a.txt': 'a' });
    const port = await listen(bare(staticFiles(root)));
    for (let i = 0; i < 20; i++) {
      expect((await get(port, '/a.txt')).status).toBe(200);
      rmSync(`${root}/a.txt`);
      expect((await get(port, '/a.txt')).status).toBe(404);
      writeFileSync(`${root}/a.txt`, 'a');
    }
  });

  it('staticFiles checks a file that has just changed in spite of revalidateAfter', async () => {
    const root = makeFolder({ 'a.txt': 'one' });
    const port = await listen(bare(staticFiles(root, { cache: { revalidateAfter: 3_600_000 } })));
    expect((await get(port, '/a.txt')).text).toBe('one');
    replace(`${root}/a.txt`, 'two');
    expect((await get(port, '/a.txt')).text).toBe('two');
  });
});

/** A streamed file has no ETag while another write could leave its timestamps unchanged: waits for the ETag. */
async function waitForEtag(port: number, path: string): Promise<string> {
  for (;;) {
    const { etag } = (await get(port, path)).headers;
    if (etag !== undefined) return etag;
  }
}

/** Repeats a change every `pause` milliseconds until `work` has finished. */
async function during(change: () => unknown, pause: number, work: () => Promise<unknown>): Promise<void> {
  let isRunning = true;
  const changing = (async () => {
    while (isRunning) {
      await change();
      await new Promise((done) => setTimeout(done, pause));
    }
  })();
  try {
    await work();
  } finally {
    isRunning = false;
    await changing;
  }
}

/** Eight clients send requests while `change` repeats; every complete response must have one version and its ETag. */
async function requestDuringChanges(port: number, requests: number, change: () => void) {
  const counts = { complete: 0, cut: 0, otherStatuses: new Set<number>() };
  const read = async (): Promise<void> => {
    for (let i = 0; i < requests / 8; i++) {
      const response = await get(port, '/a.bin').catch(() => undefined);
      if (response === undefined) counts.cut++;
      else if (response.status !== 200) counts.otherStatuses.add(response.status);
      else {
        counts.complete++;
        expectOneVersion(response);
      }
    }
  };
  await during(change, 4, () => Promise.all(Array.from({ length: 8 }, read)));
  // A file that keeps changing may give a 503 on a slow machine, and no other status.
  expect([503]).toEqual(expect.arrayContaining([...counts.otherStatuses]));
  return counts;
}

function expectOneVersion({ body, headers }: TestResponse): void {
  expect(headers['content-length']).toBe(String(body.length));
  expect(body.equals(Buffer.alloc(body.length, body[0]))).toBe(true);
  if (headers.etag !== undefined) expect(headers.etag).toBe(hashTag(body));
}

it.each([
  ['in memory', 100],
  ['streamed', 400_000],
])(
  'staticFiles never sends an error for a file that is deleted and created repeatedly, %s',
  async (_how, size) => {
    const root = makeFolder({ 'a.bin': Buffer.alloc(size) });
    const port = await listen(bare(staticFiles(root)));
    const statuses = new Set<number>();
    const change = async (): Promise<void> => {
      rmSync(`${root}/a.bin`);
      await new Promise(setImmediate);
      replace(`${root}/a.bin`, Buffer.alloc(size));
    };
    const read = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) {
        // A response whose file changes is cut off, so there is no status.
        const response = await get(port, '/a.bin').catch(() => undefined);
        if (response !== undefined) statuses.add(response.status);
      }
    };
    await during(change, 1, () => Promise.all(Array.from({ length: 8 }, read)));
    expect([200, 404, 503]).toEqual(expect.arrayContaining([...statuses]));
  },
);

describe.each([
  ['in memory', 100_000],
  ['streamed', 400_000],
])('a file that changes repeatedly, %s', (_how, size) => {
  let version = 0;
  const content = (): Buffer => Buffer.alloc(size + (version % 3) * 1000, 65 + (version++ % 26));

  it('staticFiles never cuts or mixes a response when a file is replaced atomically', async () => {
    const root = makeFolder({ 'a.bin': content() });
    const port = await listen(bare(staticFiles(root)));
    const { complete, cut } = await requestDuringChanges(port, 80, () => replace(`${root}/a.bin`, content()));
    expect(cut).toBe(0);
    expect(complete).toBeGreaterThan(0);
  });

  it('staticFiles never completes a response of two versions when a file is rewritten in place', async () => {
    const root = makeFolder({ 'a.bin': content() });
    const port = await listen(bare(staticFiles(root)));
    await requestDuringChanges(port, 80, () => writeFileSync(`${root}/a.bin`, content()));
    expectOneVersion(await get(port, '/a.bin'));
  });
});

it('staticFiles destroys the connection when a file is truncated while it is sent', async () => {
  const root = makeFolder({ 'a.bin': Buffer.alloc(20_000_000, 'x') });
  const port = await listen(bare(staticFiles(root)));
  const fd = openSync(`${root}/a.bin`, 'r+');
  const { connect } = await import('node:net');
  const received = await new Promise<number>((resolve) => {
    let bytes = 0;
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /a.bin HTTP/1.1\r\nHost: x\r\n\r\n'));
    socket.once('data', () => ftruncateSync(fd, 1000));
    socket.on('data', (chunk) => {
      bytes += chunk.length;
    });
    // The kernel decides whether the client sees a FIN or a reset.
    socket.on('error', () => {});
    socket.on('close', () => resolve(bytes));
  });
  closeSync(fd);
  expect(received).toBeLessThan(20_000_000);
  expect((await get(port, '/a.bin')).headers['content-length']).toBe('1000');
});

it('staticFiles sends Last-Modified only for a large file until its ETag is ready', async () => {
  const root = makeFolder({ 'a.bin': '' });
  const fd = openSync(`${root}/a.bin`, 'r+');
  ftruncateSync(fd, 12 << 20);
  closeSync(fd);
  utimesSync(`${root}/a.bin`, 1e9, 1e9);
  const port = await listen(bare(staticFiles(root)));
  const first = await get(port, '/a.bin', {}, 'HEAD');
  expect(first.headers).toMatchObject({ 'last-modified': expect.any(String), 'accept-ranges': 'bytes' });
  expect(first.headers).not.toHaveProperty('etag');
  const tag = await waitForEtag(port, '/a.bin');
  expect(tag).toBe(hashTag(Buffer.alloc(12 << 20)));
});

it('staticFiles sends no date without an ETag in the second in which a large file was written', async () => {
  const root = makeFolder({ 'a.bin': Buffer.alloc(9 << 20, 'a') });
  const port = await listen(bare(staticFiles(root)));
  const write = (content: string, second: number): void => {
    put(`${root}/a.bin`, Buffer.alloc(9 << 20, content));
    utimesSync(`${root}/a.bin`, second, second);
  };
  let first: TestResponse;
  let second: number;
  do {
    second = Math.floor(Date.now() / 1000);
    write('a', second);
    first = await get(port, '/a.bin', { Range: 'bytes=0-9' });
  } while (Math.floor(Date.now() / 1000) !== second);
  write('b', second);
  const validators = first.headers.etag ?? first.headers['last-modified'];
  const rest = await get(port, '/a.bin', { Range: 'bytes=10-19', 'If-Range': validators ?? '"none"' });
  expect([rest.status, rest.body.length]).toEqual([200, 9 << 20]);
});

it('staticFiles hashes no file over 16 GiB, and hashes the next file immediately', async () => {
  const root = makeFolder({ 'huge.img': '', 'large.bin': Buffer.alloc(9 << 20, 'x') });
  truncateSync(`${root}/huge.img`, 17 * 2 ** 30);
  utimesSync(`${root}/huge.img`, 1e9, 1e9);
  const port = await listen(bare(staticFiles(root)));
  const { headers } = await get(port, '/huge.img', {}, 'HEAD');
  expect(headers).toMatchObject({
    'last-modified': expect.any(String),
    'content-length': String(17 * 2 ** 30),
  });
  // Files are hashed in the order of their requests.
  await waitForEtag(port, '/large.bin');
  expect((await get(port, '/huge.img', {}, 'HEAD')).headers).not.toHaveProperty('etag');
  const range = await get(port, '/huge.img', { Range: `bytes=${16 * 2 ** 30}-${16 * 2 ** 30 + 9}` });
  expect([range.status, range.body]).toEqual([206, Buffer.alloc(10)]);
});

it('staticFiles evaluates all conditions with an ETag that was computed in the background', async () => {
  const root = makeFolder({ 'film.mp4': Buffer.alloc(9 << 20, 'x') });
  const port = await listen(bare(staticFiles(root)));
  let tag: string | undefined;
  while (tag === undefined) tag = (await get(port, '/film.mp4', {}, 'HEAD')).headers.etag;
  const statusOf = async (headers: Record<string, string>) => (await get(port, '/film.mp4', headers)).status;
  expect(await statusOf({ 'If-None-Match': tag })).toBe(304);
  expect(await statusOf({ 'If-Match': tag, Range: 'bytes=0-9' })).toBe(206);
  expect(await statusOf({ 'If-Range': tag, Range: 'bytes=0-9' })).toBe(206);
  expect(await statusOf({ 'If-Match': '"another"' })).toBe(412);
});

it('staticFiles never leaves the root while symbolic links are switched during requests', async () => {
  const folder = makeFolder({
    'www/in/a.txt': 'inside',
    'www/big/a.txt': 'i'.repeat(300_000),
    'out/a.txt': 'SECRET',
    'outbig/a.txt': 'S'.repeat(300_000),
  });
  const port = await listen(bare(staticFiles(`${folder}/www`)));
  const link = (target: string, name: string): void => {
    symlinkSync(target, `${folder}/tmp-link`);
    renameSync(`${folder}/tmp-link`, `${folder}/www/${name}`);
  };
  let turn = 0;
  const swap = (): void => {
    const outside = turn++ % 2 === 0;
    link(outside ? '../out' : 'in', 'dir');
    link(outside ? '../../out/a.txt' : 'a.txt', 'in/file.txt');
    link(outside ? '../outbig' : 'big', 'bigdir');
  };
  const served = { inside: 0 };
  const read = async (path: string): Promise<void> => {
    for (let i = 0; i < 40; i++) {
      const response = await get(port, path);
      expect(response.text).not.toMatch(/^S/);
      if (response.status === 200) served.inside++;
      else expect([404, 503]).toContain(response.status);
    }
  };
  await during(swap, 0, () => Promise.all(['/dir/a.txt', '/in/file.txt', '/bigdir/a.txt'].map(read)));
  expect(served.inside).toBeGreaterThan(0);
});

it('staticFiles serves files whose bodies exceed maxBytes with the same ETag and current content', async () => {
  const names = Array.from({ length: 30 }, (_, index) => `${index}.txt`);
  const content = (name: string, version: number): string => `${name} ${version} `.repeat(100);
  const root = makeFolder(Object.fromEntries(names.map((name) => [name, content(name, 0)])));
  const port = await listen(bare(staticFiles(root, { cache: { maxBytes: 3000 } })));
  for (let round = 0; round < 12; round++) {
    for (const name of names) {
      const { text, headers, status } = await get(port, `/${name}`);
      expect([status, text]).toEqual([200, content(name, 0)]);
      expect(headers.etag).toBe(hashTag(Buffer.from(text)));
      const again = await get(port, `/${name}`, { 'If-None-Match': headers.etag as string });
      expect(again.status).toBe(304);
    }
  }
  for (const name of names) replace(`${root}/${name}`, content(name, 1));
  for (const name of names) expect((await get(port, `/${name}`)).text).toBe(content(name, 1));
});

it('staticFiles contains files in the new target after a linked root is switched', async () => {
  const folder = makeFolder({ 'one/a.txt': 'one', 'two/a.txt': 'two', 'secret.txt': 's' });
  symlinkSync('../secret.txt', `${folder}/two/link.txt`);
  symlinkSync('one', `${folder}/current`);
  const own = await listen(bare(staticFiles(`${folder}/current`)));
  expect((await get(own, '/a.txt')).text).toBe('one');
  symlinkSync('two', `${folder}/next`);
  renameSync(`${folder}/next`, `${folder}/current`);
  expect((await get(own, '/a.txt')).text).toBe('two');
  expect((await get(own, '/link.txt')).status).toBe(404);
});

it('staticFiles sends an empty body for a /proc file, whose stat reports no bytes', async () => {
  const own = await listen(bare(staticFiles('/proc/self')));
  for (const target of ['/status', '/maps', '/environ']) {
    const { status, text } = await get(own, target);
    expect([200, 404]).toContain(status);
    if (status === 200) expect(text).toBe('');
  }
});

it('staticFiles finishes a response when the file is deleted or replaced', async () => {
  const size = 20_000_000;
  for (const change of [rmSync, (path: string) => replace(path, 'new')]) {
    const folder = makeFolder({ 'a.bin': Buffer.alloc(size, 'x') });
    const port = await listen(bare(staticFiles(folder)));
    expect(await receivedBytes(port, '/a.bin', () => change(`${folder}/a.bin`))).toBe(size);
  }
});
