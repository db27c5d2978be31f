import nodeModule from 'node:module';
import { once } from '../options/values.ts';
import type * as keep from './keep.ts';
import type * as listing from './listing.ts';

const require = nodeModule.createRequire(import.meta.url);

/** The modules of options of `staticFiles`, which are loaded like those of graphql/optional.ts. */
export const optional: { keep(): typeof keep; listing(): typeof listing } = {
  keep: once(() => require('./keep.ts')),
  listing: once(() => require('./listing.ts')),
};
