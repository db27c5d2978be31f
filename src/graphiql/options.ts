import type { GraphiQLOptions } from '../../types/graphiql.ts';
import {
  type Accepts,
  isEither,
  isOneOf,
  type Rule,
  type Rules,
  resolveOptions,
  rule,
  wrongOption,
} from '../options/rules.ts';
import { GRAPHIQL_OPTIONS } from '../options/scopes.ts';
import { isBoolean, isObject, isString } from '../options/values.ts';
import { jsonForScript } from './page.ts';

/** The checked options of the page. */
export interface GraphiQLSettings {
  /** The settings of the page's script: JSON, safe inside a script element. */
  config: string;
  /** Content-Security-Policy for a nonce; undefined if the application sets the header. */
  policy: ((nonce: string) => string) | undefined;
}

const optional = (accepts: Accepts, accepted: string): Rule<undefined> => rule(undefined, accepts, accepted);
/** The host becomes part of the policy, in which `;` and `,` would end a directive. URLs allow both in a host. */
const isUrl: Accepts = (value) => {
  if (!isString(value) || !URL.canParse(value, 'http://localhost/')) return false;
  const { protocol, host } = new URL(value, 'http://localhost/');
  return /^(?:http|ws)s?:$/.test(protocol) && /^[\w.[\]:-]+$/.test(host);
};

const RULES: Rules<CheckedOptions> = {
  defaultQuery: optional(isString, 'a string'),
  endpoint: optional(isUrl, 'a URL, absolute or relative to the page'),
  subscriptionEndpoint: optional(
    isEither(isUrl, isOneOf(false)),
    'a URL, absolute or relative to the page, or false',
  ),
  csp: rule<CheckedOptions['csp']>(
    true,
    isEither(isBoolean, isObject),
    'a boolean, or extra sources by directive',
  ),
};

/** Checks the page's options and adds defaults. */
export function resolveGraphiQLOptions(given: GraphiQLOptions): GraphiQLSettings {
  const { csp, ...config } = resolveOptions(GRAPHIQL_OPTIONS, given, RULES);
  const extra = typeof csp === 'object' ? csp : {};
  checkSources(extra);
  return {
    config: jsonForScript(config),
    policy: csp === false ? undefined : strictPolicy(withEndpoints(extra, config)),
  };
}

interface CheckedOptions {
  defaultQuery: string | undefined;
  endpoint: string | undefined;
  subscriptionEndpoint: string | false | undefined;
  csp: boolean | ExtraSources;
}

/** Allows the page to connect to endpoints on other origins, over HTTP and WebSocket. */
function withEndpoints(
  extra: ExtraSources,
  { endpoint, subscriptionEndpoint = endpoint }: Partial<CheckedOptions>,
): ExtraSources {
  const origins: string[] = [];
  if (endpoint !== undefined) origins.push(...originOf(endpoint));
  if (typeof subscriptionEndpoint === 'string') {
    origins.push(...originOf(subscriptionEndpoint).map((origin) => origin.replace(/^http/, 'ws')));
  }
  if (origins.length === 0) return extra;
  return { ...extra, 'connect-src': [...[extra['connect-src'] ?? []].flat(), ...origins] };
}

/**
 * Returns the policy source for a URL: none for a path; a host without scheme for `//host/path`, which uses
 * the page's scheme.
 */
function originOf(url: string): string[] {
  const { protocol, host } = new URL(url, 'relative://page');
  if (protocol === 'relative:') return host === 'page' ? [] : [host];
  return [`${protocol}//${host}`];
}

/** Extra sources by directive, from the option `csp`. */
type ExtraSources = Readonly<Record<string, string | readonly string[]>>;

// Monaco sets style attributes through HTML strings, which no nonce covers, and draws underlines from data:
// images.
const STRICT: Readonly<Record<string, readonly string[]>> = {
  'default-src': ["'none'"],
  'script-src': ["'self'"],
  'style-src': ["'self'", "'nonce-'"],
  'style-src-attr': ["'unsafe-inline'"],
  'worker-src': ["'self'"],
  'connect-src': ["'self'"],
  'font-src': ["'self'"],
  'img-src': ["'self'", 'data:'],
  'base-uri': ["'none'"],
  'form-action': ["'none'"],
  'frame-ancestors': ["'none'"],
};

/** The strict policy with extra sources (CSP 3 §2.2), as a function of the response's nonce. */
function strictPolicy(extra: ExtraSources): (nonce: string) => string {
  const directives = new Map(Object.entries(STRICT));
  for (const [name, sources] of Object.entries(extra)) {
    const known = directives.get(name)?.filter((source) => source !== "'none'") ?? [];
    const merged = [...new Set([...known, ...[sources].flat()])];
    directives.set(name, merged.length === 0 ? ["'none'"] : merged);
  }
  const text = Array.from(directives, ([name, sources]) => `${name} ${sources.join(' ')}`).join('; ');
  const [before, after] = text.split("'nonce-'") as [string, string];
  return (nonce) => `${before}'nonce-${nonce}'${after}`;
}

/** Rejects values that could end a directive and begin another, or are not valid in a header. */
function checkSources(extra: ExtraSources): void {
  for (const [name, sources] of Object.entries(extra)) {
    const values: readonly unknown[] = [sources].flat();
    if (/^[a-z-]+$/.test(name) && values.every(isSource)) continue;
    const accepted = 'directives as in the header, each with one source or a list of sources';
    throw wrongOption(GRAPHIQL_OPTIONS, 'csp', { [name]: sources }, accepted);
  }
}

function isSource(value: unknown): boolean {
  return typeof value === 'string' && /^[!-+\--:<-~]+$/.test(value);
}
