import type { GraphQLSchema } from 'graphql';
import type { Extension } from '../core/extension.ts';
import { createUnenforcedNote } from '../core/unenforced.ts';
import { findDirective } from '../execution/directives.ts';
import type { OptionScope } from '../options/rules.ts';

/** What a handler without the option `clientLimits` has: it says what a schema declares in vain. */
export const clientLimitsUnset = (scope: OptionScope): Extension => ({
  noteUnenforced: createUnenforcedNote(scope, unenforced),
});

const unenforced = (schema: GraphQLSchema) => {
  const found = findDirective(schema, ['rateLimit']);
  return found === undefined
    ? undefined
    : {
        problem: `the schema has ${found}, but the option "clientLimits" is not set, so nothing enforces it; set clientLimits: true, or clientLimits: false if other code enforces it`,
      };
};
