/** A queue with a slow consumer. */
interface Checked {
  /** Returns true when the queue needs no further check. */
  check(): boolean;
}

const INTERVAL_MILLISECONDS = 1000;

/** Checks the queues of slow consumers with one timer, which runs only while there are such queues. */
export class SlowReaders {
  readonly #queues = new Set<Checked>();
  #timer: NodeJS.Timeout | undefined;

  add(queue: Checked): void {
    this.#queues.add(queue);
    this.#timer ??= setInterval(() => this.#check(), INTERVAL_MILLISECONDS).unref();
  }

  #check(): void {
    for (const queue of this.#queues) {
      if (queue.check()) this.#queues.delete(queue);
    }
    if (this.#queues.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
