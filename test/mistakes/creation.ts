import type http from 'node:http';
import type express from 'express';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createPubSub } from '../../middleware/pubsub.ts';
import { createServer } from '../../middleware/server.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { SubscriptionTarget } from '../../types/graphql.ts';
import type { SubscriptionOptions } from '../../types/subscriptions.ts';
import { thrown, untyped } from './mistake.ts';

// Calls of public functions with arguments of any type. Each returns the function that returns the thrown message.

type Schema = Parameters<typeof graphqlHTTP>[0];

export const apiOf = (value: unknown): (() => string) => thrown(() => graphqlHTTP(untyped<Schema>(value)));

export const socketsOn = (server: unknown, target: unknown, options?: unknown): (() => string) =>
  thrown(() =>
    attachSubscriptions(
      untyped<http.Server>(server),
      untyped<SubscriptionTarget>(target),
      untyped<SubscriptionOptions>(options),
    ),
  );

export const pubsub = (options: unknown): (() => string) =>
  thrown(() => createPubSub(untyped<object>(options)));

export const server = (app: unknown, options?: unknown): (() => string) =>
  thrown(() => createServer(untyped<express.Express>(app), untyped<object>(options)));
