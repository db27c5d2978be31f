import { setImmediate } from 'node:timers';

// Chunks that are read in one turn of the event loop. Reading and writing 4 MiB take about 2 ms.
const CHUNKS_PER_TURN = 8;

/** Limits the work of transfers in one turn of the event loop, so that many fast clients do not delay other requests. */
class TurnBudget {
  #used = 0;
  readonly #waiting: (() => void)[] = [];

  /** Calls `readChunk` now, or in a later turn if the budget of this one is used. */
  run(readChunk: () => void): void {
    if (this.#used >= CHUNKS_PER_TURN) {
      this.#waiting.push(readChunk);
      return;
    }
    if (this.#used === 0) setImmediate(this.#startTurn);
    this.#used++;
    readChunk();
  }

  readonly #startTurn = (): void => {
    this.#used = 0;
    for (let count = Math.min(this.#waiting.length, CHUNKS_PER_TURN); count > 0; count--) {
      this.run(this.#waiting.shift() as () => void);
    }
  };
}

/** The budget of all middlewares of the process together: they share the event loop. */
export const turnBudget: TurnBudget = new TurnBudget();
