import type { GraphQLSchema } from 'graphql';
import { isDevelopment, noteProtection } from '../diagnostics/logging.ts';
import { findDirective } from '../execution/directives.ts';
import { type OptionScope, optionError } from '../options/rules.ts';
import type { Extension } from './extension.ts';

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

type FindUnenforced = Parameters<typeof createUnenforcedNote>[1];

/** Creates the extension of an option that is not set. */
export type Unset = (scope: OptionScope) => Extension;

/** What a handler without an option has: it says what a schema declares in vain. */
export const unsetWhen =
  (find: FindUnenforced): Unset =>
  (scope) => ({ noteUnenforced: createUnenforcedNote(scope, find) });

/** The same for directives. `describe` gets the first one, such as "@cost on Query.a". */
export const unsetForDirectives = (
  names: readonly string[],
  describe: (found: string) => Unenforced,
): Unset =>
  unsetWhen((schema) => {
    const found = findDirective(schema, names);
    return found === undefined ? undefined : describe(found);
  });
