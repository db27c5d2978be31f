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
export function fitsThisTurn(length: number): boolean {
  if (characters > 0 && characters + length > MAX_CHARACTERS) return false;
  if (characters === 0) setImmediate(startIteration);
  characters += length + OVERHEAD;
  return true;
}

function startIteration(): void {
  characters = 0;
}
