import { createPool, OPENING } from '../../src/engine/pool.ts';

describe('the pool of working buffers', () => {
  it('keeps a bounded number of bytes, and nothing large', () => {
    const pool = createPool();
    for (let i = 0; i < 1000; i++) pool.give(Buffer.alloc(8 * 1024));
    expect(pool.idleBytes()).toBeLessThanOrEqual(64 * 8 * 1024);
    for (let i = 0; i < 64; i++) pool.take();
    expect(pool.idleBytes()).toBe(0);
    pool.give(Buffer.alloc(2 * 1024 * 1024));
    expect(pool.idleBytes()).toBe(0);
    for (let i = 0; i < 50; i++) pool.give(Buffer.alloc(1024 * 1024));
    expect(pool.idleBytes()).toBeLessThanOrEqual(4 * 1024 * 1024);
  });

  it('gives no buffer to two', () => {
    const pool = createPool();
    const [first, second] = [pool.take(), pool.take()];
    expect(first).not.toBe(second);
    pool.give(first);
    expect(pool.take()).toBe(first);
    expect(pool.take()).not.toBe(first);
  });

  it('opens every answer', () => {
    expect(createPool().take().subarray(0, OPENING.length).toString()).toBe('{"data":');
  });
});
