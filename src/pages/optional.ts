import nodeModule from 'node:module';
import { once } from '../options/values.ts';
import type * as pages from './pages.ts';

const require = nodeModule.createRequire(import.meta.url);

/** The module of the option `pages`, which is loaded when the first middleware with it is created, like those of graphql/optional.ts. */
export const optional: { pages(): typeof pages } = {
  pages: once(() => require('./pages.ts')),
};
