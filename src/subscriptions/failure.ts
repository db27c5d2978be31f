import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import { refusals } from '../debug.ts';
import type { GraphQLCore } from '../graphql/core.ts';
import { MASKED } from '../graphql/errors.ts';

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
    refusals.subscriptions('formatError failed: %O', error);
    return [{ message: MASKED }];
  }
}
