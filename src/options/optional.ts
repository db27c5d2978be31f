import nodeModule from 'node:module';
import type * as replaced from './replaced.ts';
import { once } from './values.ts';

const require = nodeModule.createRequire(import.meta.url);

/** The table of names of other packages, which only a mistake loads, like the modules of graphql/optional.ts. */
export const optional: { replaced(): typeof replaced } = {
  replaced: once(() => require('./replaced.ts')),
};
