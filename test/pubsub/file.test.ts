/** @tags node-lines */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createPubSub, file, type PubSub } from '../../middleware/pubsub.ts';
import { testTransport } from '../../middleware/testing.ts';
import { mountDisk, withDisks } from '../disks.ts';
import { makeFolder } from '../kit.ts';
import { until } from '../until.ts';

const folder = makeFolder();
let files = 0;
const newFile = (): string => join(folder, `${++files}.db`);

const opened: PubSub<Record<string, unknown>>[] = [];
function create(path: string, limits = {}): PubSub<Record<string, unknown>> {
  const pubsub = createPubSub({ transport: file(path), history: limits, onError: false });
  opened.push(pubsub);
  return pubsub;
}

afterEach(() => Promise.all(opened.splice(0).map((each) => each.close())));

/** Reads the events that are stored after a cursor. */
async function storedAfter(pubsub: PubSub<Record<string, unknown>>, after: string): Promise<unknown[]> {
  const last = Symbol('last').toString();
  await pubsub.publish('topic', last);
  const values: unknown[] = [];
  for await (const value of pubsub.subscribe('topic', { after })) {
    if (value === last) break;
    values.push(value);
  }
  return values;
}

async function startCursor(pubsub: PubSub<Record<string, unknown>>, topic = 'topic'): Promise<string> {
  const stream = pubsub.subscribe(topic);
  await stream.started?.();
  await stream.return();
  return stream.startCursor as string;
}

const REFUSED = { code: 'ERR_OPTION' };

