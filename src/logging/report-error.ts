import type { ErrorDetails } from '../../types/graphql.ts';

/** The option `onError`: a function, `false` for no reports, or undefined for the console. */
export type OnError = false | ((error: unknown, details: ErrorDetails) => unknown) | undefined;

/** Reports unexpected errors to the operator. Never throws. */
export interface ErrorReporter {
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

type Report = ErrorReporter['report'];

const ignore = (): void => undefined;

/** Creates the reporter for a value of the option `onError`. */
export function createErrorReporter(onError: OnError): ErrorReporter {
  if (onError === false) return { report: ignore, reportForwarded: ignore, reportBackground: ignore };
  if (onError === undefined) {
    return { report: logError, reportForwarded: ignore, reportBackground: logBackgroundError };
  }
  const reportOrLog =
    (log: Report): Report =>
    (error, details) => {
      const onFailure = (failure: unknown): void => {
        log(error, details);
        writeToConsole('error', 'the option "onError" failed:', failure);
      };
      try {
        const returned = onError(error, details);
        if (returned instanceof Promise) returned.catch(onFailure);
      } catch (failure) {
        onFailure(failure);
      }
    };
  const report = reportOrLog(logError);
  return { report, reportForwarded: report, reportBackground: reportOrLog(logBackgroundError) };
}

function logError(error: unknown, { operationName, path, transport }: ErrorDetails): void {
  const operation = operationName === undefined ? 'an operation' : `the operation "${operationName}"`;
  const place = path === undefined ? '' : ` at "${path.join('.')}"`;
  writeToConsole('error', `unexpected error in ${operation}${place} (${transport}):`, error);
}

function logBackgroundError(error: unknown): void {
  writeToConsole('error', 'error outside of operations:', error);
}

/** Writes a line to the console, and errors with their stacks. The only place that uses the console. */
export function writeToConsole(
  method: 'error' | 'warn',
  message: string,
  ...errors: readonly unknown[]
): void {
  console[method](`espalier: ${message}`, ...errors);
}
