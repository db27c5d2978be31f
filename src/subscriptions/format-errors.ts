import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import type { GraphQLCore } from '../core/core.ts';
import { MASKED } from '../core/errors.ts';
import { debug } from '../logging/debug.ts';

/** Masks and formats errors for the client. A `formatError` that throws ends neither the process nor the connection. */
export function formatErrorsSafely(
  core: GraphQLCore,
  errors: readonly GraphQLError[],
): readonly GraphQLFormattedError[] {
  try {
    return core.formatErrors(errors);
  } catch (error) {
    debug.subscriptions('formatError failed: %O', error);
    return [{ message: MASKED }];
  }
}
