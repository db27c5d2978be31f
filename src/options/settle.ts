/** One option: its default, whether a value will do, and what is accepted, in words. */
export interface Rule<T> {
  readonly fallback: T;
  readonly accepts: (value: unknown) => boolean;
  readonly accepted: string;
}

/** The rules of a set of options, by name. */
export type Rules<Settled> = { readonly [K in keyof Settled]-?: Rule<Settled[K]> };

/** A set of options with every default filled in. */
export type Filled<Options> = { [K in keyof Options]-?: Exclude<Options[K], undefined> };

const DOCS = 'https://github.com/espalier-js/espalier/blob/main/docs';

/** Describes one option. */
export function rule<T>(fallback: T, accepts: (value: unknown) => boolean, accepted: string): Rule<T> {
  return { fallback, accepts, accepted };
}

export const isBoolean = (value: unknown): boolean => typeof value === 'boolean';
export const isFunction = (value: unknown): boolean => typeof value === 'function';
export const isString = (value: unknown): boolean => typeof value === 'string';
export const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
export const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
/** A list whose items all pass. */
export const isListOf =
  (item: (value: unknown) => boolean): ((value: unknown) => boolean) =>
  (value) =>
    Array.isArray(value) && value.every(item);
/** One of a few values. */
export const isOneOf =
  (...values: readonly unknown[]): ((value: unknown) => boolean) =>
  (value) =>
    values.includes(value);

/**
 * Settles a user's options once: defaults filled in, unknown names and wrong values refused.
 * `undefined` means the default. `owner` is the public function's name, `page` its page in docs/.
 *
 * @throws TypeError (code `ERR_OPTION`) that names the option, the value and what is accepted.
 */
export function settle<Settled>(owner: string, page: string, given: unknown, rules: Rules<Settled>): Settled {
  if (given !== undefined && !isObject(given)) {
    throw optionError(`${owner}: the options must be an object, not ${show(given)}`, page);
  }
  const options = (given ?? {}) as Record<string, unknown>;
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(rules, name)) throw optionError(unknownOption(owner, name, Object.keys(rules)), page);
  }
  const settled: Partial<Settled> = {};
  for (const name of Object.keys(rules) as (keyof Settled & string)[]) {
    const { fallback, accepts, accepted } = rules[name];
    const value = options[name];
    if (value !== undefined && !accepts(value)) {
      throw optionError(`${owner}: option "${name}" is ${show(value)}; accepted: ${accepted}`, page);
    }
    settled[name] = value === undefined ? fallback : (value as Settled[typeof name]);
  }
  return settled as Settled;
}

/** The TypeError for an option, with a link to its page. */
export function optionError(message: string, page: string): TypeError {
  return Object.assign(new TypeError(`${message} (see ${DOCS}/${page}.md)`), { code: 'ERR_OPTION' });
}

function unknownOption(owner: string, name: string, known: readonly string[]): string {
  const letters = (text: string): string => text.toLowerCase().replace(/[^a-z]/g, '');
  const near = known.find((candidate) => letters(candidate) === letters(name)) ?? closest(name, known);
  const hint = near === undefined ? `accepted: ${known.join(', ')}` : `did you mean "${near}"?`;
  return `${owner}: unknown option "${name}"; ${hint}`;
}

function closest(name: string, known: readonly string[]): string | undefined {
  const ranked = known.map((candidate) => [distance(name, candidate), candidate] as const);
  ranked.sort((a, b) => a[0] - b[0]);
  const best = ranked[0];
  return best !== undefined && best[0] <= 2 ? best[1] : undefined;
}

/** Levenshtein distance, one row at a time. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}

/** A value as it may stand in a message: short, one line. */
export function show(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'symbol' || typeof value === 'bigint' || value === undefined) return String(value);
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    text = undefined;
  }
  text ??= Object.prototype.toString.call(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
