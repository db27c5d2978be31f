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

const ignore = (): void => undefined;

/** Creates the reporter for a value of the option `onError`. */
export function createErrorReporter(onError: OnError): ErrorReporter {
  if (onError === false) return { report: ignore, reportForwarded: ignore, reportBackground: ignore };
  if (onError === undefined) {
    return {
      report: reportToConsole,
      reportForwarded: ignore,
      reportBackground: (error) => console.error(`espalier: ${(error as Error).message}`),
    };
  }
  const report = (error: unknown, details: ErrorDetails): void => {
    const onFailure = (failure: unknown): void => {
      reportToConsole(error, details);
      console.error('espalier: the option "onError" failed:', failure);
    };
    try {
      const returned = onError(error, details);
      if (returned instanceof Promise) returned.catch(onFailure);
    } catch (failure) {
      onFailure(failure);
    }
  };
  return { report, reportForwarded: report, reportBackground: report };
}

function reportToConsole(error: unknown, details: ErrorDetails): void {
  const { operationName, path, transport } = details;
  const operation = operationName === undefined ? 'an operation' : `the operation "${operationName}"`;
  const place = path === undefined ? '' : ` at "${path.join('.')}"`;
  console.error(`espalier: unexpected error in ${operation}${place} (${transport}):`, error);
}
