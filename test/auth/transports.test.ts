/** @tags graphql engine */
import http from 'node:http';
import express from 'express';
import { buildSchema, type GraphQLSchema } from 'graphql';
import { authTypeDefs } from '../../middleware/auth.ts';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createPubSub, type PubSub } from '../../middleware/pubsub.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { AuthOptions, AuthResolveInfo } from '../../types/auth.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import type { SubscriptionOptions, Subscriptions } from '../../types/subscriptions.ts';
import { listen } from '../kit.ts';
import { LEGACY, MODERN, ready } from '../live/client.ts';
import { TRANSPORTS } from '../live/cursors/transports.ts';
import { until } from '../until.ts';
import { codes } from './service.ts';

interface Events {
  tick: { readonly n: number };
}

/** The scopes of each token; a token that is missing is not valid. */
let tokens: Record<string, string[]> = {};
const auth: AuthOptions = {
  scopes: ({ headers }, { connectionParams }) =>
    tokens[String(connectionParams?.['user'] ?? headers['user'])] ?? null,
};

interface Served {
  readonly url: string;
  readonly socketUrl: string;
  readonly events: PubSub<Events>;
  readonly subscriptions: Subscriptions;
  readonly executions: { count: number };
}

const running: { close(): Promise<void> }[] = [];

async function serve(options: GraphQLOptions = {}, attach: SubscriptionOptions = {}): Promise<Served> {
  const events = createPubSub<Events>({ history: {} });
  const executions = { count: 0 };
  const handler = graphqlHTTP(createSchema(events, executions), {
    auth,
    graphiql: false,
    onError: false,
    ...options,
  });
  const server = http.createServer(express().use('/graphql', handler));
  const { port } = await listen(server);
  const subscriptions = attachSubscriptions(server, handler, attach);
  running.push({
    async close() {
      await subscriptions.close();
      server.close();
      server.closeAllConnections();
      await events.close();
    },
  });
  return {
    url: `http://127.0.0.1:${port}/graphql`,
    socketUrl: `ws://127.0.0.1:${port}/graphql`,
    events,
    subscriptions,
    executions,
  };
}

function createSchema(events: PubSub<Events>, executions: { count: number }): GraphQLSchema {
  const schema = buildSchema(`${authTypeDefs}
    type Query { open: String secret: String @requiresScopes(scopes: [["a"]]) }
    type Mutation { secret: String @requiresScopes(scopes: [["a"]]) }
    type Subscription {
      tick: Tick
      hidden: Tick @requiresScopes(scopes: [["a"]])
      asked(scope: String!): Boolean
    }
    type Tick { n: Int secret: String @requiresScopes(scopes: [["a"]]) }
  `);
  for (const type of [schema.getQueryType(), schema.getMutationType()]) {
    for (const field of Object.values(type?.getFields() ?? {}))
      field.resolve = () => field.name.toUpperCase();
  }
  for (const field of Object.values(schema.getSubscriptionType()?.getFields() ?? {})) {
    field.subscribe = () => events.subscribe('tick');
    field.resolve = ({ n }, { scope }, _context, info) => {
      executions.count++;
      return field.name === 'asked' ? (info as AuthResolveInfo).auth.has(scope) : { n, secret: 'SECRET' };
    };
  }
  return schema;
}

beforeEach(() => {
  tokens = { ann: ['a', 'x'], bob: ['b'], carl: ['a', 'y'] };
});
afterEach(() => Promise.all(running.splice(0).map((each) => each.close())));

