import type { ErrorDetails } from '../../types/graphql.ts';

/** The option `onError`: a function, `false` for no reports, or undefined to log them. */
export type OnError = false | ((error: unknown, details: ErrorDetails) => unknown) | undefined;

/** Reports unexpected errors to the operator. Never throws. */
export interface Reporter {
  /** Reports an error that the client sees as "Internal server error". */
  report(error: unknown, details: ErrorDetails): void;
  /**
   * Reports an error that is also passed to `next(error)`. Application error handlers log it, so it is not
   * logged here.
   */
  reportForwarded(error: unknown, details: ErrorDetails): void;
  /** Reports an error outside of requests, such as a file that could not be read again. */
  reportBackground(error: unknown, details: ErrorDetails): void;
}

type Report = Reporter['report'];

const ignore = (): void => undefined;

/** Creates the reporter for a value of the option `onError`. */
export function createErrorReporter(onError: OnError): Reporter {
  if (onError === false) return { report: ignore, reportForwarded: ignore, reportBackground: ignore };
  if (onError === undefined) {
    return { report: logError, reportForwarded: ignore, reportBackground: logBackgroundError };
  }
  const reportOrLog =
    (log: Report): Report =>
    (error, details) => {
      const onFailure = (failure: unknown): void => {
        log(error, details);
        writeLog('error', 'the option "onError" failed:', failure);
      };
      callListener(() => onError(error, details), onFailure);
    };
  const report = reportOrLog(logError);
  return { report, reportForwarded: report, reportBackground: reportOrLog(logBackgroundError) };
}

/** Calls a function of the application. An exception or a rejection of it goes to `onFailure`. */
export function callListener(call: () => unknown, onFailure: (failure: unknown) => void): void {
  try {
    // Also the promise of another library or JavaScript context.
    Promise.resolve(call()).catch(onFailure);
  } catch (failure) {
    onFailure(failure);
  }
}

function logError(error: unknown, { operationName, path, transport }: ErrorDetails): void {
  const operation = operationName === undefined ? 'an operation' : `the operation "${operationName}"`;
  const place = path === undefined ? '' : ` at "${path.join('.')}"`;
  writeLog('error', `unexpected error in ${operation}${place} (${transport}):`, error);
}

function logBackgroundError(error: unknown): void {
  writeLog('error', 'error outside of operations:', error);
}

/** Writes a line to standard error, with the stacks of errors. All logging without the option `onError` uses it. */
export function writeLog(method: 'error' | 'warn', message: string, ...errors: readonly unknown[]): void {
  console[method](`espalier: ${message}`, ...errors);
}
