/** Work that runs in the background. Returns the milliseconds of CPU time that it took. */
export type Task = () => Promise<number>;

/**
 * Runs tasks one at a time, and pauses between them so that they use at most a share of one CPU core on
 * average. Tasks have keys: a key that is queued or running is not queued again.
 */
export class BackgroundQueue {
  readonly #share: number;
  readonly #maxTasks: number;
  readonly #tasks = new Map<string, Task>();
  #running: string | undefined;
  #pause: NodeJS.Timeout | undefined;

  /** @param share - more than 0, at most 1 */
  constructor(share: number, maxTasks: number) {
    this.#share = share;
    this.#maxTasks = maxTasks;
  }

  /** Queues a task. A full queue drops it: the next request for the same file queues it again. */
  add(key: string, task: Task): void {
    if (this.#running === key || this.#tasks.has(key) || this.#tasks.size >= this.#maxTasks) return;
    this.#tasks.set(key, task);
    if (this.#running === undefined && this.#pause === undefined) this.#runNext();
  }

  #runNext(): void {
    this.#pause = undefined;
    const next = this.#tasks.entries().next();
    if (next.done === true) return;
    const [key, task] = next.value;
    this.#tasks.delete(key);
    this.#running = key;
    // A task that fails is not repeated before the next request for its file.
    task().then(
      (milliseconds) => this.#finish(milliseconds),
      () => this.#finish(0),
    );
  }

  #finish(milliseconds: number): void {
    this.#running = undefined;
    const pause = milliseconds * (1 / this.#share - 1);
    // The timer does not keep the process alive.
    this.#pause = setTimeout(() => this.#runNext(), pause).unref();
  }
}
