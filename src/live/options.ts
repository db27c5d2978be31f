import type { Middleware } from '../../types/connect.ts';
import { protocolsRule } from '../core/options.ts';
import {
  type Accepts,
  bytes,
  delay,
  flag,
  isEither,
  isFunction,
  isListOf,
  isOneOf,
  isOrigin,
  isString,
  notPromise,
  type OptionScope,
  oneOf,
  optionalFunction,
  positive,
  type Rules,
  resolveOptions,
  rule,
} from '../options/rules.ts';
import type { ConnectionSettings } from './connection.ts';
import { LIVE_DEFAULTS, OPERATION_KINDS } from './endpoint.ts';
import type { AllowedOrigins, UpgradeSettings } from './upgrade.ts';

const MIB = 1024 * 1024;

/**
 * A path as it is in a request line, which has no other characters. Patterns of Express would never match.
 */
const isPath: Accepts = (value) => isString(value) && /^\/(?!.*\/:|:)[\w\-.~%!$&'()+,;=:@/]*$/.test(value);

/** The options of a connection, however it was opened. */
export const connectionRules: Rules<ConnectionSettings> = {
  context: notPromise('a value, or a function of the WebSocket, which may be async'),
  contextPer: oneOf('operation', 'event', 'connection'),
  subscriptionProtocols: protocolsRule,
  onConnect: optionalFunction(),
  onDisconnect: optionalFunction(),
  onClose: optionalFunction(),
  onOperation: optionalFunction(),
  operations: rule<readonly string[]>(
    OPERATION_KINDS,
    isListOf(isOneOf(...OPERATION_KINDS)),
    "a list of 'query', 'mutation' and 'subscription'",
  ),
  connectionInitWaitTimeout: delay(10_000),
  keepAlive: delay(12_000, 0),
  maxOperations: positive(LIVE_DEFAULTS.maxOperations),
  maxOperationBytes: bytes(LIVE_DEFAULTS.maxOperationBytes),
  maxBufferedBytes: bytes(LIVE_DEFAULTS.maxBufferedBytes),
  drop: oneOf(false, 'oldest'),
  maxIdLength: positive(LIVE_DEFAULTS.maxIdLength),
  share: optionalFunction(),
};

/** The options of the upgrade. */
export const upgradeRules: Rules<
  Omit<UpgradeSettings, 'allowedOrigins'> & { readonly allowedOrigins: AllowedOrigins | undefined }
> = {
  path: rule('/graphql', isPath, "a path such as '/graphql'"),
  middleware: rule<readonly Middleware[]>([], isListOf(isFunction), 'a list of middleware functions'),
  allowedOrigins: rule<AllowedOrigins | undefined>(
    undefined,
    isEither(isOneOf('*'), isListOf(isOrigin), isFunction),
    "a list of origins such as 'https://app.example.com' without a path or a trailing slash, '*', or a function of the origin and the request",
  ),
  maxPayload: bytes(MIB),
  maxConnections: positive(LIVE_DEFAULTS.maxConnections),
  perMessageDeflate: flag(false),
};

const HANDLER = 'it is an option of graphqlHTTP; pass the handler as the second argument';
const ORIGINS = 'use allowedOrigins, and middleware for other checks of the upgrade request';

/** Replacements for options of graphql-ws, subscriptions-transport-ws and ws, for error messages. */
export const REPLACED_OPTIONS: Readonly<Record<string, string>> = {
  schema: 'pass the handler or the schema as the second argument: attachSubscriptions(server, handler)',
  server: 'pass the server as the first argument: attachSubscriptions(server, handler)',
  roots: 'use rootValue of graphqlHTTP, and pass the handler as the second argument',
  rootValue: HANDLER,
  formatError: HANDLER,
  introspection: HANDLER,
  limits: HANDLER,
  validationRules: HANDLER,
  execute: 'use engine of graphqlHTTP, and pass the handler as the second argument',
  subscribe: 'use engine of graphqlHTTP, and pass the handler as the second argument',
  onSubscribe: 'use onOperation',
  onNext: 'use formatError of graphqlHTTP, or onOperation to add extensions',
  onComplete: 'use the channel espalier:graphql:stream-end of node:diagnostics_channel',
  pingInterval: 'use keepAlive, in milliseconds',
  verifyClient: ORIGINS,
  cors: ORIGINS,
};

/** The options of event streams after checks, with defaults filled in. */
export interface EventStreamSettings {
  /** Milliseconds between messages that keep a stream open; 0: none. */
  readonly ping: number;
}

const eventStreamRules: Rules<EventStreamSettings> = {
  ping: delay(12_000, 0),
};

/** Checks the option `eventStreams` and fills in the defaults; undefined if event streams are off. */
export function resolveEventStreams(scope: OptionScope, given: unknown): EventStreamSettings | undefined {
  if (given === false) return undefined;
  return resolveOptions({ ...scope, within: 'eventStreams' }, given, eventStreamRules);
}
