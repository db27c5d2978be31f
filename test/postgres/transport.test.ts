/** @tags once slow */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { migration, postgres } from '../../middleware/postgres.ts';
import { createPubSub, type PubSub, type PubSubOptions } from '../../middleware/pubsub.ts';
import { testTransport } from '../../middleware/testing.ts';
import type { PostgresOptions } from '../../types/postgres.ts';
import { atEnd } from '../kit.ts';
import { type PostgresServer, startPostgres } from '../postgres.ts';
import { numbers, take } from '../pubsub/events.ts';
import { type StallingProxy, startProxy } from '../pubsub/proxy.ts';

interface Events {
  tick: unknown;
}

const SETTINGS = { heartbeat: 200, commandTimeout: 1000 };

let server: PostgresServer;
let proxy: StallingProxy;
let pool: pg.Pool;
let proxied: pg.Pool;

/** A pool for the URL of the server with other parts. */
function poolOf(
  parts: Partial<Pick<URL, 'port' | 'pathname' | 'username'>> = {},
  config: pg.PoolConfig = {},
): pg.Pool {
  return new pg.Pool({ connectionString: Object.assign(new URL(server.url), parts).href, ...config });
}

const isRejected = (promise: Promise<unknown>): Promise<boolean> =>
  promise.then(
    () => false,
    () => true,
  );

beforeAll(async () => {
  server = await startPostgres(['fsync=off']);
  proxy = await startProxy(server.url);
  pool = poolOf();
  proxied = poolOf({ port: new URL(proxy.url).port });
  for (const each of [pool, proxied]) each.on('error', () => undefined);
});
afterAll(async () => {
  // A connection that the proxy has stalled would never end.
  await proxy.close();
  await Promise.all([pool.end(), proxied.end()]);
  await server.remove();
});

function open(
  options: PostgresOptions & Pick<PubSubOptions, 'onError' | 'history'> = {},
  from = pool,
): PubSub<Events> {
  const { onError = false, history, ...more } = options;
  const transport = postgres(from, { ...SETTINGS, ...more });
  const events = createPubSub<Events>({ transport, onError, history });
  atEnd(() => events.close());
  return events;
}

describe('testTransport passes postgres', () => {
  const interruptions: Readonly<Record<string, () => Promise<unknown>>> = {
    'closed connections': async () => proxy.drop(),
    pg_terminate_backend: () =>
      pool.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()'),
    'a stalled network': async () => {
      proxy.stall();
      await pause(1500);
      proxy.heal();
    },
    'a stopped server': async () => {
      server.signal('SIGSTOP');
      await pause(1500);
      server.signal('SIGCONT');
    },
    'a killed server': async () => {
      await server.kill();
      await server.start();
    },
  };

  it.each(Object.keys(interruptions))('with %s', async (name) => {
    const create = () => postgres(proxied, SETTINGS);
    expect(await testTransport(create, { interrupt: interruptions[name] })).toHaveLength(8);
  });
});

it('createPubSub delivers events of several processes once and in order, also large ones', async () => {
  const writers = [open(), open(), open()];
  const reader = open();
  const stream = reader.subscribe('tick');
  await reader.ready('tick');
  const sent = await Promise.all(
    writers.map(async (writer, index) => {
      const events = numbers(0, 100).map((number) => ({
        index,
        number,
        text: 'x'.repeat(number % 25 === 0 ? 50_000 : 10),
      }));
      await Promise.all(events.map((event) => writer.publish('tick', event)));
      return events;
    }),
  );
  const received = (await take(stream, 300)) as { index: number }[];
  for (const [index, events] of sent.entries())
    expect(received.filter((event) => event.index === index)).toEqual(events);
});

it('createPubSub publishes within the transaction of a client, after its commit', async () => {
  const events = open();
  const stream = events.subscribe('tick');
  await events.ready('tick');
  const client = await pool.connect();
  atEnd(() => client.release());
  await client.query('BEGIN');
  await events.publish('tick', 'rolled back', { client });
  await client.query('ROLLBACK');
  await client.query('BEGIN');
  await events.publish('tick', 1, { client });
  await events.publish('tick', 2, { client });
  // It waits for the transaction, so its event comes later.
  const later = events.publish('tick', 3);
  await client.query('COMMIT');
  await later;
  expect(await take(stream, 3)).toEqual([1, 2, 3]);
  await expect(events.publish('tick', 1, { client: {} })).rejects.toMatchObject({ code: 'ERR_OPTION' });
});

