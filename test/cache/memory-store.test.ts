/** @tags once slow */
import { MemoryStore } from '../../src/cache/memory-store.ts';
import type { CacheEntry } from '../../types/response-cache.ts';
import { memoryInUse } from '../heap.ts';

const MIB = 1024 * 1024;

const entryOf = (body: string | Buffer, tags: readonly string[] = []): CacheEntry => ({
  body,
  policy: { maxAge: 60, sharedMaxAge: 60, scope: 'PUBLIC', vary: [], tags },
  storedAt: Date.now(),
  lifetime: 60_000,
  expires: Date.now() + 60_000,
});

const collect = (): number => {
  const { heapUsed, arrayBuffers, external } = memoryInUse();
  return heapUsed + Math.max(arrayBuffers, external);
};

async function createStore(maxBytes: number): Promise<MemoryStore> {
  const store = new MemoryStore(maxBytes);
  await store.get('');
  return store;
}

/** Entries of an attack: the count, and the parts of one entry. */
const ATTACKS: readonly [string, number, (index: number) => [string, CacheEntry]][] = [
  ['100 000 small results', 100_000, (index) => [`key ${index}`, entryOf(`{"data":${index}}`)]],
  [
    '100 000 small results in slices of pooled buffers',
    100_000,
    (index) => [`key ${index}`, entryOf(Buffer.from(`{"data":"ü${index}"}`))],
  ],
  ['long keys', 20_000, (index) => [`${index} `.padEnd(700, 'x'), entryOf(`{"data":${index}}`)]],
  ['large results', 500, (index) => [`key ${index}`, entryOf(Buffer.alloc(MIB, `${index}`))]],
  [
    'half a million tags',
    5000,
    (index) => [
      `key ${index}`,
      entryOf(
        `{"data":${index}}`,
        Array.from({ length: 100 }, (_, tag) => `tag-${index}-${tag}`),
      ),
    ],
  ],
];

describe('the memory store', () => {
  it.each(ATTACKS)('%s take no more memory than maxBytes', async (_name, count, create) => {
    const maxBytes = 16 * MIB;
    const store = await createStore(maxBytes);
    const { version } = await store.get('');
    const before = collect();
    for (let index = 0; index < count; index++) {
      const [key, entry] = create(index);
      store.set(key, entry, version as number);
    }
    const used = collect() - before;
    expect(store.size).toBeGreaterThan(10);
    expect(store.bytes).toBeLessThanOrEqual(maxBytes);
    // The estimate must not be far below the memory.
    expect(used).toBeLessThan(maxBytes * 1.25);
    store.invalidate(['*']);
    expect(collect() - before).toBeLessThan(maxBytes / 4);
  });

  it('a million invalidated tags take a bounded amount of memory', async () => {
    const store = await createStore(MIB);
    const before = collect();
    for (let index = 0; index < 1000; index++) {
      store.invalidate(Array.from({ length: 1000 }, (_, tag) => `tag-${index}-${tag}`));
    }
    expect(collect() - before).toBeLessThan(8 * MIB);
  });

  it('the memory store refuses an entry of more than an eighth of maxBytes', async () => {
    const store = await createStore(8 * MIB);
    const { version } = await store.get('');
    expect(store.set('k', entryOf(Buffer.alloc(MIB)), version as number)).toBe(false);
    expect(store.set('k', entryOf(Buffer.alloc(MIB - 2000)), version as number)).toBe(true);
  });

  it('the memory store removes the least recently used entries first', async () => {
    const store = await createStore(40_000);
    const { version } = await store.get('');
    store.set('used', entryOf('1', ['a']), version as number);
    for (let index = 0; index < 100; index++) {
      store.set(`other ${index}`, entryOf('2', ['a']), version as number);
      expect((await store.get('used')).entry?.body).toBe('1');
    }
    expect((await store.get('other 0')).entry).toBeUndefined();
  });

  it('the memory store removes the tags of an entry that is replaced or removed', async () => {
    const store = await createStore(MIB);
    const { version } = await store.get('');
    store.set('k', entryOf('1', ['a']), version as number);
    store.set('k', entryOf('2', ['b']), version as number);
    store.invalidate(['a']);
    expect((await store.get('k')).entry?.body).toBe('2');
    store.invalidate(['b']);
    expect((await store.get('k')).entry).toBeUndefined();
  });

  it('the memory store sends no expired entry after the clock was set back', async () => {
    const store = await createStore(MIB);
    const { version } = await store.get('');
    store.set('k', entryOf('1'), version as number);
    expect(await store.get('k')).toMatchObject({ entry: { body: '1' } });
    const clock = jest.spyOn(Date, 'now');
    try {
      const time = Date.now();
      clock.mockImplementation(() => time - 900);
      expect(await store.get('k')).toMatchObject({ entry: { body: '1' } });
      clock.mockImplementation(() => time - 3_600_000);
      expect(await store.get('k')).toMatchObject({ entry: undefined });
      clock.mockImplementation(() => time + 61_000);
      expect(await store.get('k')).toMatchObject({ entry: undefined });
    } finally {
      clock.mockRestore();
    }
  });
});
