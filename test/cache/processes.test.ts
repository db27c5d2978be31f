/** @tags once slow */
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { type Running, startExample, stopExamples } from '../examples/start.ts';
import { type StallingProxy, startProxy } from '../pubsub/proxy.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { until } from '../until.ts';

jest.setTimeout(120_000);

const KEYS = 5;
let redis: RedisServer;
let admin: Redis;
let proxies: StallingProxy[];
let processes: Running[];

async function start(store: 'memory' | 'redis'): Promise<void> {
  redis = await startRedis();
  admin = new Redis(redis.url);
  proxies = await Promise.all([startProxy(redis.url), startProxy(redis.url)]);
  processes = await Promise.all(proxies.map(({ url }) => startProcess(url, store)));
}

function startProcess(bus: string, store: 'memory' | 'redis'): Promise<Running> {
  return startExample('../test/cache/value-server', {
    DATABASE_URL: redis.url,
    BUS_URL: bus,
    STORE: store,
  });
}

async function stop(): Promise<void> {
  await stopExamples();
  admin.disconnect();
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await redis.kill();
}

let loads = 0;

/** Reads and writes values in both processes, and compares each value with the last acknowledged write. */
class Load {
  hits = 0;
  writes = 0;
  failures = 0;
  readonly stale: string[] = [];
  /** Each load has its own keys. */
  readonly #id = loads++;
  readonly #written: number[] = Array(KEYS).fill(0);
  readonly #acknowledged: number[] = Array(KEYS).fill(0);
  #isRunning = true;
  readonly #loops: Promise<void>[] = [];

  start(): void {
    for (let index = 0; index < 16; index++) this.#loops.push(this.#readLoop(index % 2));
    for (let key = 0; key < KEYS; key++) this.#loops.push(this.#writeLoop(key));
  }

  async end(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#loops);
  }

  async #readLoop(process: number): Promise<void> {
    while (this.#isRunning) {
      await this.read(process, Math.floor(Math.random() * KEYS));
      await pause(1);
    }
  }

  async read(process: number, key: number): Promise<void> {
    const needed = this.#acknowledged[key] as number;
    const { url } = processes[process] as Running;
    const query = encodeURIComponent(`{ value(key: "${this.#id}-${key}") }`);
    const response = await fetch(`${url}/graphql?query=${query}`);
    const { data } = (await response.json()) as { data: { value: number } };
    if (response.headers.has('age')) this.hits++;
    if (data.value < needed) this.stale.push(`process ${process}, key ${key}: ${data.value} after ${needed}`);
  }

  async #writeLoop(key: number): Promise<void> {
    for (let process = 0; this.#isRunning; process = 1 - process) {
      await this.write(process, key);
      await pause(Math.random() * 200);
    }
  }

  async write(process: number, key: number): Promise<void> {
    const value = (this.#written[key] as number) + 1;
    this.#written[key] = value;
    const { url } = processes[process] as Running;
    const response = await fetch(`${url}/write?key=${this.#id}-${key}&value=${value}`, { method: 'POST' });
    if (response.ok) {
      this.writes++;
      this.#acknowledged[key] = value;
    } else this.failures++;
  }
}

describe('two processes with a redisStore', () => {
  beforeAll(() => start('redis'));
  afterAll(stop);

  it('the response cache returns no result that is older than an acknowledged invalidation, under load', async () => {
    const load = new Load();
    load.start();
    await pause(4000);
    await until(() => load.writes > 20 && load.hits > 200, 60_000);
    await load.end();
    expect(load.stale).toEqual([]);
    expect(load.failures).toBe(0);
  });

  it('the response cache returns no stale result while connections are lost and opened again', async () => {
    const load = new Load();
    load.start();
    for (let round = 0; round < 4; round++) {
      const proxy = proxies[round % 2] as StallingProxy;
      await pause(1000);
      if (round < 2) proxy.stall();
      else proxy.drop();
      await pause(1000);
      proxy.heal();
      await admin.client('KILL', 'TYPE', 'PUBSUB');
    }
    await until(() => load.writes > 10 && load.hits > 50, 60_000);
    await load.end();
    expect(load.stale).toEqual([]);
  });

  it('a process that was stopped sends no stale value when it continues', async () => {
    const load = new Load();
    for (let count = 0; count < 50; count++) for (const process of [0, 1]) await load.read(process, 0);
    const stopped = processes[1] as Running;
    stopped.signal('SIGSTOP');
    await load.write(0, 0);
    // The requests wait in the socket until the process continues.
    const reads = Array.from({ length: 20 }, () => load.read(1, 0));
    await pause(100);
    stopped.signal('SIGCONT');
    await Promise.all(reads);
    expect(load.stale).toEqual([]);
    expect(load.writes).toBe(1);
  });

  it('a process that was killed does not hold up an acknowledgement', async () => {
    const load = new Load();
    for (const process of [0, 1]) await load.read(process, 1);
    await (processes[1] as Running).stop('SIGKILL');
    await load.write(0, 1);
    expect(load.writes).toBe(1);
    await load.read(0, 1);
    expect(load.stale).toEqual([]);
    processes[1] = await startProcess((proxies[1] as StallingProxy).url, 'redis');
  });
});

describe('two processes with a pubsub', () => {
  beforeAll(() => start('memory'));
  afterAll(stop);

  const url = (process: number): string => (processes[process] as Running).url;
  const read = async (process: number): Promise<{ value: number; isHit: boolean }> => {
    const response = await fetch(
      `${url(process)}/graphql?query=${encodeURIComponent('{ value(key: "k") }')}`,
    );
    const { data } = (await response.json()) as { data: { value: number } };
    return { value: data.value, isHit: response.headers.has('age') };
  };
  /** Reads until a result is what a test waits for. */
  const readUntil = async (
    process: number,
    isExpected: (read: { value: number; isHit: boolean }) => boolean,
  ) => {
    while (!isExpected(await read(process))) await pause(10);
  };
  const write = (process: number, value: number): Promise<Response> =>
    fetch(`${url(process)}/write?key=k&value=${value}`, { method: 'POST' });

  it('an invalidation in one process removes the stored result of the other', async () => {
    for (let value = 1; value <= 10; value++) {
      const [writer, other] = [value % 2, 1 - (value % 2)];
      await readUntil(other, ({ isHit }) => isHit);
      expect((await write(writer, value)).ok).toBe(true);
      expect((await read(writer)).value).toBe(value);
      await readUntil(other, (result) => result.value === value);
    }
  });

  it('a process that lost its connection sends no result from before when it is connected again', async () => {
    await readUntil(1, ({ isHit }) => isHit);
    (proxies[1] as StallingProxy).drop();
    expect((await write(0, 100)).ok).toBe(true);
    (proxies[1] as StallingProxy).heal();
    await readUntil(1, ({ value }) => value === 100);
    await readUntil(1, ({ isHit }) => isHit);
    expect((await read(1)).value).toBe(100);
  });
});
