import type { Middleware } from '../../types/connect.ts';
import type { SubscriptionLimits } from '../../types/subscriptions.ts';
import {
  type Accepts,
  bytes,
  delay,
  isEither,
  isListOf,
  isOneOf,
  isOrigin,
  notPromise,
  oneOf,
  optionalFunction,
  positive,
  type Rule,
  type Rules,
  resolveOptions,
  rule,
  type WithDefaults,
} from '../options/rules.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import { isFunction, isObject, isString } from '../options/values.ts';
import type { ConnectionSettings } from './connection.ts';
import { LIVE_DEFAULTS } from './endpoint.ts';
import type { AllowedOrigins, UpgradeSettings } from './upgrade.ts';

const MIB = 1024 * 1024;

/** A path as it is in a request line, which has no other characters. Patterns of Express would never match. */
const isRequestPath: Accepts = (value) =>
  isString(value) && /^\/(?!.*\/:|:)[\w\-.~%!$&'()+,;=:@/]*$/.test(value);

const isPing = delay(LIVE_DEFAULTS.ping);

/** Milliseconds between two pings; 0 if they are off. */
const pingRule: Rule<number> = {
  ...isPing,
  accepts: (value) => value === 0 || isPing.accepts(value),
  accepted: `${isPing.accepted}, or false for none`,
  read: (value) => (value === false ? 0 : value === 0 ? Number.NaN : isPing.read?.(value)),
};

/** The options of a connection, however it was opened. */
export const connectionRules: Rules<
  Omit<ConnectionSettings, 'limits'> & { readonly limits: object | undefined }
> = {
  context: notPromise('a value, or a function of the WebSocket, which may be async'),
  contextPer: oneOf('operation', 'event', 'connection'),
  onConnect: optionalFunction(),
  onClose: optionalFunction(),
  ping: pingRule,
  limits: rule<object | undefined>(undefined, isObject, 'an object of limits'),
  share: optionalFunction(),
};

export const upgradeRules: Rules<
  Omit<UpgradeSettings, 'allowedOrigins' | 'limits'> & { readonly allowedOrigins: AllowedOrigins | undefined }
> = {
  path: rule('/graphql', isRequestPath, "a path such as '/graphql'"),
  middleware: rule<readonly Middleware[]>([], isListOf(isFunction), 'a list of middleware functions'),
  allowedOrigins: rule<AllowedOrigins | undefined>(
    undefined,
    isEither(isOneOf('*'), isListOf(isOrigin), isFunction),
    "a list of origins such as 'https://app.example.com' without a path or a trailing slash, '*', or a function of the origin and the request",
  ),
  perMessageDeflate: oneOf(false, 'shared'),
};

const { limits: defaults } = LIVE_DEFAULTS;

const limitRules: Rules<WithDefaults<SubscriptionLimits>> = {
  operations: positive(defaults.operations),
  messageBytes: bytes(MIB),
  bufferedBytes: bytes(defaults.bufferedBytes),
  connections: positive(defaults.connections),
  initTimeout: delay(10_000),
};

/** Checks the option `limits` and fills in the defaults. */
export const resolveLimits = (given: unknown): WithDefaults<SubscriptionLimits> =>
  resolveOptions({ ...SUBSCRIPTION_OPTIONS, within: 'limits' }, given, limitRules);
