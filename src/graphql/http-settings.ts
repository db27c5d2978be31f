import type { GraphiQLOption } from '../../types/graphiql.ts';
import { isBoolean, isFunction, isListOf, isObject, isOneOf, type Rules, rule } from '../options/settle.ts';
import { type CoreSettings, type DocumentLimitSettings, limit, settleCore } from './settings.ts';

/** The methods `graphqlHTTP` can be mounted for. */
export type MethodName = 'GET' | 'POST' | 'HEAD';

interface OwnLimits {
  readonly bodyBytes: number;
  readonly bodyTimeout: number;
  readonly batch: number;
}

interface OwnSettings {
  readonly graphiql: GraphiQLOption;
  readonly methods: readonly MethodName[];
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

const rules: Rules<OwnSettings> = {
  graphiql: rule<GraphiQLOption>(
    true,
    (value) => isBoolean(value) || isObject(value) || isFunction(value),
    'a boolean, options, or a function of the request',
  ),
  methods: rule<readonly MethodName[]>(
    ['GET', 'POST', 'HEAD'],
    (value) => isListOf(isMethod)(value) && (value as []).length > 0,
    'a list of Method.GET, Method.POST and Method.HEAD',
  ),
};

/** Settles the options of `graphqlHTTP`. */
export function settleHttp(given: unknown): HttpSettings {
  return settleCore('graphqlHTTP', 'graphql', given, { rules, limits });
}
