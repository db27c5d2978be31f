import type { GraphQLSchema } from 'graphql';
import { isDevelopment, noteProtection } from '../diagnostics/logging.ts';
import { type OptionScope, optionError } from '../options/rules.ts';

/** Something that a schema declares although nothing enforces it. */
interface Unenforced {
  readonly problem: string;
  /** The page about it, if it is an error in development because data or mutations are not protected. */
  readonly page?: string;
}

/**
 * Creates the function that says, once for each schema, what is not enforced.
 *
 * @throws TypeError (code `ERR_OPTION`) in development, if data or mutations are not protected; otherwise a line is logged.
 */
export function createUnenforcedNote(
  scope: OptionScope,
  find: (schema: GraphQLSchema) => Unenforced | undefined,
): (schema: GraphQLSchema) => void {
  const known = new WeakSet<GraphQLSchema>();
  return (schema) => {
    if (known.has(schema)) return;
    const found = find(schema);
    if (found?.page !== undefined && isDevelopment())
      throw optionError({ ...scope, page: found.page }, found.problem);
    if (found !== undefined) noteProtection(scope.name, found.problem);
    known.add(schema);
  };
}
