import { type Unset, unsetWhen } from '../core/unenforced.ts';

export const idempotencyUnset: Unset = unsetWhen((schema) =>
  schema.getDirective('idempotent') == null
    ? undefined
    : {
        page: 'idempotency',
        problem:
          'the schema defines @idempotent, but the option "idempotency" is not set, so mutations with a key would run again; set the option, or remove the definition',
      },
);
