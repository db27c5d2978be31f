import { setImmediate } from 'node:timers';

const waiting: (() => void)[] = [];

/**
 * Resolves in a later turn of the event loop. Each turn resolves one caller, so that timers, sockets and
 * other requests run between two long steps, however many callers wait.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(resolveNext);
  });
}

function resolveNext(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(resolveNext);
}

/**
 * Characters of new documents that are prepared synchronously in one iteration of the event loop: a few
 * milliseconds.
 */
const MAX_CHARACTERS = 10_000;
/** Preparing an empty document takes about as long as this many characters. */
const OVERHEAD = 200;

let characters = 0;

/**
 * Whether a new document of this length may be prepared synchronously. One iteration reads the requests of
 * many connections, so many short documents together could block the event loop like a long one.
 */
export function fitsIntoIteration(length: number): boolean {
  if (characters > 0 && characters + length > MAX_CHARACTERS) return false;
  if (characters === 0) setImmediate(startIteration);
  characters += length + OVERHEAD;
  return true;
}

function startIteration(): void {
  characters = 0;
}

let iteration = 0;
let isNumbered = false;

/** Returns a number that is different in each iteration of the event loop. */
function currentIteration(): number {
  if (!isNumbered) {
    isNumbered = true;
    setImmediate(endIteration);
  }
  return iteration;
}

function endIteration(): void {
  isNumbered = false;
  iteration++;
}

/** The steps of one loop in one iteration of the event loop. */
const MAX_STEPS = 100;

/** Counts the steps of a loop that would block the event loop if all its promises were resolved already. */
export class LoopSteps {
  #iteration = -1;
  #steps = 0;

  /** Called for each step. Returns a promise if the loop has to yield to the event loop before it. */
  next(): Promise<void> | undefined {
    const current = currentIteration();
    if (current !== this.#iteration) {
      this.#iteration = current;
      this.#steps = 0;
    }
    return ++this.#steps > MAX_STEPS ? yieldToEventLoop() : undefined;
  }
}
