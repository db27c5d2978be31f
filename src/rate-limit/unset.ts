import { type Unset, unsetForDirectives } from '../core/unenforced.ts';

export const clientLimitsUnset: Unset = unsetForDirectives(['rateLimit'], (found) => ({
  problem: `the schema has ${found}, but the option "clientLimits" is not set, so nothing enforces it; set clientLimits: true, or clientLimits: false if other code enforces it`,
}));
