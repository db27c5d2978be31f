import type { GraphiQLOptions } from '../../types/graphiql.ts';
import {
  type Accepts,
  isEither,
  isOneOf,
  type Rule,
  type Rules,
  resolveOptions,
  rule,
} from '../options/rules.ts';
import { GRAPHIQL_OPTIONS } from '../options/scopes.ts';
import { isString } from '../options/values.ts';
import { jsonForScript } from './page.ts';

/** The checked options of the page. */
export interface GraphiQLSettings {
  /** The settings of the page's script: JSON, safe inside a script element. */
  config: string;
  /** Content-Security-Policy for a nonce. */
  policy(nonce: string): string;
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
};

/** Checks the page's options and adds defaults. */
export function resolveGraphiQLOptions(given: GraphiQLOptions): GraphiQLSettings {
  const config = resolveOptions(GRAPHIQL_OPTIONS, given, RULES);
  const origins = originsOf(config);
  return { config: jsonForScript(config), policy: (nonce) => policyFor(origins, nonce) };
}

interface CheckedOptions {
  defaultQuery: string | undefined;
  endpoint: string | undefined;
  subscriptionEndpoint: string | false | undefined;
}

/** The origins of endpoints on other hosts, over HTTP and WebSocket, to which the page connects. */
function originsOf({ endpoint, subscriptionEndpoint = endpoint }: CheckedOptions): readonly string[] {
  const requests = endpoint === undefined ? [] : originOf(endpoint);
  const sockets = typeof subscriptionEndpoint === 'string' ? originOf(subscriptionEndpoint) : [];
  return [...new Set([...requests, ...sockets.map((origin) => origin.replace(/^http/, 'ws'))])];
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

/**
 * The Content-Security-Policy (CSP 3 §2.2) of a response with a nonce. Monaco sets style attributes through HTML strings, which
 * no nonce covers, and draws underlines from data: images.
 */
const policyFor = (connect: readonly string[], nonce: string): string =>
  [
    "default-src 'none'; script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'; style-src-attr 'unsafe-inline'`,
    `worker-src 'self'; connect-src ${["'self'", ...connect].join(' ')}`,
    "font-src 'self'; img-src 'self' data:",
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  ].join('; ');
