import type { PagePolicyOptions, PagesOptions } from '../../types/static.ts';
import {
  flag,
  isEither,
  type OptionScope,
  optionError,
  type Rules,
  resolveOptions,
  rule,
  type WithDefaults,
} from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { isBoolean, isFunction, isObject, isString } from '../options/values.ts';
import { isHeader } from '../static/cache-control.ts';
import { needsScriptHashes } from './policy.ts';

/** The option `pages` after checks. */
export interface PageSettings {
  readonly config: (() => unknown) | undefined;
  readonly csp: PolicySettings | undefined;
  readonly integrity: boolean;
}

/** The option `pages.csp` after checks. */
type PolicySettings = Required<WithDefaults<Omit<PagePolicyOptions, 'reportTo'>>> & {
  readonly reportTo: string | undefined;
};
type ResolvedPages = Omit<PageSettings, 'csp'> & { readonly csp: boolean | string | PagePolicyOptions };

const OWN_FILES =
  "default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'; object-src 'none'";
const POLICY = /^[a-z-]+(?:[ \t][^;,\r\n]*)?(?:;\s*(?:[a-z-]+(?:[ \t][^;,\r\n]*)?)?)*$/i;
const ACCEPTED_POLICY = `a Content-Security-Policy such as "default-src 'self'"`;
const isPolicy = (value: unknown): boolean => isString(value) && POLICY.test(value) && isHeader(value);

const PAGE_RULES: Rules<ResolvedPages> = {
  config: rule<ResolvedPages['config']>(undefined, isFunction, 'a function that returns a JSON value'),
  csp: rule<ResolvedPages['csp']>(
    false,
    isEither(isBoolean, isPolicy, isObject),
    `a boolean, ${ACCEPTED_POLICY}, or an object`,
  ),
  integrity: flag(false),
};

const isReportUrl = (value: unknown): boolean =>
  isString(value) && /^(?:\/(?!\/)|https:\/\/)[^\s;,"\\]*$/.test(value);

const POLICY_RULES: Rules<PolicySettings> = {
  policy: rule(OWN_FILES, isPolicy, ACCEPTED_POLICY),
  reportOnly: flag(false),
  reportTo: rule<string | undefined>(
    undefined,
    isReportUrl,
    "a path such as '/csp-reports', or an https: URL",
  ),
  nonce: rule<PolicySettings['nonce']>(
    false,
    isEither(isBoolean, isFunction),
    'a boolean, or a function that returns the nonce of a response',
  ),
};

export const PAGES_SCOPE: OptionScope = { ...STATIC_OPTIONS, page: 'pages', within: 'pages' };

/** Checks the option `pages`; undefined if it adds nothing. */
export function resolvePagesOptions(given: PagesOptions): PageSettings | undefined {
  const { config, csp, integrity } = resolveOptions(PAGES_SCOPE, given, PAGE_RULES);
  const policy = resolvePolicy(csp);
  if (config === undefined && policy === undefined && !integrity) return undefined;
  if (policy !== undefined && needsScriptHashes(policy.policy) && policy.nonce === false && !integrity)
    throw optionError(
      PAGES_SCOPE,
      `option "pages.csp" has 'strict-dynamic', which needs the hash of each script; set "pages.integrity" or "pages.csp.nonce" to true`,
    );
  return { config, csp: policy, integrity };
}

function resolvePolicy(given: ResolvedPages['csp']): PolicySettings | undefined {
  if (given === false) return undefined;
  const options = given === true ? {} : isString(given) ? { policy: given } : given;
  const resolved = resolveOptions({ ...PAGES_SCOPE, within: 'pages.csp' }, options, POLICY_RULES);
  const { policy, reportTo } = resolved;
  if (reportTo === undefined) return resolved;
  // Firefox and Safari know one of both each.
  return { ...resolved, policy: `${policy.replace(/;\s*$/, '')}; report-uri ${reportTo}; report-to csp` };
}
