import express from 'express';
import { buildSchema, GraphQLError, type GraphQLSchema } from 'graphql';
import { graphqlHTTP } from '../../../middleware/graphql.ts';
import {
  createPubSub,
  filter,
  map,
  merge,
  type PubSub,
  type PubSubOptions,
} from '../../../middleware/pubsub.ts';
import { attachSubscriptions } from '../../../middleware/subscriptions.ts';
import type { CursorOptions, GraphQLOptions } from '../../../types/graphql.ts';
import type { SubscriptionOptions, Subscriptions } from '../../../types/subscriptions.ts';
import { atEnd, listen } from '../../kit.ts';
import { until } from '../../until.ts';
import { NOTHING } from '../serve.ts';

export const KEY = 'a secret of the tests that is long enough';

interface Events {
  tick: { readonly n: number };
  tock: { readonly n: number };
}

export interface Served {
  readonly url: string;
  readonly socketUrl: string;
  readonly events: PubSub<Events>;
  readonly subscriptions: Subscriptions;
  /** The users for whom resolvers have run, one entry per event. */
  readonly executions: unknown[];
  /** The number of calls of `subscribe` resolvers. */
  readonly opened: () => number;
  close(): Promise<void>;
}

interface ServeOptions {
  readonly cursors?: CursorOptions | undefined;
  readonly pubsub?: PubSubOptions;
  readonly graphql?: GraphQLOptions;
  readonly attach?: SubscriptionOptions;
  /** Events of another server, such as the one that was closed before. */
  readonly events?: PubSub<Events>;
}

/**
 * Starts a server whose subscriptions have a history. The header or connection parameter `user` is the user. At the end no
 * connection, operation or source may be left.
 */
export async function serve({
  cursors,
  pubsub,
  graphql,
  attach,
  events: given,
}: ServeOptions = {}): Promise<Served> {
  const events = given ?? createPubSub<Events>({ history: {}, ...pubsub });
  const executions: unknown[] = [];
  let opened = 0;
  const schema = createSchema(events, executions, () => opened++);
  const handler = graphqlHTTP(schema, {
    graphiql: false,
    onError: false,
    cursors: cursors ?? { key: KEY },
    caller: ({ headers }, { connectionParams }) => {
      const user = connectionParams?.['user'] ?? headers['user'];
      return user === undefined ? null : { id: String(user) };
    },
    context: (_source, { caller }) => ({ user: caller?.id }),
    ...graphql,
  });
  const { server, url, socketUrl, close } = await listen(express().use('/graphql', handler), '/graphql');
  const subscriptions = attachSubscriptions(server, handler, attach);
  atEnd(async () => {
    await subscriptions.close();
    await close();
    await events.close();
    // A generator ends with its topic.
    await until(() => subscriptions.stats().unreleased === 0);
    expect(subscriptions.stats()).toEqual(NOTHING);
  });
  return {
    url,
    socketUrl,
    events,
    subscriptions,
    executions,
    opened: () => opened,
    async close() {
      await subscriptions.close();
      await close();
    },
  };
}

function createSchema(events: PubSub<Events>, executions: unknown[], onOpen: () => void): GraphQLSchema {
  const schema = buildSchema(`
    type Query { one: Int }
    type Subscription {
      tick(even: Boolean, of: Int): Int
      both: Int
      generated: Int
      late: Int
      refused: Int
    }
  `);
  const fields = schema.getSubscriptionType()?.getFields() ?? {};
  const sources: Record<string, (args: { even?: boolean; of?: number }) => unknown> = {
    tick: ({ even }) =>
      even === true ? filter(events.subscribe('tick'), ({ n }) => n % 2 === 0) : events.subscribe('tick'),
    both: () =>
      merge(
        events.subscribe('tick'),
        map(events.subscribe('tock'), ({ n }) => ({ n: -n })),
      ),
    async *generated() {
      for await (const event of events.subscribe('tick')) yield event;
    },
    refused: () => {
      throw new GraphQLError('not for you');
    },
    late: async () => {
      await new Promise(setImmediate);
      return events.subscribe('tick');
    },
  };
  for (const [name, open] of Object.entries(sources)) {
    const field = fields[name];
    if (field === undefined) throw new Error(`no field ${name}`);
    field.subscribe = (_source, args) => {
      onOpen();
      return open(args);
    };
    field.resolve = ({ n }, _args, { user }) => {
      executions.push(user);
      return n;
    };
  }
  return schema;
}

/** Publishes the numbers from the first to the one before the last argument. */
export async function publish({ events }: Served, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n++) await events.publish('tick', { n });
}
