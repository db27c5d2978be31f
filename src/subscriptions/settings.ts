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
  type Accepts,
  count,
  flag,
  isEither,
  isFunction,
  isListOf,
  isOneOf,
  isString,
  oneOf,
  optionalFunction,
  positive,
  type Rule,
  type Rules,
  rule,
  unchecked,
} from '../options/rules.ts';

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

const PROTOCOLS = ['graphql-transport-ws', 'graphql-ws'] as const;
const KINDS = ['query', 'mutation', 'subscription'] as const;
const MIB = 1024 * 1024;

/** As it stands in a request line, which has no other characters; patterns of Express would never match. */
const isPath: Accepts = (value) => isString(value) && /^\/(?!.*\/:|:)[\w\-.~%!$&'()+,;=:@/]*$/.test(value);

/** Rule of `subscriptionProtocols`, which `graphqlHTTP` has too. */
export const protocolsRule: Rule<readonly SubscriptionProtocol[]> = rule<readonly SubscriptionProtocol[]>(
  PROTOCOLS,
  isListOf(isOneOf(...PROTOCOLS)),
  "a list of 'graphql-transport-ws' and 'graphql-ws'",
);

export const connectionRules: Rules<ConnectionSettings> = {
  context: unchecked,
  subscriptionProtocols: protocolsRule,
  onConnect: optionalFunction(),
  operations: rule<readonly string[]>(
    KINDS,
    isListOf(isOneOf(...KINDS)),
    "a list of 'query', 'mutation' and 'subscription'",
  ),
  connectionInitWaitTimeout: positive(10_000, 'milliseconds'),
  keepAlive: count(12_000, 'milliseconds'),
  maxOperations: positive(100),
  maxBufferedBytes: positive(MIB, 'bytes'),
  drop: oneOf(false, 'oldest'),
  maxIdLength: positive(256),
  share: optionalFunction(),
};

export const upgradeRules: Rules<UpgradeSettings> = {
  path: rule('/graphql', isPath, "a path such as '/graphql'"),
  middleware: rule<readonly Middleware[]>([], isListOf(isFunction), 'a list of middlewares'),
  allowedOrigins: rule<UpgradeSettings['allowedOrigins']>(
    [],
    isEither(isOneOf('*'), isListOf(isString), isFunction),
    "a list of origins, '*', or a function of the origin and the request",
  ),
  maxPayload: positive(MIB, 'bytes'),
  maxConnections: positive(100_000),
  perMessageDeflate: flag(false),
};

/** The state of an open WebSocket (RFC 6455, and every implementation's constants). */
export const isOpen = (websocket: WebSocketLike): boolean => websocket.readyState === 1;