it('createPubSub continues after a cursor, also in a process that is started later', async () => {
  const first = open();
  const stream = first.subscribe('tick');
  await first.ready('tick');
  await first.publish('tick', 1);
  const { cursor } = await stream.next();
  await first.close();
  const other = open();
  for (const number of numbers(2, 1000)) void other.publish('tick', number);
  await other.publish('tick', 1000);
  expect(await take(open().subscribe('tick', { after: cursor }), 999)).toEqual(numbers(2, 1001));
  expect((await other.stats()).topics).toEqual({});
});

it.each(['espalier.topics, espalier.events', 'espalier.topics'])(
  'a client that continues before the first event of a topic learns that TRUNCATE has removed %s',
  async (tables) => {
    const topic = `truncated ${tables}` as 'tick';
    const [events, other] = [open(), open()];
    const [stream, second] = [events.subscribe(topic), events.subscribe(topic)];
    await stream.started?.();
    const { startCursor } = stream;
    for (const tick of [1, 2]) await events.publish(topic, tick);
    // Both events are read from the table before it is empty.
    await take(second, 2);
    await second.return();
    const { cursor } = await stream.next();
    await pool.query(`TRUNCATE ${tables}`);
    const missed = { extensions: { code: 'EVENTS_MISSED' } };
    // Without the topics the two events are still stored.
    for (const after of [startCursor, cursor])
      await expect(take(other.subscribe(topic, { after }), 3)).rejects.toMatchObject(missed);
    await events.publish(topic, 3);
    // The stream is told without a check of idle topics: its place is before that of the next event.
    expect(await take(stream, 1)).toEqual([2]);
    await expect(stream.next()).rejects.toMatchObject(missed);
    for (const after of [startCursor, cursor])
      await expect(take(other.subscribe(topic, { after }), 3)).rejects.toMatchObject(missed);
  },
);

it('a stream that is opened after ready() gets the events of the publishes after it', async () => {
  proxy.delay(20);
  atEnd(() => proxy.delay(0));
  const [events, other] = [open({ commandTimeout: 10_000 }, proxied), open()];
  await Promise.all(
    numbers(0, 60).map(async (number) => {
      const topic = `ready ${number}` as 'tick';
      await events.ready(topic);
      const stream = events.subscribe(topic);
      await other.publish(topic, number);
      expect(await take(stream, 1)).toEqual([number]);
    }),
  );
});

it('a read of large events of several topics has a limited number of bytes', async () => {
  const reader = open();
  const writer = open();
  const topics = numbers(0, 8).map((number) => `large ${number}` as 'tick');
  const streams = topics.map((topic) => reader.subscribe(topic));
  await Promise.all(topics.map((topic) => reader.ready(topic)));
  const text = 'x'.repeat(600_000);
  await Promise.all(topics.flatMap((topic) => numbers(0, 4).map((n) => writer.publish(topic, { n, text }))));
  for (const stream of streams)
    expect((await take(stream, 4)).map((event) => (event as { n: number }).n)).toEqual(numbers(0, 4));
});

describe('the defaults of sessions', () => {
  it.each([
    'default_transaction_isolation=repeatable\\ read',
    'default_transaction_isolation=serializable',
    'default_transaction_read_only=on',
    'search_path=',
    'DateStyle=German',
    'IntervalStyle=sql_standard',
    'standard_conforming_strings=off',
    'client_encoding=LATIN1',
    'statement_timeout=2000',
    'lock_timeout=2000',
    'timezone=Asia/Kathmandu',
    'default_transaction_deferrable=on',
  ])('may be %s', async (setting) => {
    const other = new pg.Pool({ connectionString: server.url, options: `-c ${setting}` });
    atEnd(() => other.end());
    const errors: Error[] = [];
    const schema = `s${setting.replace(/\W/g, '').slice(0, 30).toLowerCase()}`;
    const all = [1, 2, 3].map(() => open({ schema, onError: (error) => errors.push(error) }, other));
    const stream = (all[0] as PubSub<Events>).subscribe('tick');
    await Promise.all(all.map((events) => events.ready('tick')));
    const sent = await Promise.all(
      all.map(async (events, index) => {
        const texts = numbers(0, 40).map(
          (number) => `${index} ${number} \\' ${String.fromCodePoint(0x20ac)}`,
        );
        for (const text of texts) await events.publish('tick', text);
        return texts;
      }),
    );
    const received = (await take(stream, 120)) as string[];
    for (const [index, texts] of sent.entries())
      expect(received.filter((text) => text.startsWith(`${index} `))).toEqual(texts);
    expect(errors).toEqual([]);
  });
});

