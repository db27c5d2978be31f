import { nearest } from './nearest.ts';
import { isObject, type Rules } from './rules.ts';
import { show } from './show.ts';

/** Whose options they are. */
export interface Owner {
  /** The public function. */
  readonly name: string;
  /** Its page in docs/. */
  readonly page: string;
  /** The option whose members they are. */
  readonly within?: string;
}

const DOCS = 'https://github.com/espalier-js/espalier/blob/main/docs';

/**
 * Settles a user's options once: defaults filled in, unknown names and wrong values refused. `undefined` means the default.
 *
 * @throws TypeError (code `ERR_OPTION`) that names the option, the value and what is accepted.
 */
export function settle<Settled>(owner: Owner, given: unknown, rules: Rules<Settled>): Settled {
  const options = given ?? {};
  if (given === null || !isObject(options)) throw wrongArgument(owner, 'options', given, 'an object');
  const known = Object.keys(rules) as (keyof Settled & string)[];
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(rules, name)) throw unknownOption(owner, name, known);
  }
  const settled: Partial<Settled> = {};
  for (const name of known) {
    const { fallback, accepts, accepted } = rules[name];
    const value = options[name];
    if (value !== undefined && !accepts(value)) throw wrongOption(owner, name, value, accepted);
    settled[name] = value === undefined ? fallback : (value as Settled[typeof name]);
  }
  return settled as Settled;
}

/** The TypeError for an option that has a wrong value. */
export function wrongOption(owner: Owner, name: string, value: unknown, accepted: string): TypeError {
  return optionError(owner, `option ${quoted(owner, name)} is ${show(value)}; accepted: ${accepted}`);
}

/** The TypeError for an option whose function answered with something else. */
export function wrongAnswer(owner: Owner, name: string, answer: unknown, accepted: string): TypeError {
  return optionError(owner, `option ${quoted(owner, name)} returned ${show(answer)}; accepted: ${accepted}`);
}

/** The TypeError for an argument that is wrong as a whole. */
export function wrongArgument(owner: Owner, name: string, value: unknown, accepted: string): TypeError {
  return optionError(owner, `argument "${name}" is ${show(value)}; accepted: ${accepted}`);
}

/** The TypeError for anything else, with a link to the page. */
export function optionError({ name, page }: Owner, message: string): TypeError {
  const error = new TypeError(`${name}: ${message} (see ${DOCS}/${page}.md)`);
  return Object.assign(error, { code: 'ERR_OPTION' });
}

function unknownOption(owner: Owner, name: string, known: readonly string[]): TypeError {
  const meant = nearest(name, known);
  const hint =
    meant === undefined ? `accepted: ${known.join(', ')}` : `did you mean ${quoted(owner, meant)}?`;
  return optionError(owner, `unknown option ${quoted(owner, name)}; ${hint}`);
}

function quoted({ within }: Owner, name: string): string {
  return within === undefined ? `"${name}"` : `"${within}.${name}"`;
}
