import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { after, before, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { INestApplication, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { type Account, Accounts } from './accounts.js';
import { AppModule } from './app.module.js';
import { EspalierAdapter } from './espalier.adapter.js';
import { UsersModule } from './users.module.js';

interface Result {
  data?: unknown;
  errors?: { message: string; extensions: { code: string } }[];
}

/** The accounts by token. The name of one cannot be read. */
const accounts = new Map<string, Account>([
  ['ada', { id: '1', name: 'Ada' }],
  [
    'broken',
    {
      id: '2',
      get name(): string {
        throw new Error('secret detail');
      },
    },
  ],
]);

const find = async (token: string) => accounts.get(token) ?? null;

/** Starts a module on a free port. */
async function start(module: Type, service: object = { find }): Promise<INestApplication> {
  const builder = Test.createTestingModule({ imports: [module] });
  const compiled = await builder.overrideProvider(Accounts).useValue(service).compile();
  const app = compiled.createNestApplication(new EspalierAdapter({ timeout: 4000 }), { logger: false });
  await app.listen(0);
  return app;
}

const hostOf = (app: INestApplication): string => `localhost:${app.getHttpServer().address().port}`;

async function execute(app: INestApplication, query: string, token?: string): Promise<Result> {
  const response = await fetch(`http://${hostOf(app)}/graphql`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ query }),
  });
  return Object(await response.json());
}

const errorsOf = ({ errors }: Result) => errors?.map(({ message, extensions }) => [message, extensions.code]);
const connect = (app: INestApplication, connectionParams: { authorization?: string } = {}) =>
  createClient({
    url: `ws://${hostOf(app)}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams,
    retryAttempts: 0,
  });

let app: INestApplication;
before(async () => {
  app = await start(AppModule);
});
after(() => app.close());

test('a mutation knows its caller, and a query gets what it has stored', async () => {
  const sent = await execute(app, 'mutation { send(text: "Hello") { author text } }', 'ada');
  assert.deepEqual(sent, { data: { send: { author: 'Ada', text: 'Hello' } } });
  const found = await execute(app, '{ messages { text } }');
  assert.deepEqual(found, { data: { messages: [{ text: 'Hello' }] } });
});

test('the guard refuses a caller who is not signed in', async () => {
  const refused = await execute(app, 'mutation { send(text: "Hello") { text } }', 'somebody');
  assert.deepEqual(errorsOf(refused), [['Sign in first', 'UNAUTHENTICATED']]);
});

test('an exception of Nest reaches the client with a code', async () => {
  const refused = await execute(app, 'mutation { send(text: " ") { text } }', 'ada');
  assert.deepEqual(errorsOf(refused), [['The text is empty', 'BAD_USER_INPUT']]);
});

test('the client does not see the message of any other error', async (t) => {
  t.mock.method(console, 'error', () => {}); // the log
  const failed = await execute(app, 'mutation { send(text: "Hello") { text } }', 'broken');
  assert.deepEqual(errorsOf(failed), [['Internal server error', 'INTERNAL_SERVER_ERROR']]);
});

test('a subscription sends its events over a socket', async () => {
  const client = connect(app, { authorization: 'Bearer ada' });
  const events = client.iterate({ query: 'subscription { sent { text } }' });
  const first = events.next();
  // The server has the subscription when it responds to a later operation of the same socket.
  for await (const _result of client.iterate({ query: '{ __typename }' }));
  await execute(app, 'mutation { send(text: "live") { text } }', 'ada');
  assert.deepEqual((await first).value, { data: { sent: { text: 'live' } } });
  await client.dispose();
});

test('the guard refuses a subscription as well', async () => {
  const client = connect(app);
  const events = client.iterate({ query: 'subscription { sent { text } }' });
  const errors = await events.next().catch((reason) => reason);
  assert.deepEqual(errorsOf({ errors }), [['Sign in first', 'UNAUTHENTICATED']]);
  await client.dispose();
});

test('app.close() waits for requests and closes sockets before it destroys providers', async () => {
  const steps: string[] = [];
  const requests = new EventEmitter();
  const closing = await start(AppModule, {
    async find(token: string) {
      requests.emit('asked');
      await once(requests, 'answer');
      steps.push('answered');
      return find(token);
    },
    onModuleDestroy: () => steps.push('destroyed'),
  });
  const socket = new WebSocket(`ws://${hostOf(closing)}/graphql`, 'graphql-transport-ws');
  await once(socket, 'open');
  const response = execute(closing, '{ messages { text } }', 'ada');
  await once(requests, 'asked');
  const closed = once(socket, 'close');
  const end = closing.close();
  while (closing.getHttpServer().listening) await setImmediate();
  requests.emit('answer');
  assert.deepEqual(await response, { data: { messages: [] } });
  assert.equal((await closed)[0], 1001);
  await end;
  assert.deepEqual(steps, ['answered', 'destroyed']);
});

test('the subgraph resolves the references of a router', async () => {
  const users = await start(UsersModule);
  const of = '[{ __typename: "User", id: "1" }, { __typename: "User", id: "2" }]';
  const entities = await execute(users, `{ _entities(representations: ${of}) { ... on User { name } } }`);
  assert.deepEqual(entities, { data: { _entities: [{ name: 'User 1' }, { name: 'User 2' }] } });
  assert.match(JSON.stringify(await execute(users, '{ _service { sdl } }')), /type User/);
  await users.close();
});
