import nodeModule from 'node:module';
import { once } from '../options/values.ts';
import type * as documents from './by-id.ts';

const require = nodeModule.createRequire(import.meta.url);

/** The module of the option `documents`, which is loaded like those of graphql/optional.ts. */
export const optional: { documents(): typeof documents } = {
  documents: once(() => require('./by-id.ts')),
};
