/** @tags graphql engine */
import type { IncomingMessage } from 'node:http';
import { makeExecutableSchema } from '@graphql-tools/schema';
import express from 'express';
import { GraphQLError } from 'graphql';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { authTypeDefs } from '../../middleware/auth.ts';
import { graphqlHTTP, idempotentTypeDefs } from '../../middleware/graphql.ts';
import { createPubSub } from '../../middleware/pubsub.ts';
import { createServer } from '../../middleware/server.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { subscribe } from '../../middleware/testing.ts';
import type { CacheControlInfo } from '../../types/caching.ts';
import type { Caller } from '../../types/caller.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import { atEnd, listen, postJson } from '../kit.ts';

const SECRET = 'a secret of at least 32 bytes for cursors';
const asked: string[] = [];
let payments = 0;
let executions = 0;
const events = createPubSub<{ ticks: number }>({ history: {} });
afterAll(() => events.close());
beforeEach(() => {
  asked.length = 0;
  payments = 0;
  executions = 0;
});

const schema = makeExecutableSchema({
  typeDefs: [
    authTypeDefs,
    idempotentTypeDefs,
    `type Query {
      me: String @cacheControl(maxAge: 60, scope: PRIVATE)
      news: String @cacheControl(maxAge: 60)
      profile: String
      secret: String @requiresScopes(scopes: [["secrets"]])
      signedIn: Boolean @authenticated
    }
    type Mutation { pay: Int! }
    type Subscription { ticks: Int, secrets: Int @requiresScopes(scopes: [["secrets"]]) }
    enum Scope { PUBLIC PRIVATE }
    directive @cacheControl(maxAge: Int, scope: Scope) on FIELD_DEFINITION`,
  ],
  resolvers: {
    Query: {
      me: (_root, _args, { caller }) => `${caller?.id ?? 'nobody'} ${++executions}`,
      news: () => `news ${++executions}`,
      async profile(_root, _args, context, info: CacheControlInfo) {
        await new Promise((resolve) => setImmediate(resolve));
        info.cacheControl.setCacheHint({ maxAge: 60, scope: 'PRIVATE' });
        return context.caller?.id ?? 'nobody';
      },
      secret: () => 'secret',
      signedIn: () => true,
    },
    Mutation: { pay: () => ++payments },
    Subscription: {
      ticks: { subscribe: () => events.subscribe('ticks'), resolve: (tick: number) => tick },
      secrets: { subscribe: () => events.subscribe('ticks'), resolve: (tick: number) => tick },
    },
  },
});

interface User extends Caller {
  readonly email: string;
}

/** The users by their token. */
const users = new Map<string, User>([
  ['a', { id: 'ada', email: 'ada@example.com', scopes: ['secrets'], client: 'web' }],
  ['b', { id: 'bob', email: 'bob@example.com' }],
]);

function caller(req: { headers: IncomingMessage['headers'] }, details: object) {
  const { connectionParams } = details as { connectionParams?: { token?: string } };
  const token = connectionParams?.token ?? req.headers.authorization?.slice('Bearer '.length) ?? '';
  asked.push(token);
  if (token === 'expired')
    throw new GraphQLError('The token has expired', {
      extensions: { code: 'UNAUTHENTICATED', http: { status: 401 } },
    });
  return users.get(token) ?? null;
}

async function serve(options: GraphQLOptions = {}) {
  const handler = graphqlHTTP(schema, {
    caller,
    context: (_req: object, { caller: found }) => ({ caller: found }),
    auth: true,
    idempotency: true,
    ...options,
  });
  const app = express().use('/graphql', handler);
  const server = createServer(app);
  attachSubscriptions(server, handler);
  const { url, socketUrl } = await listen(server);
  const send = (token: string, body: unknown, headers = {}) =>
    postJson(`${url}/graphql`, body, { authorization: `Bearer ${token}`, ...headers });
  const query = async (token: string, text: string, headers = {}) =>
    (await send(token, { query: text }, headers)).json();
  return { handler, send, query, socketUrl: `${socketUrl}/graphql` };
}

