/** @tags graphql */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import express from 'express';
import { buildSchema, GraphQLError } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { inspect } from '../../middleware/inspect.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { inject } from '../../middleware/testing.ts';
import { UsageRecorder } from '../../src/usage/recorder.ts';
import { UsageCounts } from '../../src/usage/report.ts';
import type { GraphQLHandler, GraphQLOptions } from '../../types/graphql.ts';
import type { UsageOptions, UsageReport } from '../../types/usage.ts';
import { run } from '../graphql/server.ts';
import { atEnd, makeFolder } from '../kit.ts';
import { LEGACY, MODERN, ready } from '../live/client.ts';
import { TestTelemetry } from '../otel/telemetry.ts';
import { until } from '../until.ts';

const schema = buildSchema(`
  input Filter { text: String, secret: String, old: String @deprecated }
  type User { id: ID!, email: String, login: String @deprecated(reason: "use email") }
  type Query { user(id: ID): User, users(filter: Filter): [User!] }
  type Mutation { touch: User }
  type Subscription { ticks: Int }
`);
const user = { id: 1, email: 'a@b.example', login: 'ada' };
const rootValue = {
  user: () => user,
  users: () => [user, user],
  touch: () => user,
  async *ticks() {
    yield { ticks: 1 };
    yield { ticks: 2 };
  },
};

const folder = makeFolder();
const file = (name: string): string => join(folder, name);
afterEach(async () => {
  jest.useRealTimers();
});

const create = (usage: UsageOptions, options: GraphQLOptions = {}): GraphQLHandler =>
  graphqlHTTP(schema, { rootValue, onError: false, ...options, usage });

const today = (): string => new Date().toISOString().slice(0, 10);
const clientsOf = ({ days }: UsageReport) => days[today()] ?? {};
const post = (handler: GraphQLHandler, body: object | string, headers: Record<string, string> = {}) =>
  request(express().use('/graphql', handler)).post('/graphql').set(headers).send(body);

