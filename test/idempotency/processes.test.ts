/** @tags once slow */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { LEGACY, MODERN, ready } from '../live/client.ts';
import { type PostgresServer, startPostgres } from '../postgres.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { until } from '../until.ts';
import { post } from './service.ts';

const LEASE = 1500;
const folder = mkdtempSync(join(tmpdir(), 'espalier-idempotency-'));
let redis: RedisServer;
let postgres: PostgresServer;
let database: pg.Client;
const children: { process: ChildProcess; port: number }[] = [];

/** Starts a server in the place of another one. */
async function startServer(index: number): Promise<void> {
  const child = fork(
    new URL('./process.ts', `file://${__dirname}/`),
    [redis.url, postgres.url, String(LEASE)],
    { execArgv: ['--import', 'tsx'] },
  );
  const [port] = await once(child, 'message');
  children[index] = { process: child, port };
}

async function crash(index: number): Promise<void> {
  const child = children[index]?.process as ChildProcess;
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

beforeAll(async () => {
  [redis, postgres] = await Promise.all([
    startRedis(['--appendonly', 'yes', '--dir', folder]),
    startPostgres(),
  ]);
  database = new pg.Client(postgres.url);
  await database.connect();
  await database.query('CREATE TABLE effects (id serial PRIMARY KEY, op text NOT NULL)');
  await Promise.all([startServer(0), startServer(1)]);
});

afterAll(async () => {
  await Promise.all([crash(0), crash(1)]);
  await database.end();
  await Promise.all([redis.kill(), postgres.remove()]);
  rmSync(folder, { recursive: true, force: true });
});

interface Answer {
  readonly data?: { readonly pay?: string } | null | undefined;
  readonly code?: unknown;
}

type Send = (port: number, op: string, hangs?: boolean) => Promise<Answer>;

const WITH_DIRECTIVE =
  'mutation ($op: String!, $hangs: Boolean) { pay(op: $op, hangs: $hangs) @idempotent(key: $op) }';
const PLAIN = 'mutation ($op: String!, $hangs: Boolean) { pay(op: $op, hangs: $hangs) }';

const overHttp =
  (query: string): Send =>
  async (port, op, hangs) => {
    const headers: Record<string, string> = query === PLAIN ? { 'idempotency-key': op } : {};
    const { data, codes } = await post(
      `http://127.0.0.1:${port}/graphql`,
      { query, variables: { op, hangs } },
      headers,
    );
    return { data: data as Answer['data'], code: codes[0] };
  };

const overSocket =
  (protocol: string): Send =>
  async (port, op, hangs) => {
    const client = await ready(`ws://127.0.0.1:${port}/graphql`, protocol);
    const payload = { query: WITH_DIRECTIVE, variables: { op, hangs } };
    client.send({ id: '1', type: protocol === LEGACY ? 'start' : 'subscribe', payload });
    const messages = await client.until(({ type }) => ['next', 'data', 'error'].includes(String(type)));
    await client.close();
    const results = [messages.at(-1)?.['payload']].flat() as (Answer & {
      errors?: Coded[];
      extensions?: Coded['extensions'];
    })[];
    const [result] = results;
    const code = result?.errors?.[0]?.extensions?.code ?? result?.extensions?.code;
    return { data: result?.data, code };
  };

interface Coded {
  readonly extensions?: { readonly code?: unknown };
}

/** The ways to send the key of an operation; all of one list are the same request. */
const TRANSPORTS: readonly (readonly Send[])[] = [
  [overHttp(PLAIN)],
  [overHttp(WITH_DIRECTIVE), overSocket(MODERN), overSocket(LEGACY)],
];

const LATER = ['IDEMPOTENCY_IN_PROGRESS', 'IDEMPOTENCY_UNAVAILABLE'];

/** Repeats an operation as a client does, until it has a result or is unknown. */
async function repeat(op: string, seed: number): Promise<string> {
  const transports = TRANSPORTS[op.endsWith('h') ? 0 : 1] as readonly Send[];
  for (let attempt = seed; ; attempt++) {
    const { port } = children[attempt % 2] as { readonly port: number };
    const send = transports[attempt % transports.length] as Send;
    // The process may crash meanwhile, or not have been started again yet.
    const answer = await send(port, op).catch((): Answer => ({ code: LATER[0] }));
    if (answer.data?.pay !== undefined) return answer.data.pay;
    if (answer.code === 'IDEMPOTENCY_UNKNOWN') return 'unknown';
    if (!LATER.includes(String(answer.code))) throw new Error(`${op}: ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function effects(): Promise<ReadonlyMap<string, number>> {
  const { rows } = await database.query('SELECT op, count(*)::int FROM effects GROUP BY op');
  return new Map(rows.map(({ op, count }) => [op, count]));
}

it.each([
  ['the header', 'crash-h'],
  ['@idempotent over HTTP and sockets', 'crash-d'],
])(
  'a mutation whose process is killed after its effect is unknown, and never executed again, with %s',
  async (_, op) => {
    const transports = TRANSPORTS[op.endsWith('h') ? 0 : 1] as readonly Send[];
    const failed = transports[0]?.(children[0]?.port as number, op, true).catch(() => 'crashed');
    for (let count = 0; count === 0; ) count = (await effects()).get(op) ?? 0;
    await crash(0);
    expect(await failed).toBe('crashed');
    for (const send of transports) {
      let { code } = await send(children[1]?.port as number, op, true);
      while (code === 'IDEMPOTENCY_IN_PROGRESS')
        ({ code } = await send(children[1]?.port as number, op, true));
      expect(code).toBe('IDEMPOTENCY_UNKNOWN');
    }
    expect((await effects()).get(op)).toBe(1);
    await startServer(0);
  },
);

it('200 clients that repeat over HTTP and sockets have one effect per key, while processes crash and Redis restarts', async () => {
  const ops = Array.from({ length: 300 }, (_, index) => `${index}-${index % 3 === 0 ? 'h' : 'd'}`);
  let ended = 0;
  const results: (readonly [string, string])[] = [];
  // Two clients send the same keys at the same time, and each of them repeats those that have a result.
  const clients = Array.from({ length: 200 }, async (_, client) => {
    for (let at = client % 100; at < ops.length; at += 100) {
      const op = ops[at] as string;
      for (const seed of [client, client + 1]) results.push([op, await repeat(op, seed)]);
      ended++;
    }
  });
  const faults = [
    () => crash(0).then(() => startServer(0)),
    () => redis.kill().then(() => redis.start()),
    () => crash(1).then(() => startServer(1)),
  ].map(async (cause, index) => {
    await until(() => ended > 100 + index * 150);
    expect(ended).toBeLessThan(600);
    await cause();
  });
  await Promise.all([...clients, ...faults]);
  const executed = await effects();
  const byOp = new Map<string, Set<string>>(ops.map((op) => [op, new Set()]));
  for (const [op, result] of results) byOp.get(op)?.add(result);
  for (const [op, each] of byOp) {
    const done = [...each].filter((result) => result !== 'unknown');
    // All clients have got the same result, and with a result there was exactly one effect.
    expect([op, done.length <= 1, executed.get(op) ?? 0]).toEqual([
      op,
      true,
      done.length === 1 ? 1 : Math.min(executed.get(op) ?? 0, 1),
    ]);
  }
  expect([...byOp.values()].filter((each) => !each.has('unknown')).length).toBeGreaterThan(150);
});
