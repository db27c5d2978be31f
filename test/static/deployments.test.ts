/** @tags once slow */
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import promises from 'node:fs/promises';
import { format } from 'node:util';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import createDebug from 'debug';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import { loadFile } from '../../src/static/load.ts';
import { resolveStaticOptions } from '../../src/static/options.ts';
import { RootDirectory } from '../../src/static/root.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

const source = 'let a = 1;\n'.repeat(200);
const longSource = Buffer.alloc(700_000, source);

describe('compressed copies after a deployment', () => {
  const codings = ['br', 'gzip'];

  async function codingsOf(root: string, path: string): Promise<(string | undefined)[]> {
    const port = await listen(bare(staticFiles(root, { precompressed: true })));
    const used: (string | undefined)[] = [];
    for (const coding of codings) {
      const { headers } = await get(port, path, { 'Accept-Encoding': coding });
      used.push(headers['content-encoding']);
    }
    return used;
  }

  it.each([
    ['a cached file', source],
    ['a streamed file', longSource],
  ])('staticFiles uses copies of %s that are older than their source', async (_name, content) => {
    const files = { 'a.js': content, 'a.js.br': brotliCompressSync(content), 'a.js.gz': gzipSync(content) };
    const root = makeFolder(files);
    utimesSync(`${root}/a.js.br`, 1e9, 1e9);
    utimesSync(`${root}/a.js.gz`, 1e9 + 1, 1e9 + 1);
    expect(await codingsOf(root, '/a.js')).toEqual(codings);
  });

  it.each([
    ['a cached file', source],
    ['a streamed file', longSource],
  ])('staticFiles ignores copies of %s that are newer and have different content', async (_name, content) => {
    const other = Buffer.from(content);
    other[other.length - 1] = 33;
    const root = makeFolder({
      'a.js': content,
      'a.js.br': brotliCompressSync(other),
      'a.js.gz': gzipSync(other),
      'b.js': content,
      'b.js.br': brotliCompressSync(content.slice(0, -1)),
      'b.js.gz': 'not compressed at all',
      'c.js': content,
      'c.js.br': brotliCompressSync(Buffer.alloc(5_000_000)),
      'c.js.gz': Buffer.concat([gzipSync(content), gzipSync('more')]),
    });
    for (const path of ['/a.js', '/b.js', '/c.js']) {
      expect(await codingsOf(root, path)).toEqual([undefined, undefined]);
    }
  });

  /** Writes each file under a temporary name, with an mtime in whole seconds, and renames it: as rsync does. */
  function synchronize(from: string, to: string): void {
    for (const name of readdirSync(from).reverse()) {
      const temporary = `${to}/.${name}.Xk3p9Q`;
      const { mtimeMs } = statSync(`${from}/${name}`);
      copyFileSync(`${from}/${name}`, temporary);
      utimesSync(temporary, Math.floor(mtimeMs / 1000), Math.floor(mtimeMs / 1000));
      renameSync(temporary, `${to}/${name}`);
    }
  }

  it.each<[string, (from: string, to: string) => void]>([
    ['cp -r', (from, to) => execFileSync('cp', ['-r', `${from}/.`, to])],
    ['cp -a', (from, to) => execFileSync('cp', ['-a', `${from}/.`, to])],
    ['tar', (from, to) => execFileSync('sh', ['-c', 'tar -C "$0" -c . | tar -C "$1" -x', from, to])],
    ['tar -m', (from, to) => execFileSync('sh', ['-c', 'tar -C "$0" -c . | tar -C "$1" -xm', from, to])],
    ['the steps of rsync', synchronize],
  ])(
    'staticFiles uses all copies after a deployment with %s, and after a second one',
    async (_tool, deploy) => {
      const names = Array.from({ length: 30 }, (_, index) => `${index}.js`);
      const build = (version: string): string => {
        const contents = names.map((name) => [name, `let ${version} = '${name}';`.repeat(50)] as const);
        const files = contents.flatMap(([name, text]) => [
          [`${name}.br`, brotliCompressSync(text)],
          [name, text],
          [`${name}.gz`, gzipSync(text)],
        ]);
        return makeFolder(Object.fromEntries(files));
      };
      const root = makeFolder({});
      const port = await listen(bare(staticFiles(root, { precompressed: true })));
      for (const version of ['one', 'two']) {
        deploy(build(version), root);
        for (const name of names) {
          for (const coding of codings) {
            const { headers, body } = await get(port, `/${name}`, { 'Accept-Encoding': coding });
            const text = coding === 'br' ? brotliDecompressSync(body) : gunzipSync(body);
            expect([name, headers['content-encoding']]).toEqual([name, coding]);
            expect(String(text)).toContain(`let ${version} = '${name}';`);
          }
        }
      }
    },
  );

  it('staticFiles uses the copies of an empty file', async () => {
    const root = makeFolder({ 'a.js': '', 'a.js.br': brotliCompressSync(''), 'a.js.gz': gzipSync('') });
    expect(await codingsOf(root, '/a.js')).toEqual(codings);
  });

  it('staticFiles stops using a copy when its source changes, until the copy is written again', async () => {
    const root = makeFolder({ 'a.js': source, 'a.js.gz': gzipSync(source) });
    const port = await listen(bare(staticFiles(root, { precompressed: true })));
    const codingOf = async () =>
      (await get(port, '/a.js', { 'Accept-Encoding': 'gzip' })).headers['content-encoding'];
    expect(await codingOf()).toBe('gzip');
    writeFileSync(`${root}/a.js`, 'new');
    utimesSync(`${root}/a.js`, 1e9, 1e9);
    expect(await codingOf()).toBeUndefined();
    writeFileSync(`${root}/a.js.gz`, gzipSync('new'));
    expect(await codingOf()).toBe('gzip');
  });

  describe.each<StaticFilesOptions>([
    { etag: 'stat' },
    { etag: false },
    { etag: 'stat', cache: false },
    { etag: false, cache: { maxBytes: 1000 } },
    { etag: false, cache: { maxBytes: 100_000 } },
  ])('with %j, which hashes no file for its ETag', (options) => {
    const contents = [source, longSource.subarray(0, 300_000), longSource] as const;

    it('staticFiles sends no copy of the build before, whatever its time', async () => {
      for (const content of contents) {
        const old = Buffer.from(content);
        old[7] = 33;
        const root = makeFolder({
          'a.js': content,
          'a.js.br': brotliCompressSync(old),
          'a.js.gz': gzipSync(old),
        });
        // tar, `rsync -t` and `cp -p` keep the times of the new build, which was made before the old copies were deployed.
        utimesSync(`${root}/a.js`, 1e9, 1e9);
        const port = await listen(bare(staticFiles(root, { precompressed: true, ...options })));
        for (let i = 0; i < 10; i++) {
          const { headers, text } = await get(port, '/a.js', { 'Accept-Encoding': 'br, gzip' });
          expect([headers['content-encoding'], text === String(content)]).toEqual([undefined, true]);
        }
      }
    });

    it('staticFiles sends the right copies, also older ones and those of a source in memory', async () => {
      for (const content of contents) {
        const files = {
          'a.js': content,
          'a.js.br': brotliCompressSync(content),
          'a.js.gz': gzipSync(content),
        };
        const root = makeFolder(files);
        utimesSync(`${root}/a.js.br`, 1e9, 1e9);
        for (const dir of [root, memoryFiles(files)]) {
          const port = await listen(bare(staticFiles(dir, { precompressed: true, ...options })));
          const { headers, body } = await get(port, '/a.js', { 'Accept-Encoding': 'br' });
          expect([headers['content-encoding'], body.equals(files['a.js.br'])]).toEqual(['br', true]);
        }
      }
    });
  });

  it('staticFiles logs why a copy is ignored', async () => {
    const root = makeFolder({ 'a.js': source, 'a.js.gz': 'corrupt' });
    const logged: string[] = [];
    const log = jest
      .spyOn(createDebug, 'log')
      .mockImplementation((...parts) => void logged.push(format(...parts)));
    createDebug.enable('espalier:static');
    try {
      expect(await codingsOf(root, '/a.js')).toEqual([undefined, undefined]);
    } finally {
      createDebug.disable();
      log.mockRestore();
    }
    expect(logged.join('\n')).toMatch(/a\.js\.gz is ignored: its content differs from its source/);
  });
});

