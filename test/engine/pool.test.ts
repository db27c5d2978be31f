import { createPool, OPENING, type Page } from '../../src/engine/pool.ts';
import { viewOf } from '../../src/engine/writer.ts';

const pageOf = (bytes: number): Page => {
  const buf = Buffer.alloc(bytes);
  return { buf, view: viewOf(buf) };
};

describe('the pool of working buffers', () => {
  it('keeps a bounded number of bytes, and nothing large', () => {
    const pool = createPool();
    for (let i = 0; i < 1000; i++) pool.give(pageOf(8 * 1024));
    expect(pool.idleBytes()).toBeLessThanOrEqual(64 * 8 * 1024);
    for (let i = 0; i < 64; i++) pool.take(0);
    expect(pool.idleBytes()).toBe(0);
    pool.give(pageOf(2 * 1024 * 1024));
    expect(pool.idleBytes()).toBe(0);
    for (let i = 0; i < 50; i++) pool.give(pageOf(1024 * 1024));
    expect(pool.idleBytes()).toBeLessThanOrEqual(4 * 1024 * 1024);
  });

  it('gives no buffer to two', () => {
    const pool = createPool();
    const [first, second] = [pool.take(0), pool.take(0)];
    expect(first).not.toBe(second);
    pool.give(first);
    expect(pool.take(0)).toBe(first);
    expect(pool.take(0)).not.toBe(first);
  });

  it('opens every answer', () => {
    expect(createPool().take(0).buf.subarray(0, OPENING.length).toString()).toBe('{"data":');
  });
});