it('createPubSub removes events by their number and age, and says when a cursor is too old', async () => {
  const events = open({ schema: 'short', history: { length: 10, ttl: 500 } });
  const stream = events.subscribe('tick');
  await events.ready('tick');
  await Promise.all(numbers(0, 200).map((number) => events.publish('tick', number)));
  const { cursor } = await stream.next();
  const count = async (): Promise<number> =>
    Number((await pool.query('SELECT count(*) FROM short.events')).rows[0].count);
  while ((await count()) > 0) await pause(50);
  const resumed = events.subscribe('tick', { after: cursor });
  await expect(resumed.next()).rejects.toMatchObject({ extensions: { code: 'EVENTS_MISSED' } });
  await events.publish('tick', 'next');
  expect((await take(stream, 200)).at(-1)).toBe('next');
});

it('createPubSub works for a user who owns nothing if migrations have created the tables', async () => {
  await pool.query(migration('own'));
  await pool.query(migration('own'));
  await pool.query(`
    CREATE USER small; GRANT USAGE ON SCHEMA own TO small;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA own TO small;`);
  const small = poolOf({ username: 'small' });
  atEnd(() => small.end());
  const events = open({ schema: 'own' }, small);
  const stream = events.subscribe('tick');
  await events.ready('tick');
  await events.publish('tick', 1);
  expect(await take(stream, 1)).toEqual([1]);
  // Without the permission to create another one.
  const errors: Error[] = [];
  const refused = open({ schema: 'missing', onError: (error) => errors.push(error) }, small);
  await expect(refused.subscribe('tick').next()).rejects.toMatchObject({ code: 'ERR_EVENTS_REFUSED' });
  await expect(refused.ready('tick')).rejects.toThrow(/permission denied/);
  await expect(refused.publish('tick', 1)).rejects.toThrow(/schema "missing" does not exist/);
});

it('createPubSub refuses subscriptions when LISTEN gets no notifications', async () => {
  await pool.query('CREATE DATABASE other');
  const other = poolOf({ pathname: 'other' });
  atEnd(() => other.end());
  const events = open({ listen: other });
  await expect(events.ready('tick')).rejects.toThrow(/LISTEN gets no notifications. A pooler/);
});

it('createPubSub connects again when the network fails after LISTEN', async () => {
  // Without idle connections of other tests, which would stay silent too, one after the other.
  const own = poolOf({ port: new URL(proxy.url).port });
  atEnd(() => own.end());
  let failures = 0;
  const connect = async (): Promise<pg.PoolClient> => {
    const client = await own.connect();
    const query = client.query.bind(client) as (...words: unknown[]) => Promise<unknown>;
    const replied = async (text: string, values: unknown[]): Promise<unknown> => {
      const reply = await query(text, values);
      if (text.startsWith('LISTEN') && failures++ < 2) {
        // The open connections stay silent.
        proxy.stall();
        proxy.heal();
      }
      return reply;
    };
    return Object.assign(client, { query: replied });
  };
  const listen = { connect, on: own.on.bind(own), off: own.off.bind(own) };
  const events = open({ listen, commandTimeout: 500 });
  const stream = events.subscribe('tick');
  await events.ready('tick');
  await events.publish('tick', 1);
  expect(await take(stream, 1)).toEqual([1]);
});

it('createPubSub rejects events that PostgreSQL cannot store, and publishes later ones', async () => {
  await pool.query('CREATE DATABASE latin ENCODING LATIN1 TEMPLATE template0');
  const latin = poolOf({ pathname: 'latin' });
  atEnd(() => latin.end());
  const events = open({}, latin);
  await events.ready('tick');
  await expect(events.publish('tick', '\u20ac')).rejects.toThrow(/encoding/);
  await events.publish('tick', 'b');
  const names = ['\0', 'x'.repeat(2001)];
  for (const name of names) await expect(events.publish(name as 'tick', 1)).rejects.toThrow(/topic/);
  for (const name of names) await expect(events.ready(name as 'tick')).rejects.toThrow(/topic/);
});

it('createPubSub reports missed events when a table was restored from an old backup', async () => {
  const events = open({ schema: 'backup' });
  const stream = events.subscribe('tick');
  await events.ready('tick');
  for (const number of [1, 2, 3]) await events.publish('tick', number);
  expect(await take(stream, 3)).toEqual([1, 2, 3]);
  await pool.query('TRUNCATE backup.events, backup.topics');
  for (const number of [4, 5, 6, 7]) await events.publish('tick', number);
  await expect(stream.next()).rejects.toMatchObject({ extensions: { code: 'EVENTS_MISSED' } });
});