describe('the option caller', () => {
  it('is asked once for a request, also for one with a batch, and its answer is in the context', async () => {
    const { query, send } = await serve({ batching: true });
    expect(await query('a', '{ me }')).toEqual({ data: { me: 'ada 1' } });
    expect(asked).toEqual(['a']);
    const batch = await send('b', [{ query: '{ me }' }, { query: '{ me }' }]);
    expect(await batch.json()).toEqual([{ data: { me: 'bob 2' } }, { data: { me: 'bob 3' } }]);
    expect(asked).toEqual(['a', 'b']);
  });

  it('decides what the option auth lets pass', async () => {
    const { query } = await serve();
    expect(await query('a', '{ secret signedIn }')).toEqual({ data: { secret: 'secret', signedIn: true } });
    expect(await query('b', '{ signedIn }')).toEqual({ data: { signedIn: true } });
    expect(await query('b', '{ secret }')).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
    expect(await query('', '{ signedIn }')).toMatchObject({
      errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
    });
  });

  it('refuses the request with its GraphQLError, and hides and reports any other error', async () => {
    const reported: unknown[] = [];
    const { send } = await serve({ onError: (error) => reported.push(error) });
    const expired = await send('expired', { query: '{ news }' });
    expect([expired.status, await expired.json()]).toMatchObject([
      401,
      { errors: [{ message: 'The token has expired' }] },
    ]);
    expect(reported).toEqual([]);
    const broken = await serve({
      caller: () => ({ id: '' }),
      onError: (error) => reported.push(error),
    });
    const response = await broken.send('a', { query: '{ news }' });
    expect([response.status, await response.json()]).toMatchObject([
      500,
      { errors: [{ message: 'Internal server error' }] },
    ]);
    expect(String(reported)).toContain('option "caller" returned');
    expect(executions).toBe(0);
  });

  it('shares no result of a batch that turns out to be private, whatever the other operations are', async () => {
    const { query, send } = await serve({ responseCache: true, batching: true });
    const batch = await send('a', [{ query: '{ profile }' }, { query: '{ me }' }]);
    expect((await batch.json())[0]).toEqual({ data: { profile: 'ada' } });
    expect(await query('b', '{ profile }')).toEqual({ data: { profile: 'bob' } });
  });

  it('shares a public result among all callers, and stores a private one for each', async () => {
    const { query } = await serve({ responseCache: true });
    expect(await query('a', '{ news }')).toEqual({ data: { news: 'news 1' } });
    expect(await query('b', '{ news }')).toEqual({ data: { news: 'news 1' } });
    expect(await query('', '{ news }')).toEqual({ data: { news: 'news 1' } });
    expect(await query('a', '{ me }')).toEqual({ data: { me: 'ada 2' } });
    expect(await query('b', '{ me }')).toEqual({ data: { me: 'bob 3' } });
    expect(await query('a', '{ me }')).toEqual({ data: { me: 'ada 2' } });
    expect(await query('b', '{ me }')).toEqual({ data: { me: 'bob 3' } });
    // Nobody has no private results.
    expect(await query('', '{ me }')).toEqual({ data: { me: 'nobody 4' } });
    expect(await query('', '{ me }')).toEqual({ data: { me: 'nobody 5' } });
  });

  it('never stores the result of a query with public and private fields for all', async () => {
    const { query } = await serve({ responseCache: true });
    expect(await query('a', '{ news me }')).toEqual({ data: { news: 'news 1', me: 'ada 2' } });
    expect(await query('b', '{ news me }')).toEqual({ data: { news: 'news 3', me: 'bob 4' } });
  });

  it('never shares a result that a resolver makes private, also with callers that wait for it', async () => {
    const { query } = await serve({ responseCache: true });
    const text = '{ profile }';
    const results = await Promise.all(['a', 'b', 'a', ''].map((token) => query(token, text)));
    expect(results.map(({ data }) => data.profile)).toEqual(['ada', 'bob', 'ada', 'nobody']);
    expect(await query('b', text)).toEqual({ data: { profile: 'bob' } });
  });

  it('is asked once for a batch, also if it throws', async () => {
    const { send } = await serve({ batching: true });
    const batch = await send('expired', [{ query: '{ news }' }, { query: '{ news }' }]);
    expect(await batch.json()).toMatchObject([
      { errors: [{ message: 'The token has expired' }] },
      { errors: [{ message: 'The token has expired' }] },
    ]);
    expect(asked).toEqual(['expired']);
  });

  it.each(['websocket', 'event-stream'] as const)(
    'is asked again for each event over %s if the context is per event, also without a context function',
    async (transport) => {
      let isSignedIn = true;
      const handler = graphqlHTTP(schema, {
        auth: false,
        idempotency: true,
        context: {},
        caller() {
          if (isSignedIn) return { id: 'ada' };
          throw new GraphQLError('The token has expired');
        },
      });
      const server = createServer(express().use('/graphql', handler));
      attachSubscriptions(server, handler, { contextPer: 'event' });
      const results = await subscribe(server, { query: 'subscription { ticks }', transport });
      await events.publish('ticks', 1);
      expect((await results.next()).value).toEqual({ data: { ticks: 1 } });
      isSignedIn = false;
      await events.publish('ticks', 2);
      expect((await results.next()).value).toMatchObject({ errors: [{ message: 'The token has expired' }] });
    },
  );

  it('keeps the keys of mutations and the budgets of callers apart', async () => {
    const { query, send } = await serve({ budget: { limit: 4, window: '1h', unit: 'operations' } });
    const key = { 'idempotency-key': 'k1' };
    expect(await query('a', 'mutation { pay }', key)).toEqual({ data: { pay: 1 } });
    expect(await query('a', 'mutation { pay }', key)).toEqual({ data: { pay: 1 } });
    expect(await query('b', 'mutation { pay }', key)).toEqual({ data: { pay: 2 } });
    await query('a', '{ news }');
    await query('a', '{ news }');
    expect((await send('a', { query: '{ news }' })).status).toBe(429);
    expect((await send('b', { query: '{ news }' })).status).toBe(200);
    expect((await send('', { query: '{ news }' })).status).toBe(200);
  });

  it('names the client for the option usage', async () => {
    const { query, handler } = await serve({ usage: true });
    await query('a', '{ news }');
    await query('b', '{ news }');
    const [clients] = Object.values((await handler.usage.report()).days);
    expect(Object.keys(clients ?? {}).sort()).toEqual(['_UNNAMED', 'web']);
  });

  it('is asked once for a WebSocket, with its parameters', async () => {
    const { socketUrl } = await serve({ cursors: { key: SECRET } });
    const client = createClient({
      url: socketUrl,
      webSocketImpl: WebSocket,
      connectionParams: { token: 'a' },
      lazy: true,
    });
    atEnd(() => client.dispose());
    const me = await client.iterate({ query: '{ me }' }).next();
    const secret = await client.iterate({ query: '{ secret }' }).next();
    expect([me.value, secret.value]).toEqual([{ data: { me: 'ada 1' } }, { data: { secret: 'secret' } }]);
    expect(asked.filter((token) => token === 'a')).toHaveLength(asked.length);
  });

  it.each(['auth', 'idempotency'] as const)('without it, %s: true is a mistake', (name) => {
    expect(() => graphqlHTTP(schema, { auth: false, [name]: true })).toThrow(
      expect.objectContaining({ code: 'ERR_OPTION', message: expect.stringContaining('"caller"') }),
    );
  });
});

describe('the context of HTTP', () => {
  it('gets the response, for example to set a cookie', async () => {
    const { send } = await serve({
      context: (_req: object, { response, transport }) => {
        response?.setHeader('set-cookie', `seen=${transport}`);
        return {};
      },
    });
    expect((await send('a', { query: '{ news }' })).headers.get('set-cookie')).toBe('seen=http');
  });
});
