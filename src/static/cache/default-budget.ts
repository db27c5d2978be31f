import { totalmem } from 'node:os';
import type { CacheSettings } from '../option-rules.ts';
import { MemoryBudget } from './memory-budget.ts';

const MAX_DEFAULT_BYTES = 256 * 1024 * 1024;
const DEFAULT_SHARE = 1 / 8;

let shared: MemoryBudget | undefined;

/** Returns the memory budget for the options of one middleware. Middlewares without own limits share one budget. */
export function budgetFor({
  maxBytes,
  maxEntries,
}: Pick<CacheSettings, 'maxBytes' | 'maxEntries'>): MemoryBudget {
  const defaults = defaultMaxBytes(process.constrainedMemory(), totalmem());
  if (maxBytes !== undefined || maxEntries !== undefined) {
    return new MemoryBudget({ maxBytes: maxBytes ?? defaults, maxEntries: maxEntries ?? Infinity });
  }
  shared ??= new MemoryBudget({ maxBytes: defaults, maxEntries: Infinity });
  return shared;
}

/**
 * Returns the default of `maxBytes`.
 *
 * @param constrained - the memory limit of the process' control group; undefined, 0 or a huge number without one
 */
export function defaultMaxBytes(constrained: number | undefined, total: number): number {
  const available = constrained === undefined || constrained <= 0 ? total : Math.min(constrained, total);
  return Math.min(MAX_DEFAULT_BYTES, Math.floor(available * DEFAULT_SHARE));
}
