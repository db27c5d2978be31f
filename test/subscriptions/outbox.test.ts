import { createOutbox } from '../../src/subscriptions/outbox.ts';

describe('the outbox', () => {
  it('lets the event loop turn in the middle of a huge fan-out, and flushes each once, in order', async () => {
    const outbox = createOutbox();
    const flushed: number[] = [];
    for (let i = 0; i < 2000; i++) outbox.add({ flush: () => void flushed.push(i) });
    const counts = [0];
    while (flushed.length < 2000) {
      await new Promise((resolve) => setImmediate(resolve));
      counts.push(flushed.length);
    }
    expect(flushed).toEqual(Array.from({ length: 2000 }, (_, i) => i));
    const steps = counts.slice(1).map((count, i) => count - (counts[i] as number));
    expect(Math.max(...steps)).toBeLessThanOrEqual(512);
  });

  it('has producers wait for a turn when much is queued', async () => {
    const outbox = createOutbox();
    let flushed = false;
    outbox.add({
      flush: () => {
        flushed = true;
      },
    });
    for (let i = 0; i < 32_768; i++) outbox.count();
    expect(outbox.congested()).toBe(false);
    outbox.count();
    expect(outbox.congested()).toBe(true);
    await outbox.turn();
    expect([flushed, outbox.congested()]).toEqual([true, false]);
  });
});
