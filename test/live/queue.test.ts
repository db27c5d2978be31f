/** @tags once */
import { once } from 'node:events';
import net from 'node:net';
import { FlushScheduler } from '../../src/live/queue.ts';
import { listen } from '../kit.ts';

describe('the flush scheduler', () => {
  it('the flush scheduler yields during a huge fan-out and flushes each queue once, in order', async () => {
    const scheduler = new FlushScheduler();
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
    const scheduler = new FlushScheduler();
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

  it('the flush scheduler writes events that arrive while the first ones are executed together with them', async () => {
    const server = net.createServer();
    const { port } = await listen(server);
    const source = net.connect(port, '127.0.0.1');
    const [[target]] = (await Promise.all([once(server, 'connection'), once(source, 'connect')])) as [
      [net.Socket],
      unknown,
    ];
    const scheduler = new FlushScheduler();
    const steps: string[] = [];
    const flushed = new Promise<void>((resolve) => {
      const queue = {
        flush() {
          steps.push('flush');
          resolve();
        },
      };
      source.once('data', () => {
        steps.push('first event');
        scheduler.flushBatched(queue);
        source.once('data', () => steps.push('second event'));
        target.write('2');
        const end = performance.now() + 20;
        while (performance.now() < end);
      });
    });
    target.write('1');
    await flushed;
    expect(steps).toEqual(['first event', 'second event', 'flush']);
    source.destroy();
  });
});
