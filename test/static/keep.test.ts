/** @tags once */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import promises from 'node:fs/promises';
import { join } from 'node:path';
import { staticFiles } from '../../middleware/static.ts';
import type { KeepOptions, StaticFilesOptions } from '../../types/static.ts';
import { memoryInUse } from '../heap.ts';
import { until } from '../until.ts';
import { bare, get, listen, makeFolder, put } from './fixture.ts';

const FILES = {
  'dist/index.html': '<script type=module src=/assets/main-a.js></script>',
  'dist/assets/main-a.js': "import('./more-a.js')",
  'dist/assets/more-a.js': 'more',
  'dist/assets/page.html': 'page',
  'dist/other.js': 'other',
};

interface Site {
  readonly port: number;
  readonly folder: string;
  readonly dist: string;
  readonly kept: string;
}

async function site(
  keep: Partial<KeepOptions> = {},
  options: StaticFilesOptions = {},
  folder: string = makeFolder(FILES),
): Promise<Site> {
  const dist = join(folder, 'dist');
  const kept = join(folder, 'kept');
  const files = staticFiles(dist, {
    cacheControl: /^\/assets\//,
    html: true,
    keep: { directory: kept, ...keep },
    ...options,
  });
  return { port: await listen(bare(files)), folder, dist, kept };
}

const keeps = (path: string): Promise<unknown> => until(() => existsSync(path));
const DAY = 86_400_000;
const setAge = (path: string, days: number): void => {
  const time = new Date(Date.now() - days * DAY);
  utimesSync(path, time, time);
};

/** Replaces the build by one with other names. */
function deploy({ dist }: Site): void {
  rmSync(dist, { recursive: true });
  put(join(dist, 'index.html'), '<script type=module src=/assets/main-b.js></script>');
  put(join(dist, 'assets/main-b.js'), 'main b');
}

