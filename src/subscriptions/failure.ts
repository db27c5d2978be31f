import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import type { GraphQLCore } from '../core/core.ts';
import { MASKED } from '../core/errors.ts';
import { debug } from '../logging/debug.ts';

/**
 * Errors as a client of a socket is told them. A `formatError` that fails ends neither the process nor the socket: nobody
 * behind us would catch what it throws.
 */
export function toldErrors(
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
