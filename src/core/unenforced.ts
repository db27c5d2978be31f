import type { GraphQLSchema } from 'graphql';
import { findDirective, NAMES } from '../auth/requirements.ts';
import { isDevelopment, noteProtection } from '../diagnostics/logging.ts';
import { type OptionScope, optionError } from '../options/rules.ts';
import type { CoreSettings } from './options.ts';

type Settings = Pick<CoreSettings, 'auth' | 'budget' | 'cost' | 'createIdempotency'>;

/**
 * Creates the function that says which protection a schema declares although no option enforces it.
 *
 * @throws TypeError (code `ERR_OPTION`) in development, if data or mutations are not protected; otherwise a line is logged.
 */
export function createProtectionCheck(
  scope: OptionScope,
  { auth, budget, cost, createIdempotency }: Settings,
): (schema: GraphQLSchema) => void {
  const known = new WeakSet<GraphQLSchema>();
  const say = (page: string, problem: string): void => {
    if (isDevelopment()) throw optionError({ ...scope, page }, problem);
    noteProtection(scope.name, problem);
  };
  return (schema) => {
    if (known.has(schema)) return;
    const requirement = auth === false ? undefined : findDirective(schema, NAMES);
    if (requirement !== undefined && auth === undefined)
      say(
        'authorization',
        `the schema has ${requirement}, but nothing enforces it; set the option "auth" of graphqlHTTP (and pass attachSubscriptions its handler), or auth: false if a router in front enforces it`,
      );
    if (requirement === undefined && typeof auth === 'object')
      noteProtection(
        scope.name,
        'option "auth" is set, but the schema requires nothing of callers: only info.auth of resolvers protects data. printSchema and introspection lose the directives of a schema',
      );
    if (createIdempotency === undefined && schema.getDirective('idempotent') != null)
      say(
        'idempotency',
        'the schema defines @idempotent, but the option "idempotency" is not set, so mutations with a key would run again; set the option, or remove the definition',
      );
    const weight = (cost ?? budget) ? undefined : findDirective(schema, ['cost', 'listSize']);
    if (weight !== undefined)
      noteProtection(
        scope.name,
        `the schema has ${weight}, but neither option "cost" nor "budget" is set, so no cost is limited`,
      );
    known.add(schema);
  };
}