describe.each(Object.entries(TRANSPORTS))('%s', (name, subscribe) => {
  const isSocket = name.includes('ws');

  it.each(['compiled', 'graphql-js'] as const)(
    'refuses a subscription before its source is opened (%s)',
    async (engine) => {
      const served = await serve({ engine });
      for (const query of ['subscription { hidden { n } }', 'subscription { tick { n secret } }']) {
        for (const [user, code] of [
          ['bob', 'FORBIDDEN'],
          ['nobody', 'UNAUTHENTICATED'],
        ] as const) {
          const client = await subscribe(served, { query }, user);
          expect(codes({ body: (await client.next()) as { errors?: [] } })).toEqual([code]);
          await client.close();
        }
      }
      expect(served.subscriptions.stats().sources).toBe(0);
      const client = await subscribe(served, { query: 'subscription { tick { n secret } }' }, 'ann');
      await until(() => served.subscriptions.stats().sources === 1);
      await served.events.publish('tick', { n: 1 });
      expect(await client.next()).toEqual({ data: { tick: { n: 1, secret: 'SECRET' } } });
      await client.close();
    },
  );

  it.each(['compiled', 'graphql-js'] as const)(
    'mode null: nested fields are null, and a root field is refused (%s)',
    async (engine) => {
      const served = await serve({ engine, auth: { ...auth, mode: 'null' } });
      const refused = await subscribe(served, { query: 'subscription { hidden { n } }' }, 'bob');
      expect(codes({ body: (await refused.next()) as { errors?: [] } })).toEqual(['FORBIDDEN']);
      await refused.close();
      const client = await subscribe(served, { query: 'subscription { tick { n secret } }' }, 'bob');
      await until(() => served.subscriptions.stats().sources === 1);
      await served.events.publish('tick', { n: 1 });
      const result = await client.next();
      expect(result.data).toEqual({ tick: { n: 1, secret: null } });
      expect(codes({ body: result as { errors?: [] } })).toEqual(['FORBIDDEN']);
      await client.close();
    },
  );

  it('shares a source among callers with the same relevant scopes only', async () => {
    const served = await serve({ auth: { ...auth, mode: 'null' } }, { share: () => 'all' });
    const query = 'subscription { tick { n secret } }';
    const clients = await Promise.all(
      ['ann', 'bob', 'carl'].map((user) => subscribe(served, { query }, user)),
    );
    await until(() => served.subscriptions.stats().operations === 3);
    expect(served.subscriptions.stats().groups).toBe(2);
    await until(() => served.subscriptions.stats().sources === 2);
    await served.events.publish('tick', { n: 1 });
    const secrets = await Promise.all(clients.map(async (client) => (await client.next()).data?.['tick']));
    expect(secrets).toEqual([
      { n: 1, secret: 'SECRET' },
      { n: 1, secret: null },
      { n: 1, secret: 'SECRET' },
    ]);
    expect(served.executions.count).toBe(2);
    for (const client of clients) await client.close();
  });

  it('info.auth answers no question about one of several clients', async () => {
    const served = await serve({}, { share: () => 'all' });
    const shared = await subscribe(served, { query: 'subscription { asked(scope: "a") }' }, 'ann');
    await until(() => served.subscriptions.stats().sources === 1);
    await served.events.publish('tick', { n: 1 });
    expect((await shared.next()).data).toEqual({ asked: null });
    await shared.close();
    const private_ = await serve();
    const client = await subscribe(private_, { query: 'subscription { asked(scope: "a") }' }, 'ann');
    await until(() => private_.subscriptions.stats().sources === 1);
    await private_.events.publish('tick', { n: 1 });
    expect((await client.next()).data).toEqual({ asked: true });
    await client.close();
  });

  it('refuses the cursor of a caller that has lost a scope', async () => {
    const cursors = { key: 'a secret of the tests that is long enough' };
    const caller = () => ({ id: 'same' });
    const served = await serve({ cursors, caller, auth: { ...auth, mode: 'null' } });
    const query = 'subscription { tick { n secret } }';
    const first = await subscribe(served, { query, extensions: { after: null } }, 'ann');
    await first.next();
    await served.events.publish('tick', { n: 1 });
    const after = (await first.next()).extensions?.cursor;
    await first.close();
    await served.events.publish('tick', { n: 2 });
    const again = await subscribe(served, { query, extensions: { after } }, 'carl');
    expect((await again.next()).data).toEqual({ tick: { n: 2, secret: 'SECRET' } });
    await again.close();
    tokens['ann'] = ['x'];
    const refused = await subscribe(served, { query, extensions: { after } }, 'ann');
    expect(codes({ body: (await refused.next()) as { errors?: [] } })).toEqual(['CURSOR_INVALID']);
    await refused.close();
  });

  if (!isSocket) return;

  it.each(['reject', 'null'] as const)(
    'a token that expires ends the events when the context is per event (mode %s)',
    async (mode) => {
      const served = await serve({ auth: { ...auth, mode } }, { contextPer: 'event', share: () => 'all' });
      const [ann, carl] = [
        await subscribe(served, { query: 'subscription { tick { n secret } }' }, 'ann'),
        await subscribe(served, { query: 'subscription { tick { n secret } }' }, 'carl'),
      ];
      await until(() => served.subscriptions.stats().sources === 2);
      await served.events.publish('tick', { n: 1 });
      for (const client of [ann, carl])
        expect((await client.next()).data).toEqual({ tick: { n: 1, secret: 'SECRET' } });
      delete tokens['ann'];
      await served.events.publish('tick', { n: 2 });
      const result = await ann.next();
      expect(codes({ body: result as { errors?: [] } })).toEqual(['UNAUTHENTICATED']);
      expect(result.data).toEqual(mode === 'reject' ? undefined : { tick: { n: 2, secret: null } });
      expect((await carl.next()).data).toEqual({ tick: { n: 2, secret: 'SECRET' } });
      expect(served.subscriptions.stats().sources).toBe(mode === 'reject' ? 1 : 2);
      await ann.close();
      await carl.close();
    },
  );
});

it.each([MODERN, LEGACY])('queries and mutations over %s', async (protocol) => {
  const served = await serve();
  const client = await ready(served.socketUrl, protocol, { user: 'bob' });
  const run = async (query: string) => {
    client.send({ id: '1', type: protocol === LEGACY ? 'start' : 'subscribe', payload: { query } });
    const messages = await client.until(({ type }) => type === 'complete' || type === 'error');
    return messages.find(({ id }) => id === '1')?.['payload'];
  };
  expect(JSON.stringify(await run('{ secret }'))).toContain('FORBIDDEN');
  expect(JSON.stringify(await run('mutation { secret }'))).toContain('FORBIDDEN');
  expect(await run('{ open }')).toEqual({ data: { open: 'OPEN' } });
  tokens['bob'] = ['a'];
  expect(await run('{ secret }')).toEqual({ data: { secret: 'SECRET' } });
  await client.close();
});
