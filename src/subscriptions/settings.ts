import type { IncomingMessage } from 'node:http';
import type { MaybePromise, Middleware } from '../../types/connect.ts';
import type {
  ConnectAnswer,
  ConnectingSubscription,
  SharedOperation,
  SubscriptionProtocol,
  WebSocketLike,
} from '../../types/subscriptions.ts';
import {
  isBoolean,
  isCount,
  isFunction,
  isListOf,
  isOneOf,
  isString,
  type Rule,
  type Rules,
  rule,
} from '../options/settle.ts';

/** The settled options of a connection, however it was opened. */
export interface ConnectionSettings {
  readonly context: unknown;
  readonly subscriptionProtocols: readonly SubscriptionProtocol[];
  readonly onConnect: ((connection: ConnectingSubscription) => MaybePromise<ConnectAnswer>) | undefined;
  readonly operations: readonly string[];
  readonly connectionInitWaitTimeout: number;
  readonly keepAlive: number;
  readonly maxOperations: number;
  readonly maxBufferedBytes: number;
  readonly drop: false | 'oldest';
  readonly maxIdLength: number;
  readonly share: ((context: unknown, operation: SharedOperation) => unknown) | undefined;
}

/** The settled options of the upgrade. */
export interface UpgradeSettings {
  readonly path: string;
  readonly middleware: readonly Middleware[];
  readonly allowedOrigins: '*' | readonly string[] | ((origin: string, request: IncomingMessage) => boolean);
  readonly maxPayload: number;
  readonly maxConnections: number;
  readonly perMessageDeflate: boolean;
}

export const PROTOCOLS = ['graphql-transport-ws', 'graphql-ws'] as const;
const KINDS = ['query', 'mutation', 'subscription'] as const;
const MIB = 1024 * 1024;

const isPositive = (value: unknown): boolean => isCount(value) && value !== 0;
const positive = (fallback: number): Rule<number> => rule(fallback, isPositive, 'a positive integer');

/** Rule of `subscriptionProtocols`, which `graphqlHTTP` has too. */
export const protocolsRule: Rule<readonly SubscriptionProtocol[]> = rule<readonly SubscriptionProtocol[]>(
  PROTOCOLS,
  isListOf(isOneOf(...PROTOCOLS)),
  "a list of 'graphql-transport-ws' and 'graphql-ws'",
);

const optionalFunction = <T>(): Rule<T | undefined> =>
  rule<T | undefined>(undefined, isFunction, 'a function');

export const connectionRules: Rules<ConnectionSettings> = {
  context: rule<unknown>(undefined, () => true, 'anything'),
  subscriptionProtocols: protocolsRule,
  onConnect: optionalFunction(),
  operations: rule<readonly string[]>(
    KINDS,
    isListOf(isOneOf(...KINDS)),
    "a list of 'query', 'mutation' and 'subscription'",
  ),
  connectionInitWaitTimeout: positive(10_000),
  keepAlive: rule(12_000, isCount, 'milliseconds, or 0 for no pings'),
  maxOperations: positive(100),
  maxBufferedBytes: positive(MIB),
  drop: rule<false | 'oldest'>(false, isOneOf(false, 'oldest'), "false or 'oldest'"),
  maxIdLength: positive(256),
  share: optionalFunction(),
};

export const upgradeRules: Rules<UpgradeSettings> = {
  path: rule(
    '/graphql',
    (value) => isString(value) && /^\/[^?#]*$/.test(value as string),
    "a path such as '/graphql'",
  ),
  middleware: rule<readonly Middleware[]>([], isListOf(isFunction), 'a list of middlewares'),
  allowedOrigins: rule<UpgradeSettings['allowedOrigins']>(
    [],
    (value) => value === '*' || isListOf(isString)(value) || isFunction(value),
    "a list of origins, '*', or a function of the origin and the request",
  ),
  maxPayload: positive(MIB),
  maxConnections: positive(100_000),
  perMessageDeflate: rule(false, isBoolean, 'a boolean'),
};

/** The state of an open WebSocket (RFC 6455, and every implementation's constants). */
export const isOpen = (websocket: WebSocketLike): boolean => websocket.readyState === 1;
