import { choice } from './show.ts';

/** One option: its default, whether a value will do, and what is accepted, in words. */
export interface Rule<T> {
  readonly fallback: T;
  readonly accepts: Accepts;
  readonly accepted: string;
}

/** The rules of a set of options, by name. */
export type Rules<Settled> = { readonly [K in keyof Settled]-?: Rule<Settled[K]> };

/** A set of options with every default filled in. */
export type Filled<Options> = { [K in keyof Options]-?: Exclude<Options[K], undefined> };

/** Whether a value will do. */
export type Accepts = (value: unknown) => boolean;

/** Describes one option. */
export function rule<T>(fallback: T, accepts: Accepts, accepted: string): Rule<T> {
  return { fallback, accepts, accepted };
}

/** An option that is on or off. */
export const flag = (fallback: boolean): Rule<boolean> => rule(fallback, isBoolean, 'a boolean');

/** An option that is one of a few values; the first is the default. */
export const oneOf = <const T extends readonly unknown[]>(...values: T): Rule<T[number]> =>
  rule<T[number]>(values[0], isOneOf(...values), choice(values));

/** An option that counts something, which may be nothing. */
export const count = (fallback: number, unit?: string): Rule<number> =>
  rule(fallback, isCount, wholeNumber(0, unit));

/** An option that counts something, at least one. */
export const positive = (fallback: number, unit?: string): Rule<number> =>
  rule(fallback, isPositive, wholeNumber(1, unit));

/** A function that may be given. */
export const optionalFunction = <T>(): Rule<T | undefined> =>
  rule<T | undefined>(undefined, isFunction, 'a function');

/** An option that takes any value. */
export const anything: Rule<unknown> = rule<unknown>(undefined, () => true, 'anything');

const wholeNumber = (from: number, unit: string | undefined): string =>
  `${unit === undefined ? '' : `${unit}, `}a whole number from ${from}`;

export const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
export const isFunction = (value: unknown): boolean => typeof value === 'function';
export const isString = (value: unknown): value is string => typeof value === 'string';
export const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;
export const isPositive = (value: unknown): value is number => isCount(value) && value > 0;
export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A list whose items all pass. */
export const isListOf =
  (item: Accepts): ((value: unknown) => value is readonly unknown[]) =>
  (value): value is readonly unknown[] =>
    Array.isArray(value) && value.every(item);

/** One of a few values. */
export const isOneOf =
  (...values: readonly unknown[]): Accepts =>
  (value) =>
    values.includes(value);

/** What one of several tests accepts. */
export const isEither =
  (...tests: readonly Accepts[]): Accepts =>
  (value) =>
    tests.some((accepts) => accepts(value));
