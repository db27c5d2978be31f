import { MAX_DELAY } from '../../options/rules.ts';

/** Work that runs in the background. Returns the milliseconds of CPU time that it took. */
export type Task = () => Promise<number>;

/** Milliseconds after which the next task does not wait for one that has not ended. */
const PATIENCE = 30_000;
/** Tasks that may hang at a time: each of them keeps its file and possibly a thread. */
const MAX_HANGING = 16;

/** The limits of a queue. */
interface QueueLimits {
  /** The share of one CPU core: more than 0, at most 1. */
  readonly share: number;
  readonly maxTasks: number;
  readonly patience?: number;
}

/**
 * Runs tasks one at a time, and pauses between them so that they use at most a share of one CPU core on
 * average. Tasks have keys: a key that is queued or running is not queued again. A task that hangs, for example
 * because it reads from a file system that does not respond, stops the others for a limited time only.
 */
export class BackgroundQueue {
  readonly #limits: Required<QueueLimits>;
  readonly #tasks = new Map<string, Task>();
  /** The keys of tasks that have started and not ended. */
  readonly #running = new Set<string>();
  /** Whether the next task has to wait for the last one, or for the pause after it. */
  #isBusy = false;

  constructor(limits: QueueLimits) {
    this.#limits = { patience: PATIENCE, ...limits };
  }

  /** Queues a task. A full queue drops it: the next request for the same file queues it again. */
  add(key: string, task: Task): void {
    if (this.#running.has(key) || this.#tasks.has(key) || this.#tasks.size >= this.#limits.maxTasks) return;
    this.#tasks.set(key, task);
    if (!this.#isBusy) this.#runNext();
  }

  #runNext(): void {
    this.#isBusy = false;
    if (this.#running.size >= MAX_HANGING) return;
    const next = this.#tasks.entries().next();
    if (next.done === true) return;
    const [key, task] = next.value;
    this.#tasks.delete(key);
    this.#isBusy = true;
    this.#running.add(key);
    let isLate = false;
    const watch = setTimeout(() => {
      isLate = true;
      this.#runNext();
    }, this.#limits.patience).unref();
    const finish = (milliseconds: number): void => {
      clearTimeout(watch);
      this.#running.delete(key);
      if (!isLate) this.#pauseAfter(milliseconds);
      else if (!this.#isBusy) this.#runNext();
    };
    // A task that fails is not repeated before the next request for its file.
    task().then(finish, () => finish(0));
  }

  #pauseAfter(milliseconds: number): void {
    const pause = Math.min(milliseconds * (1 / this.#limits.share - 1), MAX_DELAY);
    // The timer does not keep the process alive.
    setTimeout(() => this.#runNext(), pause).unref();
  }
}