if (Number(process.versions.node.split('.')[0]) < 24) {
  it('file says which version of Node it needs', () => {
    expect(() => create(newFile())).toThrow(/needs the module "node:sqlite" of Node 24 or later/);
    expect(() => create(newFile())).toThrow(expect.objectContaining(REFUSED));
  });
} else {
  describe('file', () => {
    it('passes testTransport', async () => {
      const path = newFile();
      const transport = () => file(path);
      expect(await testTransport(transport, { single: true })).toContain('the history is read without a gap');
    });

    it('keeps the events of a process that has ended, and continues their order', async () => {
      const file = newFile();
      const first = create(file);
      const cursor = await startCursor(first);
      await Promise.all([1, 2].map((n) => first.publish('topic', n)));
      await first.publish('other', 'x');
      await first.close();
      const second = create(file);
      await second.publish('topic', 3);
      expect(await storedAfter(second, cursor)).toEqual([1, 2, 3]);
      expect((await second.stats()).streams).toBe(0);
    });

    it('keeps `length` events of each topic, or an eighth more', async () => {
      const pubsub = create(newFile(), { length: 16 });
      const cursor = await startCursor(pubsub);
      for (let n = 0; n < 100; n++) await pubsub.publish('topic', n);
      const stream = pubsub.subscribe('topic');
      await stream.started?.();
      const { length } = (await pubsub.stats()).topics['topic'] ?? { length: 0 };
      expect(length).toBeGreaterThanOrEqual(16);
      expect(length).toBeLessThanOrEqual(18);
      await expect(pubsub.subscribe('topic', { after: cursor }).next()).rejects.toMatchObject({
        code: 'ERR_EVENTS_MISSED',
      });
    });

    it('removes events that are older than `age` from the file', async () => {
      const LIMITS = { ttl: 100, length: 5000 };
      const file = newFile();
      const pubsub = create(file, LIMITS);
      const cursor = await startCursor(pubsub);
      await Promise.all(Array.from({ length: 2000 }, (_, n) => pubsub.publish('topic', n)));
      const stream = pubsub.subscribe('topic');
      await stream.started?.();
      while ((await pubsub.stats()).topics['topic']?.length !== 0) await pause(50);
      await expect(pubsub.subscribe('topic', { after: cursor }).next()).rejects.toMatchObject({
        code: 'ERR_EVENTS_MISSED',
      });
      await pubsub.close();
      while (rowsOf(file) > 0) {
        const again = create(file, LIMITS);
        await pause(150);
        await again.close();
      }
    });

    it('forgets topics that had no event for a week, and continues after their last event', async () => {
      const file = newFile();
      const first = create(file);
      await first.publish('topic', 1);
      const middle = await startCursor(first);
      await first.publish('topic', 2);
      const newest = await startCursor(first);
      const before = await startCursor(first, 'other');
      await first.close();
      const weekAgo = Date.now() - 8 * 24 * 60 * 60 * 1000;
      for (const table of ['events', 'channels'])
        change(file, `UPDATE espalier_${table} SET time = ${weekAgo}`);
      const second = create(file, { ttl: 100 });
      while ((await startCursor(second, 'other')) === before) await pause(20);
      await second.close();
      expect(rowsOf(file, 'channels')).toBe(0);
      const third = create(file);
      for (const [topic, after] of [
        ['topic', middle],
        ['other', before],
      ] as const) {
        await expect(third.subscribe(topic, { after }).next()).rejects.toMatchObject({
          code: 'ERR_EVENTS_MISSED',
        });
      }
      expect(await storedAfter(third, newest)).toEqual([]);
    });

    it('never uses a number again, so that clients learn of events that the file has lost', async () => {
      const file = newFile();
      const first = create(file);
      await first.publish('topic', 1);
      await first.close();
      // A power failure removes the last events, as does a copy that is put back.
      copyFileSync(file, `${file}.copy`);
      const second = create(file);
      const kept = await startCursor(second);
      await second.publish('topic', 'lost');
      const lost = await startCursor(second);
      await second.close();
      copyFileSync(`${file}.copy`, file);
      const third = create(file);
      const missed = { code: 'ERR_EVENTS_MISSED' };
      await expect(third.subscribe('topic', { after: lost }).next()).rejects.toMatchObject(missed);
      await third.publish('topic', 2);
      await expect(third.subscribe('topic', { after: lost }).next()).rejects.toMatchObject(missed);
      expect(await storedAfter(third, kept)).toEqual([2]);
    });

    it('gives EVENTS_MISSED for cursors of another file, and for any text', async () => {
      const cursor = await startCursor(create(newFile()));
      const other = create(newFile());
      await other.publish('topic', 1);
      for (const after of [cursor, 'topic=0-0', 'topic=x', 'topic=-', 'topic=1-2-3']) {
        await expect(other.subscribe('topic', { after }).next()).rejects.toMatchObject({
          code: 'ERR_EVENTS_MISSED',
        });
      }
    });

    it('refuses a file of another kind, a directory, and a file in a missing directory', () => {
      const text = newFile();
      writeFileSync(text, 'not a database, but a text of some length '.repeat(100));
      const missing = join(folder, 'missing', 'events.db');
      for (const [file, reason] of [
        [text, 'file is not a database'],
        [folder, 'unable to open database file'],
        [missing, 'ENOENT: no such file or directory'],
      ] as const) {
        expect(() => create(file)).toThrow(`cannot be opened as a database of SQLite: ${reason}`);
        expect(() => create(file)).toThrow(expect.objectContaining(REFUSED));
      }
    });

    it('refuses a file that another process uses, and waits for one that is about to end', async () => {
      const file = newFile();
      const server = new Server(file);
      await server.start();
      expect(() => create(file)).toThrow(/another createPubSub uses/);
      expect(await server.emit(1)).toBe(true);
      // The shell kills the other process while this one waits in create().
      spawn('sh', ['-c', `sleep 0.5; kill -KILL ${server.pid}`]);
      await create(file).publish('topic', 1);
    }, 60_000);

    it('publishes all events that were waiting when it is closed, and rejects later ones', async () => {
      const file = newFile();
      const first = create(file);
      const cursor = await startCursor(first);
      const published = first.publish('topic', 1);
      await first.close();
      await published;
      await expect(first.publish('topic', 2)).rejects.toThrow('closed');
      expect(await storedAfter(create(file), cursor)).toEqual([1]);
    });

    withDisks('rejects publishes while the disk is full, and continues when there is space', async () => {
      const disk = mountDisk('1m');
      try {
        const filler = join(disk.path, 'filler');
        writeFileSync(filler, Buffer.alloc(512 * 1024));
        const file = join(disk.path, 'events.db');
        const pubsub = create(file);
        const cursor = await startCursor(pubsub);
        const received: unknown[] = [];
        const stream = pubsub.subscribe('topic');
        const reading = (async () => {
          for await (const value of stream) received.push((value as { readonly n: number }).n);
        })();
        const stored: number[] = [];
        const refused: Error[] = [];
        for (let n = 0; n < 100; n++) {
          const published = pubsub.publish('topic', { n, text: 'x'.repeat(10_000) });
          await published.then(
            () => stored.push(n),
            (error: Error) => refused.push(error),
          );
        }
        expect(refused.length).toBeGreaterThan(0);
        expect(refused[0]?.message).toMatch(/could not be stored in .*full/);
        rmSync(filler);
        await pubsub.publish('topic', { n: 100 });
        const values = (await storedAfter(pubsub, cursor)) as { readonly n: number }[];
        expect(values.map(({ n }) => n)).toEqual([...stored, 100]);
        await until(() => received.length > stored.length);
        expect(received.slice(0, stored.length + 1)).toEqual([...stored, 100]);
        await pubsub.close();
        await reading;
        disk.remount('ro');
        expect(() => create(file)).toThrow(/cannot be opened as a database of SQLite: EROFS: read-only/);
      } finally {
        disk.unmount();
      }
    });

    withDisks(
      'works again on a full disk when events have expired, also after a restart',
      async () => {
        const disk = mountDisk('8m');
        try {
          const file = join(disk.path, 'events.db');
          let shift = 0;
          const now = Date.now;
          jest.spyOn(Date, 'now').mockImplementation(() => now() + shift);
          const limits = { ttl: '1h', length: 100_000 };
          const publishes = (pubsub: PubSub<Record<string, unknown>>) =>
            pubsub.publish('topic', 'x'.repeat(10_000)).then(
              () => true,
              () => false,
            );
          const fill = async (pubsub: PubSub<Record<string, unknown>>) => {
            while ((await Promise.all(Array.from({ length: 100 }, () => publishes(pubsub)))).includes(true));
            while (await publishes(pubsub));
            // Another program takes what is left.
            const filler = join(disk.path, 'filler');
            for (let size = 65_536; size >= 1; size /= 2) {
              try {
                appendFileSync(filler, Buffer.alloc(size));
                size *= 2;
              } catch {}
            }
            expect(await publishes(pubsub)).toBe(false);
            shift += 2 * 60 * 60 * 1000;
          };
          let pubsub = create(file, limits);
          for (let restarts = 0; restarts < 2; restarts++) {
            await fill(pubsub);
            expect(await publishes(pubsub)).toBe(true);
            await fill(pubsub);
            await pubsub.close();
            pubsub = create(file, limits);
            expect(await publishes(pubsub)).toBe(true);
          }
          await pubsub.close();
        } finally {
          jest.restoreAllMocks();
          disk.unmount();
        }
      },
      60_000,
    );

    it('reads about a megabyte in one turn of the event loop, however large the events are', async () => {
      const transport = file(newFile());
      transport.open({ message() {}, gap() {}, lost() {}, refused() {}, error() {} });
      const start = (await transport.history?.newest('large')) as string;
      const payload = JSON.stringify('x'.repeat(200_000));
      await Promise.all(Array.from({ length: 60 }, () => transport.publish('large', payload)));
      let turns = 0;
      let isOver = false;
      const count = (): void => {
        turns++;
        if (!isOver) setImmediate(count);
      };
      count();
      const pages = await Promise.all(
        Array.from({ length: 20 }, () => transport.history?.read('large', start, 256)),
      );
      isOver = true;
      for (const page of pages) expect(page).toHaveLength(6);
      expect(turns).toBeGreaterThanOrEqual(20);
      await transport.close();
    });

    it('a client that continues before the first event of a topic learns that the file was removed', async () => {
      const file = newFile();
      const first = create(file);
      const cursor = await startCursor(first);
      await first.publish('topic', 1);
      await first.close();
      rmSync(file);
      const second = create(file);
      const missed = { code: 'ERR_EVENTS_MISSED' };
      await expect(second.subscribe('topic', { after: cursor }).next()).rejects.toMatchObject(missed);
      await second.publish('topic', 2);
      await expect(second.subscribe('topic', { after: cursor }).next()).rejects.toMatchObject(missed);
    });

    it('a client with a cursor gets every event once and in order while the server is killed again and again', async () => {
      const file = newFile();
      const server = new Server(file);
      await server.start();
      const client = new StreamClient(() => server.port);
      await client.connect();
      const acknowledged: number[] = [];
      let isOver = false;
      const publishing = (async () => {
        for (let n = 0; !isOver; n++) if (await server.emit(n)) acknowledged.push(n);
      })();
      for (let kills = 0; kills < 3; kills++) {
        const count = client.received.length;
        await until(() => client.received.length > count + 20);
        await server.kill();
        await server.start();
        await client.connect();
      }
      isOver = true;
      await publishing;
      await until(() => client.received.at(-1) === acknowledged.at(-1));
      const received = new Set(client.received);
      expect(acknowledged.filter((n) => !received.has(n))).toEqual([]);
      expect(client.received).toEqual([...received].sort((a, b) => a - b));
      await server.kill();
    }, 120_000);
  });
}

