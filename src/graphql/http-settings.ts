import type { GraphiQLOption } from '../../types/graphiql.ts';
import type { MethodName } from '../../types/graphql.ts';
import type { SubscriptionProtocol } from '../../types/subscriptions.ts';
import {
  isBoolean,
  isFunction,
  isListOf,
  isObject,
  isOneOf,
  isString,
  type Rules,
  rule,
} from '../options/settle.ts';
import { protocolsRule } from '../subscriptions/settings.ts';
import { type CoreSettings, type DocumentLimitSettings, limit, settleCore } from './settings.ts';

interface OwnLimits {
  readonly bodyBytes: number;
  readonly bodyTimeout: number;
  readonly batch: number;
}

interface OwnSettings {
  readonly methods: readonly MethodName[];
  readonly getMutations: 'guarded' | boolean;
  readonly trustedOrigins: readonly string[];
  readonly crossSiteReads: boolean;
  readonly allowedHosts: readonly string[] | undefined;
  readonly multipartUploadsEnabled: boolean;
  readonly uploads: unknown;
  readonly graphiql: GraphiQLOption;
  readonly subscriptionProtocols: readonly SubscriptionProtocol[];
  readonly batching: boolean;
  readonly statusCodes: 'legacy' | 'draft';
  readonly inflate: boolean;
  readonly pretty: boolean | ((req: unknown) => boolean);
  readonly serverTiming: boolean;
}

/** The settled options of `graphqlHTTP`. */
export type HttpSettings = Omit<CoreSettings, 'limits'> &
  OwnSettings & { readonly limits: DocumentLimitSettings & OwnLimits };

const limits: Rules<OwnLimits> = {
  bodyBytes: limit(1024 * 1024),
  bodyTimeout: limit(30_000),
  batch: limit(10),
};

const isMethod = isOneOf('GET', 'POST', 'HEAD');
const oneOrMore =
  (item: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    isListOf(item)(value) && (value as unknown[]).length > 0;
const isOrigin = (value: unknown): boolean =>
  typeof value === 'string' && URL.canParse(value) && new URL(value).origin === value;
const isSwitch = (value: unknown): boolean => isBoolean(value) || isFunction(value);

const rules: Rules<OwnSettings> = {
  methods: rule<readonly MethodName[]>(
    ['GET', 'POST', 'HEAD'],
    oneOrMore(isMethod),
    'a list of Method.GET, Method.POST and Method.HEAD',
  ),
  getMutations: rule<'guarded' | boolean>(
    'guarded',
    isOneOf('guarded', true, false),
    "'guarded', true or false",
  ),
  trustedOrigins: rule<readonly string[]>(
    [],
    isListOf(isOrigin),
    "a list of origins such as 'https://app.example.com'",
  ),
  crossSiteReads: rule(false, isBoolean, 'a boolean'),
  allowedHosts: rule<readonly string[] | undefined>(
    undefined,
    oneOrMore(isString),
    "a list of hosts such as 'api.example.com' or 'localhost:3000'",
  ),
  multipartUploadsEnabled: rule(true, isBoolean, 'a boolean'),
  uploads: rule<unknown>(undefined, isObject, 'an object of upload limits'),
  graphiql: rule<GraphiQLOption>(
    true,
    (value) => isSwitch(value) || isObject(value),
    'a boolean, an object of options, or a function of the request',
  ),
  subscriptionProtocols: protocolsRule,
  batching: rule(false, isBoolean, 'a boolean'),
  statusCodes: rule<'legacy' | 'draft'>('legacy', isOneOf('legacy', 'draft'), "'legacy' or 'draft'"),
  inflate: rule(false, isBoolean, 'a boolean'),
  pretty: rule<OwnSettings['pretty']>(false, isSwitch, 'a boolean, or a function of the request'),
  serverTiming: rule(false, isBoolean, 'a boolean'),
};

/** Settles the options of `graphqlHTTP`. */
export function settleHttp(given: unknown): HttpSettings {
  return settleCore('graphqlHTTP', 'graphql', given, { rules, limits });
}
