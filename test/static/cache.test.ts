/** @tags once slow */
import type { LoadedFile } from '../../src/static/cache.ts';
import {
  budgetFor,
  type CacheEntry,
  defaultMaxBytes,
  FileCache,
  MemoryBudget,
} from '../../src/static/cache.ts';
import { parseRequestPath } from '../../src/static/path.ts';
import { memoryInUse } from '../heap.ts';
import { loadedFile } from './loaded-file.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

interface Limits {
  maxBytes?: number;
}

function createCache({ maxBytes = MIB }: Limits = {}) {
  const budget = new MemoryBudget(maxBytes);
  const cache = new FileCache(budget);
  /** Adds a file and requests it `uses` times. */
  const add = (urlPath: string, file: LoadedFile, uses = 1): CacheEntry => {
    const entry = cache.getOrCreate(urlPath);
    for (let i = 0; i < uses; i++) cache.use(entry);
    cache.set(entry, file);
    return entry;
  };
  return { budget, cache, add };
}

const bodyOf = (entry: CacheEntry): Buffer | undefined => entry.file?.uncompressed.body;
const names = (count: number, prefix = ''): string[] =>
  Array.from({ length: count }, (_, i) => `/${prefix}${i}`);

describe('the memory budget', () => {
  it('a scan of many files evicts no body that is requested more than once', () => {
    const { add } = createCache();
    const hot = names(20, 'hot').map((name) => add(name, loadedFile(20 * KIB), 3));
    for (const name of names(400, 'scan')) add(name, loadedFile(20 * KIB));
    expect(hot.filter((entry) => bodyOf(entry) !== undefined).length).toBe(20);
  });

  it('a body replaces others in the memory budget when its file is requested more than twice as often', () => {
    const { add, cache } = createCache();
    const old = names(60, 'old').map((name) => add(name, loadedFile(20 * KIB), 2));
    const entry = add('/new', loadedFile(20 * KIB));
    expect(bodyOf(entry)).toBeUndefined();
    for (let uses = 1; uses <= 4; uses++) {
      cache.wantBodies(entry);
      expect(entry.wantsBodies).toBe(false);
      cache.use(entry);
    }
    cache.wantBodies(entry);
    expect(entry.wantsBodies).toBe(true);
    cache.set(entry, loadedFile(20 * KIB));
    expect(bodyOf(entry)).toHaveLength(20 * KIB);
    expect(entry.wantsBodies).toBe(false);
    expect(old.every(({ file }) => file !== undefined)).toBe(true);
  });

  it('the memory budget evicts bodies before metadata, which keeps the ETag', () => {
    const { add } = createCache();
    const first = names(40, 'a').map((name) => add(name, loadedFile(20 * KIB)));
    for (const name of names(400, 'b')) add(name, loadedFile(0));
    expect(first.every(({ file }) => file?.uncompressed.tag === '"x"')).toBe(true);
    expect(first.filter((entry) => bodyOf(entry) !== undefined).length).toBeLessThan(40);
  });

  it('metadata beyond its share belongs to the files that were not requested for the longest time', () => {
    const { add, cache } = createCache();
    const hot = names(10, 'hot').map((name) => add(name, loadedFile(0)));
    const all = names(40_000);
    for (const [index, name] of all.entries()) {
      add(name, loadedFile(0));
      if (index % 1000 === 0) for (const entry of hot) cache.use(entry);
    }
    expect(hot.every(({ file }) => file !== undefined)).toBe(true);
    const kept = all.filter((name) => cache.get(name) !== undefined);
    expect(kept.length).toBeGreaterThan(10_000);
    expect(kept.length).toBeLessThan(16 * KIB);
    expect(kept).toEqual(all.slice(-kept.length));
  });

  it('a file that is evicted while requests wait for its check keeps its entry until the check ends', () => {
    const { add, cache } = createCache();
    const entry = add('/checked', loadedFile(0));
    entry.state = 'checking';
    for (const name of names(20_000)) add(name, loadedFile(0));
    expect(entry.file).toBeUndefined();
    expect(cache.get('/checked')).toBe(entry);
    entry.state = 'idle';
    cache.release(entry);
    expect(cache.get('/checked')).toBeUndefined();
  });

  it('a large body is cached after eight requests, once its memory is reserved', () => {
    const { add, cache } = createCache();
    const entry = add('/large', loadedFile(500 * KIB, { isInMemory: false }));
    for (let uses = 1; uses < 8; uses++) {
      cache.wantBodies(entry);
      expect([entry.wantsBodies, entry.bodyBytes]).toEqual([false, 0]);
      cache.use(entry);
    }
    cache.wantBodies(entry);
    expect(entry.wantsBodies).toBe(true);
    expect(entry.bodyBytes).toBeGreaterThanOrEqual(500 * KIB);
  });

  it('the reserved memory is returned when a large body could not be read or the file was replaced', () => {
    const { add, cache } = createCache();
    const entry = add('/large', loadedFile(500 * KIB, { isInMemory: false }), 8);
    cache.wantBodies(entry);
    cache.set(entry, loadedFile(500 * KIB, { isInMemory: false }));
    expect([entry.wantsBodies, entry.bodyBytes]).toEqual([false, 0]);
    cache.wantBodies(entry);
    cache.invalidate(entry);
    expect([entry.wantsBodies, entry.bodyBytes]).toEqual([false, 0]);
  });

  it('caches that share a budget evict the files of each other', () => {
    const { budget, add } = createCache();
    const other = new FileCache(budget);
    const first = names(40).map((name) => add(name, loadedFile(20 * KIB), 0));
    for (const name of names(30)) {
      const entry = other.getOrCreate(name);
      other.use(entry);
      other.set(entry, loadedFile(20 * KIB));
    }
    expect(first.filter((entry) => bodyOf(entry) !== undefined).length).toBeLessThan(20);
  });

  it('middlewares without limits of their own share a budget', () => {
    const none = { maxBytes: undefined };
    expect(budgetFor(none)).toBe(budgetFor(none));
    expect(budgetFor({ maxBytes: 1 })).not.toBe(budgetFor({ maxBytes: 1 }));
  });

  it.each([
    ['a large machine', undefined, 64 * 1024 * MIB, 256 * MIB],
    ['a container of 512 MiB', 512 * MIB, 64 * 1024 * MIB, 64 * MIB],
    ['a container without a limit', 0, 1024 * MIB, 128 * MIB],
    ['a limit that is larger than the memory', 2 ** 63, 1024 * MIB, 128 * MIB],
  ])(
    'the default of maxBytes on %s is an eighth of the memory, at most 256 MiB',
    (_name, limit, total, expected) => {
      expect(defaultMaxBytes(limit, total)).toBe(expected);
    },
  );

  it.each([1, 2, 3, 4, 5])(
    'the memory stays within its limits in any order of operations, seed %i',
    (seed) => {
      const maxBytes = 40 * MIB;
      const { cache } = createCache({ maxBytes });
      let state = seed;
      const random = (below: number): number => {
        state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
        return Math.floor((state / 2 ** 31) * below);
      };
      const all = names(2000);
      for (let step = 0; step < 20_000; step++) {
        const entry = cache.getOrCreate(all[Math.min(random(2000), random(2000))] as string);
        cache.use(entry);
        const file = entry.file;
        const dice = random(10);
        if (file === undefined || dice === 0) cache.set(entry, loadedFile(random(200 * KIB)));
        else if (dice === 1) cache.evict(entry);
        else if (file.uncompressed.body === undefined) cache.wantBodies(entry);
        if (step % 500 !== 0) continue;
        const entries = all.flatMap((name) => cache.get(name) ?? []);
        const bytes = entries.reduce((sum, one) => sum + (bodyOf(one)?.length ?? 0), 0);
        const counted = entries.reduce((sum, one) => sum + one.bodyBytes + one.metadataBytes, 0);
        expect(bytes).toBeLessThanOrEqual(counted);
        expect(counted).toBeLessThanOrEqual(maxBytes);
      }
    },
  );
});

it('the path of a cached file does not keep the query of its first request in memory', () => {
  const paths: ReturnType<typeof parseRequestPath>[] = [];
  const target = (index: number): string =>
    Buffer.from(`/assets/a-file-with-a-name-${index}.js?${'x'.repeat(12_000)}`).toString('latin1');
  const before = memoryInUse().heapUsed;
  for (let i = 0; i < 1000; i++) paths.push(parseRequestPath(target(i), { rejectWindowsNames: false }));
  expect(memoryInUse().heapUsed - before).toBeLessThan(2_000_000);
  expect(paths[999]).toEqual({ kind: 'path', path: '/assets/a-file-with-a-name-999.js' });
});