describe('the counts of the option usage', () => {
  it('are by day, client and coordinate, in a file after handler.usage.flush()', async () => {
    const path = file('first.json');
    const handler = create({ file: path });
    const web = { 'graphql-client-name': 'web', 'graphql-client-version': '1.2.0' };
    for (let turn = 0; turn < 3; turn++)
      await post(handler, { query: '{ user(id: 1) { email } }' }, web).expect(200);
    await post(handler, { query: '{ user { ...F } } fragment F on User { id login }' }).expect(200);
    await handler.usage.flush();
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({
      version: 1,
      days: {
        [today()]: {
          'web@1.2.0': {
            operations: 3,
            coordinates: { 'Query.user': 3, 'Query.user(id:)': 3, 'User.email': 3 },
          },
          _UNNAMED: {
            operations: 1,
            coordinates: { 'Query.user': 1, User: 1, 'User.id': 1, 'User.login': 1 },
          },
        },
      },
    });
    await post(handler, { query: '{ user { email } }' }, web).expect(200);
    await handler.usage.flush();
    expect(clientsOf(await handler.usage.report())['web@1.2.0']?.coordinates['User.email']).toBe(4);
    expect(readdirSync(folder).filter((name) => !name.endsWith('.json'))).toEqual([]);
  });

  it('have no values of arguments and variables', async () => {
    const path = file('values.json');
    const handler = create({ file: path });
    const query = 'query ($filter: Filter) { users(filter: $filter) { id } user(id: "hidden-1") { id } }';
    const variables = { filter: { text: 'hidden-2', secret: 'hidden-3', ['hidden-4']: 1 } };
    await post(handler, { query, variables });
    await handler.usage.flush();
    const text = readFileSync(path, 'utf8');
    expect(text).toContain('"Filter.secret":1');
    expect(text).not.toContain('hidden');
  });

  it('leave out refused operations and introspection', async () => {
    const handler = create(
      {},
      {
        onOperation: ({ operationName }) =>
          operationName === 'No' ? { errors: [new GraphQLError('no')] } : undefined,
      },
    );
    await post(handler, { query: '{ nothing }' });
    await post(handler, { query: 'query No { user { id } }' });
    await post(handler, { query: '{ __schema { types { name } } __typename }' }).expect(200);
    const all = await handler.usage.report();
    expect(clientsOf(all)).toEqual({ _UNNAMED: { operations: 1, coordinates: {} } });
  });

  it.each(['compiled', 'graphql-js'] as const)(
    'include cached results and every operation of a batch (%s)',
    async (engine) => {
      const handler = create({}, { batching: true, responseCache: { key: () => null }, engine });
      const query = '{ user { email } }';
      await post(handler, [{ query }, { query: 'mutation { touch { id } }' }, { query }]).expect(200);
      await post(handler, { query }).expect(200);
      expect(clientsOf(await handler.usage.report())['_UNNAMED']).toMatchObject({
        operations: 4,
        coordinates: { 'User.email': 3, 'Mutation.touch': 1 },
      });
    },
  );

  it('include operations over WebSockets, for the client that connection_init names, and event streams', async () => {
    const handler = create({});
    const server = await run(express().use('/graphql', handler));
    const subscriptions = attachSubscriptions(server.server, handler, { path: '/graphql' });
    atEnd(
      () => server.close(),
      () => subscriptions.close(),
    );
    const url = server.url.replace('http', 'ws');
    const subscribe = { query: 'subscription { ticks }' };
    const modern = await ready(url, MODERN, { 'graphql-client-name': 'ios', 'graphql-client-version': '7' });
    modern.send({ id: '1', type: 'subscribe', payload: subscribe });
    await modern.until(({ type }) => type === 'complete');
    modern.send({ id: '2', type: 'subscribe', payload: { query: '{ user { id } }' } });
    await modern.until(({ type, id }) => type === 'complete' && id === '2');
    const legacy = await ready(url, LEGACY, { 'apollographql-client-name': 'tv' });
    legacy.send({ id: '1', type: 'start', payload: subscribe });
    await legacy.until(({ type }) => type === 'complete');
    const headers = {
      accept: 'text/event-stream',
      'content-type': 'application/json',
      'graphql-client-name': 'sse',
    };
    await (await fetch(server.url, { method: 'POST', headers, body: JSON.stringify(subscribe) })).text();
    await modern.close();
    await legacy.close();
    expect(clientsOf(await handler.usage.report())).toEqual({
      'ios@7': { operations: 2, coordinates: { 'Subscription.ticks': 1, 'Query.user': 1, 'User.id': 1 } },
      tv: { operations: 1, coordinates: { 'Subscription.ticks': 1 } },
      sse: { operations: 1, coordinates: { 'Subscription.ticks': 1 } },
    });
  });

  it('belong to the day of the operation', async () => {
    const handler = create({});
    const server = await run(express().use('/graphql', handler));
    atEnd(() => server.close());
    const body = JSON.stringify({ query: '{ user { id } }' });
    const headers = { 'content-type': 'application/json' };
    const last = Array.from({ length: 101 }, (_, index) => Date.UTC(2026, 0, index + 1, 23, 59, 59, 999));
    for (const now of last) {
      jest.useFakeTimers({ now, doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
      await (await fetch(server.url, { method: 'POST', headers, body })).text();
    }
    const { days } = await handler.usage.report();
    expect(Object.keys(days)).toEqual(last.slice(1).map((time) => new Date(time).toISOString().slice(0, 10)));
  });
});

describe('the clients of the option usage', () => {
  const named = async (options: GraphQLOptions, headers: Record<string, string>): Promise<string[]> => {
    const handler = create({}, options);
    await post(handler, { query: '{ user { id } }' }, headers);
    return Object.keys(clientsOf(await handler.usage.report()));
  };

  it('are named by the headers of GraphQL clients or of Apollo, or by the caller', async () => {
    expect(
      await named({}, { 'apollographql-client-name': 'a', 'apollographql-client-version': '2' }),
    ).toEqual(['a@2']);
    expect(await named({}, { 'graphql-client-name': 'x'.repeat(101) })).toEqual(['_OTHER']);
    expect(await named({}, { 'graphql-client-name': '__proto__' })).toEqual(['__proto__']);
    const caller = ({ headers }: { headers: Record<string, unknown> }) => ({
      id: 'ada',
      client: { name: String(headers['x-app']), version: '9' },
    });
    expect(await named({ caller }, { 'x-app': 'mine' })).toEqual(['mine@9']);
    expect(await named({ caller: () => ({ id: 'ada', client: 'plain' }) }, {})).toEqual(['plain']);
    expect(await named({ caller: () => null }, {})).toEqual(['_UNNAMED']);
  });

  it('are named by the function usage.client in place of the caller, over HTTP and sockets', async () => {
    const client = (_source: unknown, context: unknown) => Object(context).app;
    const handler = create(
      { client },
      {
        caller: () => ({ id: 'ada', client: 'of the caller' }),
        context: ({ headers }, { connectionParams }) => ({
          app: connectionParams?.['app'] ?? headers['x-app'],
        }),
      },
    );
    const server = await run(express().use('/graphql', handler));
    const subscriptions = attachSubscriptions(server.server, handler, { path: '/graphql' });
    atEnd(
      () => server.close(),
      () => subscriptions.close(),
    );
    const socket = await ready(server.url.replace('http', 'ws'), MODERN, {
      app: { name: 'tv', version: '7' },
    });
    socket.send({ id: '1', type: 'subscribe', payload: { query: '{ user { id } }' } });
    await socket.until(({ type }) => type === 'complete');
    await socket.close();
    await post(handler, { query: '{ user { id } }' }, { 'x-app': 'web' });
    await post(handler, { query: '{ user { id } }' }, { 'graphql-client-name': 'by header' });
    await post(handler, { query: '{ user { id } }' });
    const names = Object.keys(clientsOf(await handler.usage.report()));
    expect(names.sort()).toEqual(['_UNNAMED', 'by header', 'tv@7', 'web']);
  });

  it.each<[string, () => string]>([
    [
      'throws',
      () => {
        throw new Error('on purpose');
      },
    ],
    ['returns a number', (() => 5) as () => never],
    ['returns a promise', (async () => 'web') as () => never],
  ])('whose function %s get a masked error, and the operator one report', async (_how, client) => {
    const errors: unknown[] = [];
    const handler = create({ client }, { onError: (error) => void errors.push(error) });
    const { status, body } = await post(handler, { query: '{ user { id } }' });
    expect([status, body.errors[0].extensions.code]).toEqual([500, 'INTERNAL_SERVER_ERROR']);
    expect(errors).toHaveLength(1);
    expect(clientsOf(await handler.usage.report())).toEqual({});
  });

  it('are at most a hundred per day: further ones are _OTHER, and nothing is lost', async () => {
    const handler = create({});
    const server = await run(express().use('/graphql', handler));
    atEnd(() => server.close());
    for (let index = 0; index < 150; index++) {
      const headers = { 'content-type': 'application/json', 'graphql-client-name': `bot ${index}` };
      await (
        await fetch(server.url, { method: 'POST', headers, body: '{"query":"{ user { id } }"}' })
      ).text();
    }
    const clients = clientsOf(await handler.usage.report());
    expect(Object.keys(clients).length).toBeLessThanOrEqual(100);
    const sum = Object.values(clients).reduce((total, { operations }) => total + operations, 0);
    expect(sum).toBe(150);
    expect(clients['_OTHER']?.operations).toBeGreaterThan(40);
  });
});

describe('the places of the option usage', () => {
  it('new counts are written after a minute, and after another one if that has failed', async () => {
    const path = file('interval.json');
    const handler = create({ file: path });
    const removed = join(folder, 'removed');
    mkdirSync(removed);
    const failing = create({ file: join(removed, 'usage.json') });
    rmdirSync(removed);
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    atEnd(() => warn.mockRestore());
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance', 'Date'] });
    for (const each of [handler, failing]) await inject(each, { query: '{ user { id } }' });
    jest.advanceTimersByTime(60_000);
    jest.useRealTimers();
    await until(() => readdirSync(folder).includes('interval.json') && warn.mock.calls.length > 0);
    expect(readFileSync(path, 'utf8')).toContain('"User.id":1');
    expect(warn.mock.calls[0]?.[0]).toMatch(/^graphqlHTTP: the usage was not written.*ENOENT/);
    mkdirSync(removed);
    await failing.usage.flush();
    expect(readFileSync(join(removed, 'usage.json'), 'utf8')).toContain('"User.id":1');
  });

  it('a file of another kind is not replaced', async () => {
    const path = file('other.json');
    writeFileSync(path, '{"name":"my-app"}');
    const handler = create({ file: path });
    await post(handler, { query: '{ user { id } }' });
    await expect(handler.usage.flush()).rejects.toThrow(`${path}: it contains`);
    expect(readFileSync(path, 'utf8')).toBe('{"name":"my-app"}');
  });

  it('several processes add to one file, and a lock that a killed process has left is removed', async () => {
    const path = file('shared.json');
    writeFileSync(`${path}.lock`, '');
    const { utimesSync } = await import('node:fs');
    utimesSync(`${path}.lock`, 0, 0);
    const script = join(__dirname, 'usage-process.ts');
    const children = Array.from({ length: 2 }, () =>
      fork(script, [path, '60'], { execArgv: ['--import', 'tsx'], cwd: join(__dirname, '../..') }),
    );
    const codes = await Promise.all(children.map(async (child) => (await once(child, 'exit'))[0]));
    expect(codes).toEqual([0, 0]);
    const counts = UsageCounts.read(JSON.parse(readFileSync(path, 'utf8')));
    const [clients] = [...counts.days.values()];
    expect([...(clients?.values() ?? [])].map(({ operations }) => operations)).toEqual([120]);
    expect(readdirSync(folder).filter((name) => name.startsWith('shared'))).toEqual(['shared.json']);
  });

  it('the last counts are written if another process was killed with the lock a moment ago', async () => {
    const path = file('killed.json');
    const handler = create({ file: path });
    await post(handler, { query: '{ user { id } }' });
    writeFileSync(`${path}.lock`, '');
    await handler.usage.flush();
    expect(readFileSync(path, 'utf8')).toContain('"User.id":1');
  });

  it('a handler without the option has empty counts', async () => {
    const handler = graphqlHTTP(schema, { rootValue });
    await post(handler, { query: '{ user { id } }' });
    await handler.usage.flush();
    expect(await handler.usage.report()).toEqual({ version: 1, days: {} });
  });
});

describe('deprecated parts of the schema', () => {
  it('that are in use are on the page of inspect, with the client and the last use', async () => {
    const handler = create({});
    const app = express().use('/inspect', inspect()).use('/graphql', handler);
    const send = (body: object, name: string) =>
      request(app).post('/graphql').set('graphql-client-name', name).send(body).expect(200);
    await send({ query: '{ user { login email } }' }, 'legacy-web');
    await send({ query: '{ user { login } }' }, 'legacy-web');
    const variables = { f: [{ old: 'x' }] };
    await send(
      { query: 'query ($f: Filter) { users(filter: $f) { id } }', variables: { f: variables.f[0] } },
      'cli',
    );
    const { body } = await request(app).get('/inspect').set('accept', 'application/json');
    const own = body.deprecated.filter(({ client }: { client: string }) =>
      ['legacy-web', 'cli'].includes(client),
    );
    const last = expect.stringMatching(/^\d{4}-\d\d-\d\dT/);
    expect(own).toHaveLength(2);
    expect(own).toContainEqual({ coordinate: 'User.login', client: 'legacy-web', count: 2, last });
    expect(own).toContainEqual({ coordinate: 'Filter.old', client: 'cli', count: 1, last });
  });

  it('are counted by EspalierInstrumentation, whose spans have the client', async () => {
    const telemetry = new TestTelemetry();
    atEnd(() => telemetry.stop());
    const handler = create({});
    const headers = { 'graphql-client-name': 'web', 'graphql-client-version': '3' };
    await post(handler, { query: 'query Q { user { login } }' }, headers);
    const [span] = await telemetry.wait('query');
    expect(span?.attributes).toMatchObject({ 'graphql.client.name': 'web', 'graphql.client.version': '3' });
    const counts = (await telemetry.metrics())['espalier.deprecated.operations'];
    expect(counts?.['{"graphql.coordinate":"User.login"}']).toBeGreaterThan(0);
  });
});

it('the memory of the counts is bounded: counts of many documents are multiplied before they are written', async () => {
  const written: UsageCounts[] = [];
  const recorder = new UsageRecorder({
    target: {
      add: async (counts) => void written.push(counts),
      read: () => Promise.reject(new Error('unused')),
    },
    report: () => undefined,
  });
  const { parse } = await import('graphql');
  const document = parse('{ user { id email login } }');
  const [operation] = document.definitions;
  if (operation?.kind !== 'OperationDefinition') throw new Error('no operation');
  for (let index = 0; index < 25_000; index++) {
    const prepared = {
      kind: 'prepared' as const,
      schema,
      source: '',
      document,
      operation: { ...operation },
      maxErrors: 1,
      execute: () => {
        throw new Error('unused');
      },
    };
    recorder.count(prepared, undefined, { headers: { 'graphql-client-name': 'a' } });
  }
  await recorder.flush();
  expect(written).toHaveLength(1);
  expect(written[0]?.of(today(), 'a').operations).toBe(25_000);
  expect(written[0]?.of(today(), 'a').coordinates.get('User.login')).toBe(25_000);
});

it('graphqlHTTP refuses a usage.file that cannot be written, and says what to do', () => {
  const folder = makeFolder({ 'counts.json': '{}', 'folder/other.txt': '' });
  const create = (file: string | URL) => () =>
    graphqlHTTP(buildSchema('type Query { a: Int }'), { usage: { file } });
  expect(create(`${folder}/folder`)).toThrow(
    /"usage.file" is ".*folder", which is a directory; pass the path of a file/,
  );
  for (const [name, reason] of [
    ['none/usage.json', 'ENOENT'],
    ['counts.json/usage.json', 'ENOTDIR'],
  ] as const) {
    for (const file of [`${folder}/${name}`, pathToFileURL(`${folder}/${name}`)])
      expect(create(file)).toThrow(
        new RegExp(
          `"usage.file" is ".*", which cannot be written; create the directory ".*${dirname(name)}".*${reason}`,
        ),
      );
  }
  expect(create(`${folder}/new.json`)).not.toThrow();
});
