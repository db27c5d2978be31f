import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import type { GraphQLCore } from '../core/core.ts';
import { MASKED, MASKED_CODE } from '../core/errors.ts';
import type { ErrorOrigin } from '../execution/types.ts';

/** Masks, formats and reports errors. An exception of `formatError` does not end the process or the connection. */
export function formatErrorsSafely(
  core: GraphQLCore,
  errors: readonly GraphQLError[],
  origin: ErrorOrigin,
): readonly GraphQLFormattedError[] {
  try {
    return core.formatErrors(errors, origin);
  } catch (error) {
    core.reportError(error, origin);
    return [{ message: MASKED, extensions: { code: MASKED_CODE } }];
  }
}
