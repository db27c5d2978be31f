import type { GraphQLSchema } from 'graphql';
import type { Extension } from '../core/extension.ts';
import { createUnenforcedNote } from '../core/unenforced.ts';
import type { OptionScope } from '../options/rules.ts';

/** What a handler without the option `idempotency` has: it says what a schema defines in vain. */
export const idempotencyUnset = (scope: OptionScope): Extension => ({
  noteUnenforced: createUnenforcedNote(scope, unenforced),
});

const unenforced = (schema: GraphQLSchema) =>
  schema.getDirective('idempotent') == null
    ? undefined
    : {
        page: 'idempotency',
        problem:
          'the schema defines @idempotent, but the option "idempotency" is not set, so mutations with a key would run again; set the option, or remove the definition',
      };
