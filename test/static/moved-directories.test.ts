/** @tags node */
import { renameSync, rmSync, symlinkSync } from 'node:fs';
import { brotliCompressSync } from 'node:zlib';
import { staticFiles } from '../../middleware/static.ts';
import type { LoadResult } from '../../src/static/cache.ts';
import { budgetFor, type CacheEntry, FileCache } from '../../src/static/cache.ts';
import { type CheckContext, CircuitBreaker, isUnchangedSync, revalidate } from '../../src/static/check.ts';
import { loadFile, stillResolves } from '../../src/static/load.ts';
import { resolveStaticOptions } from '../../src/static/options.ts';
import { RootDirectory } from '../../src/static/root.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

describe.each([
  ['in memory', 1000],
  ['streamed', 400_000],
])('a moved directory that is served through a symbolic link, with files %s', (_how, size) => {
  it.each([
    ['below the root', 'www', '/link/a.bin'],
    ['that is the root', 'www/link', '/a.bin'],
  ])(
    'staticFiles serves files through a link %s after its target was renamed',
    async (_where, root, path) => {
      const folder = makeFolder({ 'www/one/a.bin': Buffer.alloc(size, 'x') });
      symlinkSync('one', `${folder}/www/link`);
      const port = await listen(bare(staticFiles(`${folder}/${root}`)));
      expect((await get(port, path)).status).toBe(200);
      // The link leads to the same files again: a stat of the files shows no difference.
      renameSync(`${folder}/www/one`, `${folder}/www/two`);
      rmSync(`${folder}/www/link`);
      symlinkSync('two', `${folder}/www/link`);
      for (let i = 0; i < 3; i++) expect((await get(port, path)).status).toBe(200);
    },
  );
});

it('a file is found when the link of the root is switched between two steps that resolve it', async () => {
  const folder = makeFolder({ 'one/a.txt': 'one', 'two/a.txt': 'two' });
  let next = 'one';
  const switchLink = (): void => {
    symlinkSync(next, `${folder}/link`);
    renameSync(`${folder}/link`, `${folder}/current`);
    next = next === 'one' ? 'two' : 'one';
  };
  class SwitchedRoot extends RootDirectory {
    override async resolve(): Promise<string> {
      switchLink();
      const realPath = await super.resolve();
      switchLink();
      return realPath;
    }
  }
  switchLink();
  const root = new SwitchedRoot(`${folder}/current`);
  const options = { isPopular: false, compressor: undefined };
  expect(await loadFile(root, '/a.txt', resolveStaticOptions({}), options)).toMatchObject({ kind: 'file' });
});

describe('the path of a cached file', () => {
  const br = brotliCompressSync('a');
  const site = { 'www/dir/a.js': 'a', 'www/dir/a.js.br': br, 'www/other/a.js.br': br };

  /** Loads one path below `www` until the cached file is no longer racily clean. */
  async function cacheFile(folder: string) {
    const root = new RootDirectory(`${folder}/www`);
    const settings = resolveStaticOptions({ precompressed: ['br'] });
    const context: CheckContext = {
      cache: new FileCache(budgetFor({ maxBytes: 1 << 20 })),
      load: (urlPath, options) => loadFile(root, urlPath, settings, options),
      stillResolves: (file) => stillResolves(root, file),
      files: root,
      maxRunning: 16,
      breaker: new CircuitBreaker(() => 0),
      revalidateAfter: 0,
      onCached: () => {},
    };
    const entry = context.cache.getOrCreate('/dir/a.js');
    const check = (): Promise<LoadResult> => revalidate(context, entry);
    do await check();
    while (entry.file?.isRacilyClean !== false);
    return { context, entry, check };
  }

  /** Acts as if the time for which the path counts as verified had passed. */
  const expire = (entry: CacheEntry): void => {
    entry.pathVerifiedUntil = 0;
  };

  it('the path of an unchanged file is resolved again in the thread pool when its verification has expired', async () => {
    const { context, entry, check } = await cacheFile(makeFolder(site));
    const { file } = entry;
    expect(entry.pathVerifiedUntil).toBeGreaterThan(performance.now());
    expire(entry);
    expect(isUnchangedSync(context, entry, performance.now())).toBe(false);
    expect(await check()).toBe(file);
    expect(entry.pathVerifiedUntil).toBeGreaterThan(performance.now());
  });

  it.each([
    ['its directory is moved out of the root', 'www/dir', 'out', 'not-found'],
    ['its directory is moved inside the root', 'www/dir', 'www/moved', 'file'],
    ['the root is moved', 'www', 'moved', 'file'],
  ])('a cached file is loaded again when %s and a link takes its place', async (_what, from, to, kind) => {
    const folder = makeFolder(site);
    const { entry, check } = await cacheFile(folder);
    const { file } = entry;
    renameSync(`${folder}/${from}`, `${folder}/${to}`);
    symlinkSync(`${folder}/${to}`, `${folder}/${from}`);
    expire(entry);
    const result = await check();
    expect(result?.kind).toBe(kind);
    expect(result).not.toBe(file);
  });

  it('a precompressed copy is dropped when its path leads outside the root', async () => {
    const folder = makeFolder(site);
    rmSync(`${folder}/www/dir/a.js.br`);
    symlinkSync('../other/a.js.br', `${folder}/www/dir/a.js.br`);
    const { entry, check } = await cacheFile(folder);
    expect(entry.file?.precompressed).toHaveLength(1);
    renameSync(`${folder}/www/other`, `${folder}/out`);
    symlinkSync(`${folder}/out`, `${folder}/www/other`);
    expire(entry);
    expect(await check()).toMatchObject({ kind: 'file', precompressed: [] });
  });
});
