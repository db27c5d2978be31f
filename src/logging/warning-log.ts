import { callListener } from './report-error.ts';

const INTERVAL_MILLISECONDS = 60_000;
const MAX_MESSAGES = 100;

/** The public function that reports errors, with the type and the code of its warnings. */
interface WarningSource {
  readonly owner: string;
  readonly type: string;
  readonly code: string;
}

/**
 * Writes errors as process warnings to standard error, one line each. An equal message is written at most
 * once a minute.
 */
export function createWarningLog({ owner, type, code }: WarningSource): (error: Error) => void {
  const written = new Map<string, { until: number; repeated: number }>();
  return (error) => {
    const message = messageOf(error).replace(`${owner}: `, '');
    const now = performance.now();
    const entry = written.get(message);
    if (entry !== undefined && now < entry.until) {
      entry.repeated++;
      return;
    }
    if (written.size >= MAX_MESSAGES) written.clear();
    written.set(message, { until: now + INTERVAL_MILLISECONDS, repeated: 0 });
    const repeated =
      entry === undefined || entry.repeated === 0 ? '' : ` (${entry.repeated} more times since then)`;
    process.emitWarning(`${owner}: ${message}${repeated}`, { type, code });
  };
}

/**
 * Creates the function that passes errors to the option `onError`, or writes them as warnings. It never throws: an
 * exception in a listener of a connection would end the process.
 */
export function createErrorListener(
  onError: ((error: Error) => unknown) | false | undefined,
  source: WarningSource,
): (error: Error) => void {
  if (onError === false) return () => undefined;
  const warn = createWarningLog(source);
  return onError === undefined ? warn : guardListener('onError', onError, warn);
}

/** Reports an exception or a rejection of a listener that is an option. */
export function guardListener<Args extends readonly unknown[]>(
  name: string,
  listener: (...args: Args) => unknown,
  report: (error: Error) => void,
): (...args: Args) => void {
  const onFailure = (cause: unknown): void => {
    const reason = cause instanceof Error ? messageOf(cause) : String(cause);
    report(new Error(`the option "${name}" failed: ${reason}`, { cause }));
  };
  return (...args) => callListener(() => listener(...args), onFailure);
}

/** Returns the message of an error. The AggregateError of several failed addresses has a code only. */
export function messageOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  return (error.message || code || error.name).replace(/\s+/g, ' ');
}
