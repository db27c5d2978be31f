import nodeModule from 'node:module';
import type * as replaced from './replaced.ts';
import {
  isBoolean,
  isCount,
  isFunction,
  isObject,
  isPositive,
  isSeconds,
  isString,
  isThenable,
  once,
} from './values.ts';

const require = nodeModule.createRequire(import.meta.url);

/** Names that people know from other packages. Only an unknown option loads them, as graphql/optional.ts does with options. */
const modules: { replaced(): typeof replaced } = {
  replaced: once(() => require('./replaced.ts')),
};

/** Identifies a group of options in error messages. */
export interface OptionScope {
  /** The public function. */
  readonly name: string;
  /** The page of the function in docs/. */
  readonly page: string;
  /** The option that contains the group, for nested options. */
  readonly within?: string;
  /** An example of the options, for messages about an argument that is not an object. */
  readonly example?: string;
}

const DOCS = 'https://github.com/espalier-js/espalier/blob/main/docs';

/**
 * Checks a user's options and fills in the defaults. `undefined` means the default; unknown names and wrong
 * values throw.
 *
 * @throws TypeError (code `ERR_OPTION`) that names the option, the value and the accepted values.
 */
export function resolveOptions<Resolved>(
  scope: OptionScope,
  given: unknown,
  rules: Rules<Resolved>,
): Resolved {
  const options = given ?? {};
  assertCalled(scope, options);
  if (given === null || !isObject(options)) {
    const { example } = scope;
    const accepted = example === undefined ? 'an object' : `an object such as ${example}`;
    throw wrongArgument(scope, 'options', given, accepted);
  }
  const known = Object.keys(rules) as (keyof Resolved & string)[];
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(rules, name)) throw unknownOption(scope, name, known);
  }
  const resolved: Partial<Resolved> = {};
  for (const name of known) {
    const { fallback, accepts, accepted, read } = rules[name];
    const given = options[name];
    const value = read === undefined ? given : read(given);
    if (given !== undefined && !accepts(value)) throw wrongOption(scope, name, given, accepted);
    resolved[name] = value === undefined ? fallback : (value as Resolved[typeof name]);
  }
  return resolved as Resolved;
}

/**
 * Rejects the request and the response that a function gets if it is mounted instead of its return value.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function assertCalled(scope: OptionScope, argument: unknown): void {
  if (!isObject(argument) || !('httpVersion' in argument || 'headersSent' in argument)) return;
  const message = `an argument is a request or a response, because the function itself was mounted; mount what it returns: app.use(${scope.name}(...))`;
  throw optionError(scope, message);
}

export function wrongOption(scope: OptionScope, name: string, value: unknown, accepted: string): TypeError {
  return optionError(scope, `option ${quoted(scope, name)} is ${formatValue(value)}; accepted: ${accepted}`);
}

/** Creates the TypeError for an option whose function returned a wrong value. */
export function wrongReturnValue(
  scope: OptionScope,
  name: string,
  value: unknown,
  accepted: string,
): TypeError {
  return optionError(
    scope,
    `option ${quoted(scope, name)} returned ${formatValue(value)}; accepted: ${accepted}`,
  );
}

/**
 * Checks that the function of an option returned a value and not a promise. A promise is truthy, so it would
 * allow a request that the function refuses.
 *
 * @throws TypeError (code `ERR_OPTION`) for a promise.
 */
export function assertSync<T>(returned: T, scope: OptionScope, option: string): T {
  if (!isThenable(returned)) return returned;
  // The promise is not awaited, so its rejection must not become an unhandled one.
  Promise.resolve(returned).catch(() => undefined);
  throw wrongReturnValue(scope, option, returned, 'a value that is not a promise');
}

/** Creates the function that returns the value of an option, or what its function returns, which must not be a promise. */
export const valueFor =
  <T extends boolean | string>(scope: OptionScope, name: string, given: T | ((source: unknown) => T)) =>
  (source: unknown): T =>
    typeof given === 'function' ? assertSync(given(source), scope, name) : given;

/** Checks a group of options that may be a boolean; undefined if it is off. */
export const resolveSwitch = <Resolved>(
  scope: OptionScope,
  given: unknown,
  rules: Rules<Resolved>,
): Resolved | undefined =>
  given === undefined || given === false
    ? undefined
    : resolveOptions(scope, given === true ? {} : given, rules);

export function wrongArgument(scope: OptionScope, name: string, value: unknown, accepted: string): TypeError {
  return optionError(scope, `argument "${name}" is ${formatValue(value)}; accepted: ${accepted}`);
}

/** Creates a TypeError with any message and a link to the page. */
export function optionError({ name, page }: OptionScope, message: string): TypeError {
  const error = new TypeError(`${name}: ${message} (see ${DOCS}/${page}.md)`);
  return Object.assign(error, { code: 'ERR_OPTION' });
}