it('staticFiles never sends 404 while a linked root is switched', async () => {
  const names = Array.from({ length: 60 }, (_, index) => `${index}.txt`);
  const files = (release: string): Record<string, string> =>
    Object.fromEntries(names.map((name) => [`${release}/${name}`, `release ${release}`]));
  const folder = makeFolder({ ...files('one'), ...files('two') });
  symlinkSync('one', `${folder}/current`);
  const port = await listen(bare(staticFiles(`${folder}/current`)));
  const statuses = new Map<number, number>();
  let isRunning = true;
  const flip = async (): Promise<void> => {
    for (let turn = 0; isRunning; turn++) {
      symlinkSync(turn % 2 === 0 ? 'two' : 'one', `${folder}/next`);
      renameSync(`${folder}/next`, `${folder}/current`);
      await new Promise((done) => setTimeout(done, turn % 3));
    }
  };
  const switching = flip();
  const read = async (): Promise<void> => {
    for (let round = 0; round < 4; round++) {
      for (const name of names) {
        const { status } = await get(port, `/${name}`);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    }
  };
  await Promise.all(Array.from({ length: 6 }, read));
  isRunning = false;
  await switching;
  expect([...statuses.keys()]).toEqual([200]);
});

it('staticFiles sends a file when the root is switched between resolving the root and the file', async () => {
  const folder = makeFolder({ 'one/dir/a.txt': 'one', 'two/dir/a.txt': 'two' });
  for (const release of ['one', 'two']) symlinkSync('dir', `${folder}/${release}/link`);
  symlinkSync('one', `${folder}/current`);
  const { realpath } = promises;
  const spy = jest.spyOn(promises, 'realpath').mockImplementation(async (path) => {
    if (String(path).endsWith('a.txt')) {
      symlinkSync('two', `${folder}/next`);
      renameSync(`${folder}/next`, `${folder}/current`);
      await new Promise((done) => setTimeout(done, 5));
    }
    return realpath(path);
  });
  try {
    const port = await listen(bare(staticFiles(`${folder}/current`)));
    const response = await get(port, '/link/a.txt');
    expect(response.status).toBe(200);
    expect(spy).toHaveBeenCalled();
  } finally {
    spy.mockRestore();
  }
});

it('a file that is replaced while it is loaded is cached with the version that was read', async () => {
  const folder = makeFolder({ 'www/a.txt': 'A', 'B.txt': 'B' });
  const root = `${folder}/www`;
  class ReplacedFile extends RootDirectory {
    override async stat(path: string): ReturnType<RootDirectory['stat']> {
      const found = await super.stat(path);
      renameSync(`${root}/a.txt`, `${folder}/A.txt`);
      copyFileSync(`${folder}/B.txt`, `${root}/a.txt`);
      return found;
    }
  }
  const loaded = await loadFile(new ReplacedFile(root), '/a.txt', resolveStaticOptions({}), {
    isPopular: false,
  });
  const read = statSync(`${root}/a.txt`, { bigint: true });
  expect(loaded).toMatchObject({ kind: 'file', uncompressed: { body: Buffer.from('B') } });
  expect(Object(loaded).dependencies).toMatchObject([
    { path: `${root}/a.txt`, version: { ino: read.ino, ctimeNs: read.ctimeNs } },
  ]);
});

describe('symbolic links that differ in case only', () => {
  const folder = makeFolder({ 'www/README': 'read me', 'www/Docs/A.txt': 'a', 'outside/b.txt': 'b' });
  const root = `${folder}/www`;
  symlinkSync('README', `${root}/readme`);
  symlinkSync('Docs', `${root}/docs`);
  symlinkSync('A.txt', `${root}/Docs/a.txt`);
  symlinkSync(`${root}/Docs`, `${root}/DOCS`);
  symlinkSync('../outside', `${root}/OUTSIDE`);

  it.each([
    ['/readme', 200],
    ['/README', 200],
    ['/docs/A.txt', 200],
    ['/docs/a.txt', 200],
    ['/DOCS/a.txt', 200],
    ['/Readme', 404],
    ['/OUTSIDE/b.txt', 404],
    ['/Docs/b.txt', 404],
  ])('staticFiles responds to %s with %i', async (path, status) => {
    const port = await listen(bare(staticFiles(root)));
    expect((await get(port, path)).status).toBe(status);
  });
});

it('staticFiles serves the root of another directory that takes the place of the old one', async () => {
  const folder = makeFolder({ 'www/a.txt': 'one' });
  const root = `${folder}/www`;
  const port = await listen(bare(staticFiles(root)));
  for (let round = 0; round < 5; round++) {
    expect((await get(port, '/a.txt')).text).toBe('one');
    renameSync(root, `${folder}/moved-${round}`);
    mkdirSync(root);
    writeFileSync(`${root}/a.txt`, 'two');
    expect((await get(port, '/a.txt')).text).toBe('two');
    rmSync(root, { recursive: true });
    symlinkSync(`${folder}/moved-${round}`, root);
    expect((await get(port, '/a.txt')).text).toBe('one');
    rmSync(root);
    renameSync(`${folder}/moved-${round}`, root);
  }
});
