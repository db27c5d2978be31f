const waiting: (() => void)[] = [];

/**
 * Resolves in a later turn of the event loop. Each turn resolves one caller, so that timers, sockets and other requests
 * run between two long steps, however many callers wait.
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
