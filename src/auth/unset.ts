import type { GraphQLSchema } from 'graphql';
import type { Extension } from '../core/extension.ts';
import { createUnenforcedNote } from '../core/unenforced.ts';
import { findDirective } from '../execution/directives.ts';
import type { OptionScope } from '../options/rules.ts';
import { NAMES } from './directives.ts';

/** What a handler without the option `auth` has: it says what a schema requires in vain. */
export const authUnset = (scope: OptionScope): Extension => ({
  noteUnenforced: createUnenforcedNote(scope, unenforced),
});

const unenforced = (schema: GraphQLSchema) => {
  const requirement = findDirective(schema, NAMES);
  return requirement === undefined
    ? undefined
    : {
        page: 'authorization',
        problem: `the schema has ${requirement}, but nothing enforces it; set the option "auth" of graphqlHTTP (and pass attachSubscriptions its handler), or auth: false if a router in front enforces it`,
      };
};
