import type { NameOption } from './options.ts';

/** The value of an attribute for names that are not allowed, as in the semantic conventions. */
export const OTHER = '_OTHER';

/** Longer names are not part of metrics. */
const MAX_LENGTH = 100;

/** Returns the value of an attribute for a name; undefined if the attribute is off or there is no name. */
export type BoundName = (name: string | undefined) => string | undefined;

/**
 * Bounds the values of one attribute. The number of time series in memory, here and in each backend, is the
 * product of the numbers of values of their attributes.
 */
export function boundNames(option: NameOption, maxNames: number): BoundName {
  if (option === false) return () => undefined;
  const isOpen = option === true;
  const known = new Set(isOpen ? [] : option);
  return (name) => {
    if (name === undefined || known.has(name)) return name;
    if (!isOpen || known.size >= maxNames || name.length > MAX_LENGTH) return OTHER;
    known.add(name);
    return name;
  };
}
