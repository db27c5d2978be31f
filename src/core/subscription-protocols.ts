import type { SubscriptionProtocol } from '../../types/subscriptions.ts';
import { isListOf, isOneOf, type Rule, rule } from '../options/rules.ts';

const PROTOCOLS = ['graphql-transport-ws', 'graphql-ws'] as const;

/** The rule of `subscriptionProtocols`, an option of `graphqlHTTP` and of `attachSubscriptions`. */
export const protocolsRule: Rule<readonly SubscriptionProtocol[]> = rule<readonly SubscriptionProtocol[]>(
  PROTOCOLS,
  isListOf(isOneOf(...PROTOCOLS)),
  "a list of 'graphql-transport-ws' and 'graphql-ws'",
);
