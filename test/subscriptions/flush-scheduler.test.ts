import { createFlushScheduler } from '../../src/subscriptions/flush-scheduler.ts';

describe('the flush scheduler', () => {
  it('the flush scheduler yields during a huge fan-out and flushes each queue once, in order', async () => {
    const scheduler = createFlushScheduler();
    const flushed: number[] = [];
    for (let i = 0; i < 2000; i++) scheduler.flushBatched({ flush: () => void flushed.push(i) });
    const counts = [0];
    while (flushed.length < 2000) {
      await new Promise((resolve) => setImmediate(resolve));
      counts.push(flushed.length);
    }
    expect(flushed).toEqual(Array.from({ length: 2000 }, (_, i) => i));
    const steps = counts.slice(1).map((count, i) => count - (counts[i] as number));
    expect(Math.max(...steps)).toBeLessThanOrEqual(512);
  });

  it('the flush scheduler reports backpressure when many messages are queued', async () => {
    const scheduler = createFlushScheduler();
    let flushed = false;
    scheduler.flushBatched({
      flush: () => {
        flushed = true;
      },
    });
    for (let i = 0; i < 32_768; i++) scheduler.countMessage();
    expect(scheduler.isBackpressured()).toBe(false);
    scheduler.countMessage();
    expect(scheduler.isBackpressured()).toBe(true);
    await scheduler.yield();
    expect([flushed, scheduler.isBackpressured()]).toEqual([true, false]);
  });
});