describe('keep', () => {
  it('staticFiles serves an immutable file of an earlier build, with the same ETag, ranges and HEAD', async () => {
    const shop = await site();
    const before = await get(shop.port, '/assets/main-a.js');
    await keeps(join(shop.kept, 'assets/main-a.js'));
    deploy(shop);
    const after = await get(shop.port, '/assets/main-a.js');
    expect(after).toMatchObject({ status: 200, text: before.text });
    expect(after.headers).toMatchObject({
      etag: before.headers.etag,
      'cache-control': before.headers['cache-control'],
    });
    const known = await get(shop.port, '/assets/main-a.js', {
      'if-none-match': before.headers.etag as string,
    });
    expect(known.status).toBe(304);
    const part = await get(shop.port, '/assets/main-a.js', { range: 'bytes=0-2' });
    expect(part).toMatchObject({ status: 206, text: before.text.slice(0, 3) });
    const head = await get(shop.port, '/assets/main-a.js', {}, 'HEAD');
    expect(head.headers['content-length']).toBe(String(before.body.length));
    expect((await get(shop.port, '/assets/main-b.js')).text).toBe('main b');
  });

  it('staticFiles keeps a chunk that was never requested, and one of a build that arrives later', async () => {
    const shop = await site();
    await keeps(join(shop.kept, 'assets/more-a.js'));
    deploy(shop);
    expect((await get(shop.port, '/assets/more-a.js')).text).toBe('more');
    put(join(shop.dist, 'assets/more-b.js'), 'more b');
    await get(shop.port, '/');
    await keeps(join(shop.kept, 'assets/more-b.js'));
  });

  it('staticFiles keeps neither pages nor files that may change', async () => {
    const { port, kept } = await site();
    await get(port, '/other.js');
    await get(port, '/assets/page.html');
    await keeps(join(kept, 'assets/main-a.js'));
    await keeps(join(kept, 'assets/more-a.js'));
    // Each copy has another name until it is whole.
    const names = () => readdirSync(kept, { recursive: true, encoding: 'utf8' }).sort();
    await until(() => names().length <= 3);
    expect(names()).toEqual(['assets', 'assets/main-a.js', 'assets/more-a.js']);
  });

  it.each([
    // Names that Rollup and webpack give: a hash may look like a word, a number or a date.
    [
      'vite',
      ['Settings', 'abcdefgh', '20261129', 'ab-cdefg', 'Photo_01', 'B_k3-x9Q'].map(
        (hash) => `assets/a-${hash}.js`,
      ),
    ],
    ['vite', ['assets/a-ABCDEFGH.css', 'assets/font-overview.woff2', 'assets/a-Settings.js.map']],
    [
      'webpack',
      ['20261129', 'defacade', '4c186c3c', '94857201837465019283'].map((hash) => `js/main.${hash}.chunk.js`),
    ],
  ])('staticFiles keeps every chunk of %s whatever its hash looks like: %j', async (cacheControl, names) => {
    const folder = makeFolder(Object.fromEntries(names.map((name) => [`dist/${name}`, `// ${name}`])));
    const shop = await site({}, { cacheControl }, folder);
    for (const name of names) await keeps(join(shop.kept, name));
    deploy(shop);
    for (const name of names) expect((await get(shop.port, `/${name}`)).text).toBe(`// ${name}`);
    // A later start deletes those that nobody has used.
    for (const name of names) setAge(join(shop.kept, name), 100);
    await site({}, { cacheControl }, folder);
    for (const name of names) await until(() => !existsSync(join(shop.kept, name)));
    for (const name of names.filter((each) => /\.(?:js|css)$/.test(each))) {
      const missing = await get(shop.port, `/${name}`);
      expect([missing.status, missing.headers['cache-control']]).toEqual([404, 'no-store']);
    }
  });

  it('staticFiles keeps the newest bytes of a file whose name only looks like one with a hash', async () => {
    const emit = jest.spyOn(process, 'emitWarning').mockImplementation();
    const name = 'assets/logo-Negative.svg';
    const shop = await site({}, { cacheControl: 'vite' }, makeFolder({ [`dist/${name}`]: 'first' }));
    await keeps(join(shop.kept, name));
    put(join(shop.dist, name), 'second');
    expect((await get(shop.port, `/${name}`)).text).toBe('second');
    await until(() => readFileSync(join(shop.kept, name), 'utf8') === 'second');
    deploy(shop);
    expect(await get(shop.port, `/${name}`)).toMatchObject({
      text: 'second',
      headers: { 'cache-control': 'public, max-age=0' },
    });
    expect(emit).not.toHaveBeenCalled();
    emit.mockRestore();
  });

  it('staticFiles keeps immutable files that only browsers may cache', async () => {
    const cacheControl = 'private, max-age=31536000, immutable';
    const shop = await site({}, { cacheControl });
    await keeps(join(shop.kept, 'assets/main-a.js'));
    deploy(shop);
    expect(await get(shop.port, '/assets/main-a.js')).toMatchObject({
      status: 200,
      headers: { 'cache-control': cacheControl },
    });
  });

  it('staticFiles keeps scripts with the ending .cjs, and answers a missing one as a script', async () => {
    const shop = await site({}, {}, makeFolder({ 'dist/assets/lib.umd.cjs': 'lib' }));
    await keeps(join(shop.kept, 'assets/lib.umd.cjs'));
    const missing = await get(shop.port, '/assets/other.umd.cjs');
    expect([missing.status, missing.headers['cache-control']]).toEqual([404, 'no-store']);
  });

  it('staticFiles sends no kept page, and none that somebody has put there', async () => {
    const { port, kept } = await site();
    put(join(kept, 'assets/evil.html'), 'x');
    put(join(kept, 'index2.js'), 'x');
    put(join(kept, '.env'), 'x');
    symlinkSync('/etc/passwd', join(kept, 'passwd.js'));
    mkdirSync(join(kept, 'assets'), { recursive: true });
    symlinkSync('/etc/passwd', join(kept, 'assets/passwd.js'));
    for (const path of ['/assets/evil.html', '/index2.js', '/.env', '/assets/passwd.js', '/passwd.js'])
      expect((await get(port, path)).status).toBe(404);
  });

  it('staticFiles refuses other bytes under the name of a copy, and reports it', async () => {
    const warnings: string[] = [];
    const emit = jest
      .spyOn(process, 'emitWarning')
      .mockImplementation((text) => void warnings.push(String(text)));
    const first = await site();
    await keeps(join(first.kept, 'assets/main-a.js'));
    put(join(first.dist, 'assets/main-a.js'), 'other bytes');
    expect((await get(first.port, '/assets/main-a.js')).text).toBe('other bytes');
    await until(() =>
      warnings.some((text) => text.includes('/assets/main-a.js has other bytes than its copy')),
    );
    emit.mockRestore();
    deploy(first);
    expect((await get(first.port, '/assets/main-a.js')).text).toBe(FILES['dist/assets/main-a.js']);
  });

  it('staticFiles answers a missing script with a short 404 that no cache stores', async () => {
    const { port } = await site({}, { fallback: 'index.html' });
    const { status, text, headers } = await get(port, '/assets/none-x.js', { accept: 'text/html' });
    expect({ status, text }).toEqual({ status: 404, text: 'Not Found\n' });
    expect(headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-store',
    });
    expect((await get(port, '/route', { accept: 'text/html' })).status).toBe(200);
    expect((await get(port, '/none.js')).text).toBe('passed on');
  });

  it('staticFiles forgets what was not used for the days of the option, and notes each use', async () => {
    const shop = await site({ days: 8 });
    const [main, more] = ['main-a.js', 'more-a.js'].map((name) => join(shop.kept, 'assets', name)) as [
      string,
      string,
    ];
    await keeps(more);
    await keeps(main);
    deploy(shop);
    setAge(main, 7);
    setAge(more, 9);
    expect((await get(shop.port, '/assets/main-a.js')).status).toBe(200);
    expect((await get(shop.port, '/assets/more-a.js')).status).toBe(404);
    await until(() => Date.now() - statSync(main).mtimeMs < DAY);
    expect((await get(shop.port, '/assets/main-a.js')).status).toBe(200);
    // A later start deletes it.
    await site({ days: 8 }, {}, shop.folder);
    await until(() => !existsSync(more));
    expect(existsSync(main)).toBe(true);
  });

  it('staticFiles deletes no file that it would not keep, in a directory that others use too', async () => {
    const files = { 'kept/uploads/report.pdf': 'report', 'kept/assets/old-a.js': 'old' };
    const folder = makeFolder({ ...FILES, ...files });
    for (const name of Object.keys(files)) setAge(join(folder, name), 100);
    await site({}, {}, folder);
    await until(() => !existsSync(join(folder, 'kept/assets/old-a.js')));
    expect(existsSync(join(folder, 'kept/uploads/report.pdf'))).toBe(true);
  });

  it('staticFiles notes that files of the current build are in use', async () => {
    const folder = makeFolder({ ...FILES, 'kept/assets/main-a.js': FILES['dist/assets/main-a.js'] });
    setAge(join(folder, 'kept/assets/main-a.js'), 100);
    await site({}, {}, folder);
    await until(() => Date.now() - statSync(join(folder, 'kept/assets/main-a.js')).mtimeMs < DAY);
  });

  it('staticFiles deletes the copies that were used longest ago when they need more than maxBytes', async () => {
    const folder = makeFolder({
      ...FILES,
      'kept/assets/old-1.js': 'x'.repeat(400),
      'kept/assets/old-2.js': 'x'.repeat(400),
    });
    setAge(join(folder, 'kept/assets/old-1.js'), 2);
    setAge(join(folder, 'kept/assets/old-2.js'), 1);
    await site({ maxBytes: 450 }, {}, folder);
    await keeps(join(folder, 'kept/assets/more-a.js'));
    expect(readdirSync(join(folder, 'kept/assets')).sort()).toEqual(['main-a.js', 'more-a.js', 'old-2.js']);
  });

  it('staticFiles keeps large files in memory only up to some megabytes while the disk is slow', async () => {
    const folder = makeFolder(FILES);
    const size = 1024 * 1024;
    const names = Array.from({ length: 40 }, (_, index) => `assets/${index}.bin`);
    for (const [index, name] of names.entries()) put(join(folder, 'dist', name), Buffer.alloc(size, index));
    const { open } = promises;
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const spy = jest.spyOn(promises, 'open').mockImplementation(async (path, ...rest) => {
      if (String(path).includes('.keep-')) await released;
      return open(path, ...rest);
    });
    try {
      const cache = { maxBytes: 3 * size };
      const { port, kept } = await site({}, { cache }, folder);
      const before = memoryInUse().arrayBuffers;
      for (const name of names) await get(port, `/${name}`);
      expect(memoryInUse().arrayBuffers - before).toBeLessThan(20 * size);
      release();
      for (const name of names) await keeps(join(kept, name));
    } finally {
      release();
      spy.mockRestore();
    }
  });

  it('staticFiles serves the build when copies cannot be written, and says so', async () => {
    const warnings: string[] = [];
    const emit = jest
      .spyOn(process, 'emitWarning')
      .mockImplementation((text) => void warnings.push(String(text)));
    const folder = makeFolder({ ...FILES, file: '' });
    const { port } = await site({ directory: join(folder, 'file/kept') }, {}, folder);
    expect((await get(port, '/assets/main-a.js')).status).toBe(200);
    expect((await get(port, '/assets/none.js')).status).toBe(404);
    await until(() => warnings.some((text) => text.includes('are not kept in')));
    emit.mockRestore();
  });

  it('staticFiles returns to the files of a build that is rolled back', async () => {
    const shop = await site();
    await keeps(join(shop.kept, 'assets/main-a.js'));
    deploy(shop);
    await get(shop.port, '/assets/main-a.js');
    put(join(shop.dist, 'assets/main-a.js'), FILES['dist/assets/main-a.js']);
    rmSync(shop.kept, { recursive: true });
    expect((await get(shop.port, '/assets/main-a.js')).text).toBe(FILES['dist/assets/main-a.js']);
  });

  it.each([
    [{ keep: {} }, 'keep.directory'],
    [{ keep: { directory: '/tmp/x', days: 0 }, cacheControl: /x/ }, 'keep.days'],
    [{ keep: { directory: '/tmp/x', maxBytes: '5q' }, cacheControl: /x/ }, 'keep.maxBytes'],
    [{ keep: { directory: '/tmp/x' } }, 'set "cacheControl"'],
    [{ keep: { directory: join(__dirname, 'below') }, cacheControl: 'immutable' }, 'overlaps'],
    [{ keep: { directory: join(__dirname, '../until.ts') }, cacheControl: 'immutable' }, 'which is a file'],
  ])('staticFiles refuses %j', (options, message) => {
    expect(() => staticFiles(__dirname, options as StaticFilesOptions)).toThrow(message);
  });
});
