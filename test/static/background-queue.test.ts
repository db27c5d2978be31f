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

const queueOf = (limits: { patience?: number; share?: number } = {}): BackgroundQueue =>
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

it('BackgroundQueue continues with the next task when one hangs, and does not start the hanging one again', async () => {
  const queue = queueOf({ patience: 10 });
  const [hanging, next] = [openTask(), openTask()];
  queue.add('hanging', hanging.task);
  queue.add('next', next.task);
  await until(() => next.started === 1);
  queue.add('hanging', hanging.task);
  next.end();
  const last = openTask();
  queue.add('last', last.task);
  await until(() => last.started === 1);
  expect(hanging.started).toBe(1);
  last.end();
  hanging.end();
  const again = openTask();
  await until(() => {
    queue.add('hanging', again.task);
    return again.started === 1;
  });
});

it('BackgroundQueue starts at most 16 tasks while none of them ends, and continues when one does', async () => {
  const queue = queueOf({ patience: 1 });
  const tasks = Array.from({ length: 20 }, openTask);
  for (const [index, { task }] of tasks.entries()) queue.add(`${index}`, task);
  const started = (): number => tasks.filter((task) => task.started > 0).length;
  await until(() => started() === 16);
  const end = openTask();
  setTimeout(() => void end.task(), 20);
  await until(() => end.started === 1);
  expect(started()).toBe(16);
  for (const task of tasks) task.end();
  await until(() => started() === 20);
});

it('BackgroundQueue pauses after a task even if the share of CPU time is tiny', async () => {
  const queue = queueOf({ share: 1e-12 });
  let calls = 0;
  queue.add('first', async () => 1000);
  queue.add('second', async () => ++calls);
  await new Promise((done) => setTimeout(done, 20));
  expect(calls).toBe(0);
});
