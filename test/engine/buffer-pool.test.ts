import {
  createBufferPool,
  type PooledBuffer,
  RESPONSE_START,
  withViews,
} from '../../src/engine/json/buffer-pool.ts';

const KIB = 1024;
const pageWith = (bytes: number): PooledBuffer => withViews(Buffer.alloc(bytes));

describe('the pool of working buffers', () => {
  it('keeps a bounded number of bytes, and nothing large', () => {
    const pool = createBufferPool();
    for (let i = 0; i < 1000; i++) pool.give(pageWith(8 * KIB));
    expect(pool.idleBytes()).toBe(64 * 8 * KIB);
    for (let i = 0; i < 64; i++) pool.take(0);
    expect(pool.idleBytes()).toBe(0);
    pool.give(pageWith(2 * KIB * KIB));
    expect(pool.idleBytes()).toBe(0);
    for (let i = 0; i < 50; i++) pool.give(pageWith(KIB * KIB));
    expect(pool.idleBytes()).toBe(4 * KIB * KIB);
  });

  it('gives no buffer to two', () => {
    const pool = createBufferPool();
    const [first, second] = [pool.take(0), pool.take(0)];
    expect(first).not.toBe(second);
    pool.give(first);
    expect(pool.take(0)).toBe(first);
    expect(pool.take(0)).not.toBe(first);
  });

  it('opens every answer', () => {
    for (const expected of [0, 100_000]) {
      expect(createBufferPool().take(expected).buf.subarray(0, RESPONSE_START.length).toString()).toBe(
        '{"data":',
      );
    }
  });

  it('gives one that is long enough, and none that is much too long', () => {
    const pool = createBufferPool();
    const pages = [8, 100, 500, 1000].map((kib) => pageWith(kib * KIB));
    for (const page of pages) pool.give(page);
    expect(pool.take(90 * KIB)).toBe(pages[1]);
    expect(pool.take(90 * KIB).buf.length).toBeLessThan(120 * KIB);
    expect(pool.take(300 * KIB)).toBe(pages[2]);
    expect(pool.take(300 * KIB).buf.length).toBeLessThan(400 * KIB);
    expect(pool.take(0)).toBe(pages[0]);
  });

  it('makes room for what is used by what is not', () => {
    const pool = createBufferPool();
    const [first, ...others] = Array.from({ length: 9 }, () => pageWith(500 * KIB)) as [PooledBuffer];
    for (const page of [first, ...others]) pool.give(page);
    const taken = others.map(() => pool.take(500 * KIB));
    expect(others.every((page) => taken.includes(page))).toBe(true);
    expect(pool.idleBytes()).toBe(0);
  });

  it('exchanges a page for a larger one with the same text', () => {
    const pool = createBufferPool();
    const small = pool.take(0);
    const used = small.buf.write('text', RESPONSE_START.length) + RESPONSE_START.length;
    const larger = pool.enlarge(small, used, 100 * KIB);
    expect(larger.buf.toString('latin1', 0, used)).toBe('{"data":text');
    expect(larger.buf.length).toBeGreaterThanOrEqual(100 * KIB);
    expect(pool.take(0)).toBe(small);
  });
});
