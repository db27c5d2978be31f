/** @tags once */
import { BackgroundQueue } from '../../src/static/compress.ts';
import { until } from '../until.ts';

/** A task that ends when the test calls `end`. */
function openTask(): { readonly task: () => Promise<number>; end(): void; started: number } {
  let end: () => void = () => undefined;
  const made = {
    started: 0,
    end: () => end(),
    task: () => {
      made.started++;
      return new Promise<number>((resolve) => {
        end = () => resolve(0);
      });
    },
  };
  return made;
}

const queueOf = (limits: { share?: number } = {}): BackgroundQueue =>
  new BackgroundQueue({ share: 1, maxTasks: 100, ...limits });

it('BackgroundQueue runs one task at a time', async () => {
  const queue = queueOf();
  const [first, second] = [openTask(), openTask()];
  queue.add('first', first.task);
  queue.add('second', second.task);
  expect([first.started, second.started]).toEqual([1, 0]);
  first.end();
  await until(() => second.started === 1);
  second.end();
});

it('BackgroundQueue pauses after a task even if the share of CPU time is tiny', async () => {
  const queue = queueOf({ share: 1e-12 });
  let calls = 0;
  queue.add('first', async () => 1000);
  queue.add('second', async () => ++calls);
  await new Promise((done) => setTimeout(done, 20));
  expect(calls).toBe(0);
});
