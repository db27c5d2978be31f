import type { SchemaUsage } from '../../types/usage.ts';

/** The usage of a handler without the option `usage`. */
export const NO_USAGE: SchemaUsage = {
  flush: async () => undefined,
  report: async () => ({ version: 1, days: {} }),
};
