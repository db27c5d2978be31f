import { type Unset, unsetForDirectives } from '../core/unenforced.ts';

export const costUnset: Unset = unsetForDirectives(['cost', 'listSize'], (found) => ({
  problem: `the schema has ${found}, but neither option "cost" nor "budget" is set, so no cost is limited`,
}));
