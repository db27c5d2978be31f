import type { GraphQLError, GraphQLFormattedError, ValidationRule } from 'graphql';
import type { CallerDetails } from '../../types/caller.ts';
import type { DocumentLimits, ExecuteFunction, FormatErrorDetails } from '../../types/graphql.ts';
import type { SubscriptionProtocol } from '../../types/subscriptions.ts';
import type { OnError } from '../diagnostics/logging.ts';
import { timeoutRule } from '../execution/deadline.ts';
import type { IncrementalFormat, OnOperation, OnResult } from '../execution/types.ts';
import type { CursorSettings } from '../live/cursors.ts';
import {
  type Accepts,
  group,
  isEither,
  isListOf,
  isOneOf,
  isOrigin,
  notPromise,
  type OptionScope,
  oneOrMore,
  optionalFunction,
  type Rule,
  type Rules,
  resolveOptions,
  rule,
  type WithDefaults,
} from '../options/rules.ts';
import { isBoolean, isFunction, isPositive, isString } from '../options/values.ts';
import { DEFAULT_ENGINE } from './default-engine.ts';

/** The errors after which validation and coercion stop; all errors of resolvers are reported. */
export const MAX_ERRORS = 10;

/** Values in the variables of a request. One with a larger body may have as many for each MiB. */
export const MAX_VARIABLES = 20_000;

export type DocumentLimitSettings = Readonly<WithDefaults<DocumentLimits>>;

/** The settings that HTTP and sockets share. */
export interface CoreSettings {
  readonly context: unknown;
  readonly caller: ((source: unknown, details: CallerDetails) => unknown) | undefined;
  readonly rootValue: unknown;
  readonly fieldResolver: unknown;
  readonly typeResolver: unknown;
  readonly validationRules: readonly ValidationRule[];
  readonly formatError:
    | ((
        formatted: GraphQLFormattedError,
        error: GraphQLError,
        details: FormatErrorDetails,
      ) => GraphQLFormattedError)
    | undefined;
  readonly onError: OnError;
  /** Origins whose pages count as same-site. */
  readonly allowedOrigins: readonly string[];
  /** The allowed hosts; undefined allows every host. */
  readonly allowedHosts: readonly string[] | undefined;
  readonly onOperation: OnOperation | undefined;
  readonly subscriptionProtocols: readonly SubscriptionProtocol[];
  readonly onResult: OnResult | undefined;
  /** The option `cursors`; undefined if it is not set. */
  readonly cursorSettings?: CursorSettings | undefined;
  readonly cursors: unknown;
  readonly auth: unknown;
  readonly cost: unknown;
  readonly budget: unknown;
  readonly introspection: boolean | ((source: unknown) => boolean);
  readonly engine: 'compiled' | 'graphql-js' | ExecuteFunction;
  /** Milliseconds that an operation may take; `Infinity` if they are not limited. */
  readonly timeout: number;
  readonly incremental: boolean | IncrementalFormat | undefined;
  /** The option `documents`, whose members `resolveDocuments` checks. */
  readonly documents: unknown;
  readonly limits: DocumentLimitSettings;
  /** Values in the variables of one request, lists and objects counted by their members. */
  readonly maxVariables: number;
}

/** A value of the header `Host`: a name or an address, and a port (RFC 9110 §7.2). */
const isHost: Accepts = (value) => isString(value) && /^[^\s/*@]+$/.test(value);

const isLimit = isEither(isPositive, isOneOf(Number.POSITIVE_INFINITY));

const PROTOCOLS = ['graphql-transport-ws', 'graphql-ws'] as const;

const limit = (fallback: number): Rule<number> =>
  rule(fallback, isLimit, 'a whole number from 1, or Infinity for no limit');

/** The rules of the limits that HTTP and sockets share. */
const documentLimitRules: Rules<DocumentLimitSettings> = {
  tokens: limit(5000),
  depth: limit(50),
  fields: limit(10_000),
  rootFields: limit(100),
  aliases: limit(1000),
};

/** The rules of the options that HTTP and sockets share, except `limits`. */
const coreRules: Rules<Omit<CoreSettings, 'limits' | 'maxVariables' | 'cursorSettings'>> = {
  context: notPromise('a value, or a function of the request, which may be async'),
  caller: optionalFunction(),
  rootValue: notPromise('a value that is not a promise, or a synchronous function of the request'),
  fieldResolver: optionalFunction(),
  typeResolver: optionalFunction(),
  validationRules: rule<readonly ValidationRule[]>([], isListOf(isFunction), 'a list of validation rules'),
  formatError: optionalFunction(),
  onError: rule<OnError>(
    undefined,
    isEither(isOneOf(false), isFunction),
    'a function, or false for no reports',
  ),
  allowedOrigins: rule<readonly string[]>(
    [],
    isListOf(isOrigin),
    "a list of origins such as 'https://app.example.com', without a path or a trailing slash",
  ),
  allowedHosts: rule<readonly string[] | undefined>(
    undefined,
    oneOrMore(isHost),
    "a list of hosts such as 'api.example.com' or 'localhost:3000', without a scheme, a path or wildcards",
  ),
  onOperation: optionalFunction(),
  subscriptionProtocols: rule<readonly SubscriptionProtocol[]>(
    PROTOCOLS,
    isListOf(isOneOf(...PROTOCOLS)),
    "a list of 'graphql-transport-ws' and 'graphql-ws'",
  ),
  onResult: optionalFunction(),
  cursors: group('an object with a key'),
  auth: group(
    'true with the option "caller", an object such as { scopes: (req) => req.auth?.scopes ?? null }, or false if a router in front enforces the directives',
    isBoolean,
  ),
  cost: group('a boolean, or an object such as { maxCost: 500 }', isBoolean),
  budget: group('an object such as { limit: 5000, window: 60_000 }'),
  introspection: rule<CoreSettings['introspection']>(
    true,
    isEither(isBoolean, isFunction),
    'a boolean, or a function of the request',
  ),
  engine: rule<CoreSettings['engine']>(
    DEFAULT_ENGINE,
    isEither(isOneOf('compiled', 'graphql-js'), isFunction),
    "'compiled', 'graphql-js', or a function that takes execute's arguments",
  ),
  incremental: rule<CoreSettings['incremental']>(
    undefined,
    isEither(isBoolean, isOneOf('v0.2', '20220824')),
    "a boolean, 'v0.2' or '20220824'",
  ),
  timeout: timeoutRule,
  documents: group("an object such as { from: 'persisted-documents.json' }"),
};

/** Resolves a user's options: the shared options and the options of one transport. */
export function resolveCoreOptions<Own, OwnLimits>(
  scope: OptionScope,
  given: unknown,
  own: { rules: Rules<Own>; limits: Rules<OwnLimits> },
): CoreSettings & Own & { readonly limits: DocumentLimitSettings & OwnLimits } {
  const limits = group('an object of limits');
  const allRules = { ...coreRules, ...own.rules, limits } as Rules<CoreSettings & Own>;
  const resolved = resolveOptions(scope, given, allRules);
  const limitRules = { ...documentLimitRules, ...own.limits } as Rules<DocumentLimitSettings & OwnLimits>;
  return {
    ...resolved,
    maxVariables: MAX_VARIABLES,
    limits: resolveOptions({ ...scope, within: 'limits' }, resolved.limits, limitRules),
  };
}
