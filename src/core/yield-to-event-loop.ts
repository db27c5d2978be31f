/** Resolves when a turn of the event loop is one's own. */
export type OwnTurn = () => Promise<void>;

/** Hands out turns of the event loop, one to each who waits: what would hold others up takes place in between them. */
export function createTurns(): OwnTurn {
  const waiting: (() => void)[] = [];

  function next(): void {
    waiting.shift()?.();
    if (waiting.length > 0) setImmediate(next);
  }

  return () =>
    new Promise((resolve) => {
      if (waiting.push(resolve) === 1) setImmediate(next);
    });
}