interface Database {
  exec(sql: string): void;
  prepare(sql: string): { get(): { readonly n: number } };
  close(): void;
}

/** Opens a file that no pubsub uses. */
function open(file: string): Database {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite' as 'node:fs') as unknown as {
    DatabaseSync: new (path: string) => Database;
  };
  return new DatabaseSync(file);
}

function change(file: string, sql: string): void {
  const database = open(file);
  database.exec(sql);
  database.close();
}

function rowsOf(file: string, table: 'events' | 'channels' = 'events'): number {
  const database = open(file);
  const { n } = database.prepare(`SELECT count(*) AS n FROM espalier_${table}`).get();
  database.close();
  return n;
}

class Server {
  port = 0;
  readonly #file: string;
  #process: ChildProcess | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  async start(): Promise<void> {
    const child = fork(join(__dirname, 'file-process.ts'), [this.#file], { execArgv: ['--import', 'tsx'] });
    this.#process = child;
    [this.port] = (await once(child, 'message')) as [number];
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  async kill(): Promise<void> {
    const exited = once(this.#process as ChildProcess, 'exit');
    this.#process?.kill('SIGKILL');
    await exited;
  }

  /** Whether the server has answered that the event is published. */
  async emit(n: number): Promise<boolean> {
    try {
      const response = await fetch(`http://127.0.0.1:${this.port}/`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query: `mutation { emit(n: ${n}) }` }),
      });
      return (await response.json()).data?.emit === n;
    } catch {
      return false;
    }
  }
}

/** A client of an event stream, which continues after the last id that it has received. */
class StreamClient {
  readonly received: number[] = [];
  readonly #port: () => number;
  #lastId: string | undefined;

  constructor(port: () => number) {
    this.#port = port;
  }

  /** Resolves when the stream is open. */
  async connect(): Promise<void> {
    const query = encodeURIComponent('subscription { count }');
    const response = await fetch(`http://127.0.0.1:${this.#port()}/?query=${query}`, {
      headers: {
        accept: 'text/event-stream',
        ...(this.#lastId === undefined ? {} : { 'last-event-id': this.#lastId }),
      },
    });
    expect(response.status).toBe(200);
    void this.#read(response).catch(() => undefined);
    await until(() => this.#lastId !== undefined);
  }

  async #read(response: Response): Promise<void> {
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const id = /^id: ?(.+)$/m.exec(block)?.[1];
        if (id !== undefined) this.#lastId = id;
        const n = /"count":(\d+)/.exec(block)?.[1];
        if (n !== undefined) this.received.push(Number(n));
      }
    }
  }
}
