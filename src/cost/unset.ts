import type { GraphQLSchema } from 'graphql';
import type { Extension } from '../core/extension.ts';
import { createUnenforcedNote } from '../core/unenforced.ts';
import { findDirective } from '../execution/directives.ts';
import type { OptionScope } from '../options/rules.ts';

/** What a handler without the option `cost` or `budget` has: it says what a schema declares in vain. */
export const costUnset = (scope: OptionScope): Extension => ({
  noteUnenforced: createUnenforcedNote(scope, unenforced),
});

const unenforced = (schema: GraphQLSchema) => {
  const weight = findDirective(schema, ['cost', 'listSize']);
  return weight === undefined
    ? undefined
    : {
        problem: `the schema has ${weight}, but neither option "cost" nor "budget" is set, so no cost is limited`,
      };
};