/** Creates the TypeError for an unknown option: with its replacement, the closest name, or the known names. */
export function unknownOption(scope: OptionScope, name: string, known: readonly string[]): TypeError {
  const meant = didYouMean(name, known);
  const hint =
    modules.replaced().replacementOf(groupOf(scope), name) ??
    (meant === undefined ? `accepted: ${known.join(', ')}` : `did you mean ${quoted(scope, meant)}?`);
  return optionError(scope, `unknown option ${quoted(scope, name)}; ${hint}`);
}

/** Returns the end of a message about a request: the option of the application that refuses it. */
export const byOption = (name: string, { within }: Pick<OptionScope, 'within'> = {}): string =>
  ` (option "${within === undefined ? '' : `${within}.`}${name}")`;

/** The name of a group of options in the table of replacements. */
const groupOf = ({ name, within }: OptionScope): string =>
  within === undefined ? name : `${name}.${within}`;

function quoted({ within }: OptionScope, name: string): string {
  return within === undefined ? `"${name}"` : `"${within}.${name}"`;
}

/** One option: its default, a test of its value, and a description of the accepted values for error messages. */
export interface Rule<T> {
  readonly fallback: T;
  readonly accepts: Accepts;
  readonly accepted: string;
  /** Turns a value with a unit into a number, which `accepts` gets. */
  readonly read?: (value: unknown) => unknown;
}

/** The rules of a set of options, by name. */
export type Rules<Resolved> = { readonly [K in keyof Resolved]-?: Rule<Resolved[K]> };

/** A set of options with every default filled in, and numbers in place of durations and sizes with units. */
export type WithDefaults<Options> = {
  [K in keyof Options]-?: WithoutUnit<Exclude<Options[K], undefined>>;
};

type WithoutUnit<T> = [number | string] extends [T] ? Exclude<T, string> : T;

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

/** An integer from 1. */
export const positive = (fallback: number, unit?: string): Rule<number> =>
  rule(fallback, isPositive, wholeNumber(1, unit));

/** The most milliseconds of a timer of Node, which ends immediately with more. */
export const MAX_DELAY: number = 2 ** 31 - 1;

/** The numbers that a duration may be; with `Infinity` as the end, also `Infinity`. */
interface Bounds {
  readonly from?: 0 | 1;
  readonly to?: number;
}

/** A duration: milliseconds, or a number with a unit. */
export const duration = (fallback: number, bounds: Bounds = {}): Rule<number> =>
  measured(fallback, { ...bounds, unit: 'milliseconds', example: '5s', units: DURATIONS });

/** The duration of a timer. */
export const delay = (fallback: number, from: 0 | 1 = 1): Rule<number> =>
  duration(fallback, { from, to: MAX_DELAY });

/** A number of bytes, or a number with a unit. */
export const bytes = <T extends number | undefined>(
  fallback: T,
  bounds: Bounds = {},
): Rule<number | (T & undefined)> =>
  measured<number | (T & undefined)>(fallback, { ...bounds, unit: 'bytes', example: '5mb', units: SIZES });

const DURATIONS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SIZES = { b: 1, kb: 2 ** 10, mb: 2 ** 20, gb: 2 ** 30 };

const namesOf = (units: object): string => Object.keys(units).join(', ');

interface Measure extends Bounds {
  readonly unit: string;
  /** A value with a unit. */
  readonly example: string;
  readonly units: Readonly<Record<string, number>>;
}

function measured<T>(fallback: T, { unit, example, units, from = 1, to }: Measure): Rule<T> {
  const end = to === undefined || to === Number.POSITIVE_INFINITY ? '' : ` to ${to}`;
  const others = `a string such as '${example}' (${namesOf(units)})`;
  const infinite = to === Number.POSITIVE_INFINITY ? ', or Infinity for no limit' : '';
  return {
    fallback,
    accepts: (value) =>
      value === to || (isCount(value) && value >= from && value <= (to ?? Number.MAX_SAFE_INTEGER)),
    accepted: `${wholeNumber(from, unit)}${end}, or ${others}${infinite}`,
    read: (value) => (isString(value) ? readMeasure(value, units) : value),
  };
}

/** Returns the number of a text such as `1.5mb`; NaN for another text. */
function readMeasure(text: string, units: Readonly<Record<string, number>>): number {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?) ?([a-z]+)$/i.exec(text) ?? [];
  const name = unit.toLowerCase();
  return Object.hasOwn(units, name) ? Math.round(Number(number) * Number(units[name])) : Number.NaN;
}

/** Seconds: a number from 0, or a number with a unit. */
export const seconds = (fallback: number): Rule<number> => ({
  ...rule(fallback, isSeconds, `${ACCEPTED_SECONDS}, or a string such as '5s' (${namesOf(DURATIONS)})`),
  read: (value) => (isString(value) ? readMeasure(value, DURATIONS) / DURATIONS.s : value),
});

