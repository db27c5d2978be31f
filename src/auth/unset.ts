import { type Unset, unsetForDirectives } from '../core/unenforced.ts';
import { NAMES } from './directives.ts';

export const authUnset: Unset = unsetForDirectives(NAMES, (found) => ({
  page: 'authorization',
  problem: `the schema has ${found}, but nothing enforces it; set the option "auth" of graphqlHTTP (and pass attachSubscriptions its handler), or auth: false if a router in front enforces it`,
}));
