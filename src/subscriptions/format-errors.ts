import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import type { GraphQLCore } from '../core/core.ts';
import { MASKED, MASKED_CODE } from '../core/errors.ts';
import type { ErrorOrigin } from '../execution/types.ts';

/**
 * Masks, formats and reports errors. Neither an exception of `formatError` nor an extension that JSON cannot
 * express, such as a BigInt, ends the process or the connection.
 */
export function formatErrorsSafely(
  core: GraphQLCore,
  errors: readonly GraphQLError[],
  origin: ErrorOrigin,
): readonly GraphQLFormattedError[] {
  try {
    return JSON.parse(JSON.stringify(core.formatErrors(errors, origin)));
  } catch (error) {
    core.reportError(error, origin);
    return [{ message: MASKED, extensions: { code: MASKED_CODE } }];
  }
}

/**
 * Returns the close code that a source requests with `closeCode` of its error. Clients reconnect after 1012,
 * 1013 and most application-defined codes, but never repeat an operation that ended with `error`.
 */
export function closeCodeOf(errors: readonly GraphQLError[]): number | undefined {
  const code = readCloseCode(errors[0]?.originalError);
  const allowed =
    typeof code === 'number' && (code === 1012 || code === 1013 || (code >= 4000 && code < 5000));
  return allowed ? code : undefined;
}

function readCloseCode(error: unknown): unknown {
  try {
    return (error as { readonly closeCode?: unknown } | undefined)?.closeCode;
  } catch {
    // A getter of the error has thrown.
    return undefined;
  }
}
