/** @tags once */
import { createBufferPool, type PooledBuffer, RESPONSE_START, withViews } from '../../src/engine/json.ts';

const KIB = 1024;
const bufferOf = (bytes: number): PooledBuffer => withViews(Buffer.alloc(bytes));

describe('the buffer pool', () => {
  it('the buffer pool keeps a bounded number of bytes, and no large buffers', () => {
    const pool = createBufferPool();
    for (let i = 0; i < 1000; i++) pool.give(bufferOf(8 * KIB));
    expect(pool.idleBytes()).toBe(64 * 8 * KIB);
    for (let i = 0; i < 64; i++) pool.take(0);
    expect(pool.idleBytes()).toBe(0);
    pool.give(bufferOf(2 * KIB * KIB));
    expect(pool.idleBytes()).toBe(0);
    for (let i = 0; i < 50; i++) pool.give(bufferOf(KIB * KIB));
    expect(pool.idleBytes()).toBe(4 * KIB * KIB);
  });

  it('the buffer pool never lends a buffer twice', () => {
    const pool = createBufferPool();
    const [first, second] = [pool.take(0), pool.take(0)];
    expect(first).not.toBe(second);
    pool.give(first);
    expect(pool.take(0)).toBe(first);
    expect(pool.take(0)).not.toBe(first);
  });

  it('the buffer pool returns buffers that begin with the first bytes of a response', () => {
    for (const expected of [0, 100_000]) {
      expect(createBufferPool().take(expected).buf.subarray(0, RESPONSE_START.length).toString()).toBe(
        '{"data":',
      );
    }
  });

  it('the buffer pool returns a buffer that is large enough but not much larger', () => {
    const pool = createBufferPool();
    const buffers = [8, 100, 500, 1000].map((kib) => bufferOf(kib * KIB));
    for (const buffer of buffers) pool.give(buffer);
    expect(pool.take(90 * KIB)).toBe(buffers[1]);
    expect(pool.take(90 * KIB).buf.length).toBeLessThan(120 * KIB);
    expect(pool.take(300 * KIB)).toBe(buffers[2]);
    expect(pool.take(300 * KIB).buf.length).toBeLessThan(400 * KIB);
    expect(pool.take(0)).toBe(buffers[0]);
  });

  it('the buffer pool drops the buffers that have been idle longest', () => {
    const pool = createBufferPool();
    const [first, ...others] = Array.from({ length: 9 }, () => bufferOf(500 * KIB)) as [PooledBuffer];
    for (const buffer of [first, ...others]) pool.give(buffer);
    const taken = others.map(() => pool.take(500 * KIB));
    expect(others.every((buffer) => taken.includes(buffer))).toBe(true);
    expect(pool.idleBytes()).toBe(0);
  });

  it('the buffer pool enlarges a buffer with its text', () => {
    const pool = createBufferPool();
    const small = pool.take(0);
    const used = small.buf.write('text', RESPONSE_START.length) + RESPONSE_START.length;
    const larger = pool.enlarge(small, used, 100 * KIB);
    expect(larger.buf.toString('latin1', 0, used)).toBe('{"data":text');
    expect(larger.buf.length).toBeGreaterThanOrEqual(100 * KIB);
    expect(pool.take(0)).toBe(small);
  });
});