it('createPubSub tells subscribers during a partition that events may be missing', async () => {
  // Without a limit the pool would keep a place for each connection that was opened during the partition.
  const limited = poolOf({ port: new URL(proxy.url).port }, { connectionTimeoutMillis: 1000 });
  limited.on('error', () => undefined);
  atEnd(() => limited.end());
  const events = open({ commandTimeout: 1000 }, limited);
  const stream = events.subscribe('tick');
  await events.ready('tick');
  void proxy.stall();
  try {
    await expect(stream.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
    await expect(events.publish('tick', 1)).rejects.toThrow();
  } finally {
    proxy.heal();
  }
  const later = events.subscribe('tick');
  await events.ready('tick');
  await open().publish('tick', 2);
  expect(await take(later, 1)).toEqual([2]);
});

it('createPubSub works again after a partition with more late queries than the pool has connections', async () => {
  const config = { max: 3, connectionTimeoutMillis: 600 };
  const small = poolOf({ port: new URL(proxy.url).port }, config);
  atEnd(() => small.end());
  const settings = { heartbeat: 100, commandTimeout: 600 };
  const events = open(settings, small);
  const stream = events.subscribe('tick');
  await events.ready('tick');
  await events.publish('tick', 0);
  // So that all of its connections are open.
  await Promise.all([1, 2].map(() => small.query('SELECT pg_sleep(0.1)')));
  proxy.stall();
  for (const number of numbers(1, 6))
    await expect(events.publish('tick', `late ${number}`)).rejects.toMatchObject({
      message: /reply|timeout/,
    });
  await open().publish('tick', 1);
  proxy.heal();
  while (await isRejected(events.publish('tick', 2))) await pause(20);
  expect(await take(stream, 3)).toEqual([0, 1, 2]);
});

it('createPubSub survives a connection that ends with the reply to its login', async () => {
  const message = (type: string, body: string): Buffer => {
    const head = Buffer.alloc(5, type);
    head.writeInt32BE(body.length + 4, 1);
    return Buffer.concat([head, Buffer.from(body)]);
  };
  // Of a server that is shutting down: accepted, ready, and terminated in one packet.
  const replies = [
    message('R', '\0\0\0\0'),
    message('Z', 'I'),
    message('E', 'SFATAL\0C57P01\0Mterminating\0\0'),
  ];
  const ending = createServer((socket) => {
    socket.on('error', () => undefined).once('data', () => socket.end(Buffer.concat(replies)));
  }).listen(0, '127.0.0.1');
  await once(ending, 'listening');
  const { port } = ending.address() as AddressInfo;
  const ended = poolOf({ port: String(port) });
  atEnd(async () => {
    await ended.end();
    ending.close();
  });
  await expect(open({}, ended).publish('tick', 1)).rejects.toThrow('connection error');
});

it('createPubSub says that the pool may have no connection left', async () => {
  const connectionString = new URL(server.url).href;
  const small = new pg.Pool({ connectionString, max: 2 });
  atEnd(() => small.end());
  const events = open({ commandTimeout: 1000 }, small);
  await events.ready('tick');
  const client = await small.connect();
  await expect(events.publish('tick', 1)).rejects.toMatchObject({
    code: 'ERR_POSTGRES_TIMEOUT',
    message: 'All connections of the pool are in use, or PostgreSQL did not reply within 1000 ms',
  });
  client.release();
  await events.publish('tick', 2);
});

it('createPubSub refuses subscriptions when a table was dropped, and creates a dropped schema again', async () => {
  const errors: Error[] = [];
  const events = open({ schema: 'dropped', onError: (error) => errors.push(error) });
  const stream = events.subscribe('tick');
  await events.ready('tick');
  await pool.query('DROP TABLE dropped.topics');
  await expect(events.subscribe('tock' as 'tick').next()).rejects.toMatchObject({
    code: 'ERR_EVENTS_REFUSED',
  });
  await expect(stream.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_REFUSED' });
  expect(errors.length).toBeLessThan(10);
  await pool.query('DROP SCHEMA dropped CASCADE');
  const later = events.subscribe('tick');
  await events.ready('tick');
  await events.publish('tick', 1);
  expect(await take(later, 1)).toEqual([1]);
});

it.each([
  [undefined, {}],
  [{}, {}],
  ['pool', { schema: 'Upper' }],
  ['pool', { listen: {} }],
  ['pool', { history: { lenght: 1 } }],
  ['pool', { connectionString: 'postgres://' }],
])('postgres refuses wrong arguments (%j, %j)', (given, options) => {
  expect(() => postgres((given === 'pool' ? pool : given) as never, options as never)).toThrow(
    expect.objectContaining({ code: 'ERR_OPTION' }),
  );
  expect(() => migration('a b')).toThrow(/argument "schema"/);
});
