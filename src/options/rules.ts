import type { MaybePromise } from '../../types/connect.ts';
import { formatChoices } from './format-value.ts';

/**
 * One option: its default, a test of its value, and a description of the accepted values for error messages.
 */
export interface Rule<T> {
  readonly fallback: T;
  readonly accepts: Accepts;
  readonly accepted: string;
}

/** The rules of a set of options, by name. */
export type Rules<Resolved> = { readonly [K in keyof Resolved]-?: Rule<Resolved[K]> };

/** A set of options with every default filled in. */
export type WithDefaults<Options> = { [K in keyof Options]-?: Exclude<Options[K], undefined> };

/** Returns true for an accepted value. */
export type Accepts = (value: unknown) => boolean;

/** Describes one option. */
export function rule<T>(fallback: T, accepts: Accepts, accepted: string): Rule<T> {
  return { fallback, accepts, accepted };
}

/** An option that is on or off. */
export const flag = (fallback: boolean): Rule<boolean> => rule(fallback, isBoolean, 'a boolean');

/** An option that is one of a few values; the first is the default. */
export const oneOf = <const T extends readonly unknown[]>(...values: T): Rule<T[number]> =>
  rule<T[number]>(values[0], isOneOf(...values), formatChoices(values));

/** An integer from 0. */
export const count = (fallback: number, unit?: string): Rule<number> =>
  rule(fallback, isCount, wholeNumber(0, unit));

/** An integer from 0, or undefined. */
export const optionalCount = (unit?: string): Rule<number | undefined> =>
  rule<number | undefined>(undefined, isCount, wholeNumber(0, unit));

/** An integer from 1. */
export const positive = (fallback: number, unit?: string): Rule<number> =>
  rule(fallback, isPositive, wholeNumber(1, unit));

/** The most milliseconds of a timer of Node, which ends immediately with more. */
export const MAX_DELAY: number = 2 ** 31 - 1;

/** Milliseconds of a timer, an integer from 1 or from 0. */
export const delay = (fallback: number, from: 0 | 1 = 1): Rule<number> =>
  rule(fallback, isDelay(from), acceptedDelay(from));

export const acceptedDelay = (from: 0 | 1): string => `${wholeNumber(from, 'milliseconds')} to ${MAX_DELAY}`;

/** Seconds, a number from 0. */
export const seconds = (fallback: number): Rule<number> => rule(fallback, isSeconds, ACCEPTED_SECONDS);

export const ACCEPTED_SECONDS = 'a number of seconds from 0';

/** An optional function. */
export const optionalFunction = <T>(): Rule<T | undefined> =>
  rule<T | undefined>(undefined, isFunction, 'a function');

/** An option that takes any value. */
export const unchecked: Rule<unknown> = rule<unknown>(undefined, () => true, 'anything');

/** An option that takes any value except a promise, such as the result of an async function that was called. */
export const notPromise = (accepted: string): Rule<unknown> =>
  rule<unknown>(undefined, (value) => !(value instanceof Promise), accepted);

const wholeNumber = (from: number, unit: string | undefined): string =>
  `${unit === undefined ? '' : `${unit}, `}a whole number from ${from}`;

export const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
export const isFunction = (value: unknown): boolean => typeof value === 'function';
export const isString = (value: unknown): value is string => typeof value === 'string';
/** Whether a value is a promise, or a thenable of another library: an object or function with a method `then`. */
export const isThenable = <T>(value: MaybePromise<T>): value is Promise<T> =>
  ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
  typeof (value as { then?: unknown }).then === 'function';
export const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;
export const isPositive = (value: unknown): value is number => isCount(value) && value > 0;
export const isDelay =
  (from: 0 | 1): Accepts =>
  (value) =>
    isCount(value) && value >= from && value <= MAX_DELAY;
export const isSeconds = (value: unknown): boolean => Number.isFinite(value) && (value as number) >= 0;
export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Accepts an origin as browsers send it: without a path, also of a scheme such as `capacitor:`, or the opaque
 * origin "null".
 */
export const isOrigin: Accepts = (value) => {
  if (!isString(value)) return false;
  if (value === 'null') return true;
  if (!URL.canParse(value)) return false;
  const { origin } = new URL(value);
  return origin === value || (origin === 'null' && /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+$/.test(value));
};

/** Accepts a list whose items all pass. */
export const isListOf =
  (item: Accepts): ((value: unknown) => value is readonly unknown[]) =>
  (value): value is readonly unknown[] =>
    Array.isArray(value) && value.every(item);

/**
 * Accepts a list of names of headers (RFC 9110 §5.6.2) for `Vary`, without `*`, which would make every result
 * uncacheable.
 */
export const isVary: Accepts = isListOf(
  (name) => isString(name) && /^(?!\*$)[\w!#$%&'*+.^`|~-]+$/.test(name),
);

/** Accepts a list of at least one item whose items all pass. */
export const oneOrMore =
  (item: Accepts): Accepts =>
  (value) =>
    isListOf(item)(value) && value.length > 0;

/** Accepts one of a few values. */
export const isOneOf =
  (...values: readonly unknown[]): Accepts =>
  (value) =>
    values.includes(value);

/** Accepts a value that passes one of several tests. */
export const isEither =
  (...tests: readonly Accepts[]): Accepts =>
  (value) =>
    tests.some((accepts) => accepts(value));