export const ACCEPTED_SECONDS = 'a number of seconds from 0';

/** An optional function. */
export const optionalFunction = <T>(): Rule<T | undefined> =>
  rule<T | undefined>(undefined, isFunction, 'a function');

/** A group of options that are checked later, or a value that passes another test. */
export const group = (accepted: string, ...others: readonly Accepts[]): Rule<unknown> =>
  rule<unknown>(undefined, isEither(isObject, ...others), accepted);

/** An option that takes any value. */
export const unchecked: Rule<unknown> = rule<unknown>(undefined, () => true, 'anything');

/** An option that takes any value except a promise, such as the result of an async function that was called. */
export const notPromise = (accepted: string): Rule<unknown> =>
  rule<unknown>(undefined, (value) => !(value instanceof Promise), accepted);

const wholeNumber = (from: number, unit: string | undefined): string =>
  `${unit === undefined ? '' : `${unit}, `}a whole number from ${from}`;

/** Checks what `next()` of an iterator returned: the loop over a number would have no end. `done` of null throws itself. */
export function stepOf<T>(result: T): T {
  if (typeof result === 'object' || typeof result === 'function' || result === undefined) return result;
  throw new TypeError(`An iterator returned ${formatValue(result)} from next(), which must be an object`);
}

/** Accepts the path of a file or directory. */
export const isPath: Accepts = (value) => isString(value) && value !== '';

/** Accepts a path, or a `file:` URL. */
export const isPathOrUrl: Accepts = (value) =>
  isPath(value) || (value instanceof URL && value.protocol === 'file:');

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

/** Characters in which the password of a URL is searched. */
const MAX_SEARCHED = 1000;

/** Formats a value for an error message: one line of at most 80 characters. */
export function formatValue(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  if (value instanceof Promise) return 'a promise';
  if (value === undefined || /^(?:number|bigint|symbol)$/.test(typeof value)) return String(value);
  let text: string | undefined;
  try {
    // JSON has no patterns, and would show them as {}.
    text = JSON.stringify(value, (_key, member: unknown) =>
      member instanceof RegExp ? String(member) : member,
    );
  } catch {
    text = undefined;
  }
  text ??= Object.prototype.toString.call(value);
  // The password of a URL must not reach a log. The pattern takes too long for a long text, which clients may send.
  text = text.slice(0, MAX_SEARCHED).replace(/(:\/\/[^/@"]*:).*@/, '$1***@');
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** Formats a list of accepted values: `'a', 'b' or true`. */
function formatChoices(values: readonly unknown[]): string {
  const texts = values.map((value) => (typeof value === 'string' ? `'${value}'` : formatValue(value)));
  const last = texts.pop() ?? '';
  return texts.length === 0 ? last : `${texts.join(', ')} or ${last}`;
}

/** Returns the known name that is closest to a misspelled name, if one is similar enough. */
function didYouMean(name: string, known: readonly string[]): string | undefined {
  return (
    known.find((candidate) => letters(candidate) === letters(name)) ??
    closest(name, known) ??
    known.find((candidate) => containsWords(name, candidate) || containsWords(candidate, name))
  );
}

const letters = (text: string): string => text.toLowerCase().replace(/[^a-z]/g, '');

/** The shortest name that counts as a part of another one: `depth` in `maxDepth`, but not `url` in `curly`. */
const MIN_PART = 5;

/** Whether a part begins with a word of a name: `depth` in `maxDepth`, but not `onError` in `coercionErrors`. */
function containsWords(name: string, part: string): boolean {
  const wanted = letters(part);
  if (wanted.length < MIN_PART) return false;
  const words = name.split(/(?<=[a-z\d])(?=[A-Z])|[^A-Za-z\d]+/);
  return words.some((_, index) => letters(words.slice(index).join('')).startsWith(wanted));
}

/** Short names differ by one letter, so that `ttl` is not taken for `html`. Others keep their first letter. */
export function closest(name: string, known: readonly string[]): string | undefined {
  const ranked = known.map((candidate) => [distance(name, candidate), candidate] as const);
  ranked.sort((a, b) => a[0] - b[0]);
  const [edits, best] = ranked[0] ?? [Number.POSITIVE_INFINITY, ''];
  if (edits <= 1) return best;
  return edits === 2 && name.length > 4 && name[0] === best[0] ? best : undefined;
}

/** The number of letters that were inserted, deleted, replaced, or exchanged with the next one. */
function distance(a: string, b: string): number {
  let previous: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isExchanged = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const exchanged = isExchanged ? (previous[j - 2] as number) + 1 : replaced;
      next.push(Math.min(replaced, exchanged, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    previous = row;
    row = next;
  }
  return row[b.length] as number;
}
