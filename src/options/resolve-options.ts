import { didYouMean } from './did-you-mean.ts';
import { formatValue } from './format-value.ts';
import { isObject, isThenable, type Rules } from './rules.ts';

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
 * values throw. `replacements` describes replacements for options of other servers, by name.
 *
 * @throws TypeError (code `ERR_OPTION`) that names the option, the value and the accepted values.
 */
export function resolveOptions<Resolved>(
  scope: OptionScope,
  given: unknown,
  rules: Rules<Resolved>,
  replacements: Readonly<Record<string, string>> = {},
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
    if (!Object.hasOwn(rules, name)) throw unknownOption(scope, name, known, replacements);
  }
  const resolved: Partial<Resolved> = {};
  for (const name of known) {
    const { fallback, accepts, accepted } = rules[name];
    const value = options[name];
    if (value !== undefined && !accepts(value)) throw wrongOption(scope, name, value, accepted);
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

/** Creates the TypeError for an option with a wrong value. */
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

/** Creates the TypeError for an argument with a wrong type. */
export function wrongArgument(scope: OptionScope, name: string, value: unknown, accepted: string): TypeError {
  return optionError(scope, `argument "${name}" is ${formatValue(value)}; accepted: ${accepted}`);
}

/** Creates a TypeError with any message and a link to the page. */
export function optionError({ name, page }: OptionScope, message: string): TypeError {
  const error = new TypeError(`${name}: ${message} (see ${DOCS}/${page}.md)`);
  return Object.assign(error, { code: 'ERR_OPTION' });
}

/**
 * Creates the TypeError for an unknown option: with its replacement, the closest name, or the known names.
 */
export function unknownOption(
  scope: OptionScope,
  name: string,
  known: readonly string[],
  replacements: Readonly<Record<string, string>>,
): TypeError {
  const instead = Object.hasOwn(replacements, name) ? replacements[name] : undefined;
  const meant = didYouMean(name, known);
  const hint =
    instead ??
    (meant === undefined ? `accepted: ${known.join(', ')}` : `did you mean ${quoted(scope, meant)}?`);
  return optionError(scope, `unknown option ${quoted(scope, name)}; ${hint}`);
}

function quoted({ within }: OptionScope, name: string): string {
  return within === undefined ? `"${name}"` : `"${within}.${name}"`;
}
