import { randomInt } from 'node:crypto';
import { accessSync, constants, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname, resolve as resolvePath } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  EventLink,
  HistorySettings,
  StoredMessage,
  TopicStats,
  TransportHistory,
  TransportListener,
} from '../../types/pubsub.ts';
import { isPath, optionError, wrongArgument } from '../options/rules.ts';
import { FILE_OPTIONS } from '../options/scopes.ts';
import { DEFAULT_LIMITS, IDLE_MILLISECONDS, PAGE_BYTES } from './history.ts';
import { LocalPresence } from './presence-store.ts';
import { type Engine, refusal } from './transport.ts';

/** The parts of `node:sqlite` that are used here. */
interface Statement {
  run(...values: readonly (string | number)[]): unknown;
  get(...values: readonly (string | number)[]): object | undefined;
  iterate(...values: readonly (string | number)[]): Iterable<object>;
}
interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}
interface Sqlite {
  DatabaseSync: new (path: string, options: { readonly timeout: number }) => Database;
}

interface Waiting {
  readonly channel: string;
  readonly payload: string;
  resolve(): void;
  reject(error: Error): void;
}

interface Row {
  readonly number: number;
  readonly previous: number;
  readonly time: number;
  readonly payload: string;
  readonly bytes: number;
}

interface Numbers {
  readonly floor: number;
  readonly last: number;
}

type Statements = Readonly<Record<keyof typeof STATEMENTS, Statement>>;

/** The first line of Node whose `node:sqlite` is complete. */
const LEAST_NODE = 24;
/** Milliseconds that the process waits at its start for another one that is about to end. */
const LOCK_TIMEOUT = 5000;
const SWEEP_MILLISECONDS = 60_000;
/** Rows that one sweep removes at a time, and bytes of payloads: the event loop waits for it. */
const SWEEP_ROWS = 500;
const STEP_BYTES = 4 * 1024 * 1024;
/** Bytes by which the file grows: the first step for which the disk has space. */
const GROWTH = [STEP_BYTES, STEP_BYTES / 8, STEP_BYTES / 64];
const SQLITE_FULL = 13;
const isFull = (error: unknown): boolean => (error as { errcode?: unknown }).errcode === SQLITE_FULL;
/** Rows that a sweep removes while the disk is full. */
const FEW_ROWS = 16;

/** The lowest limit: the pages that the file has. */
const NO_GROWTH = 'PRAGMA max_page_count = 1';

// A number is never used again: not in another channel, not in another file, and not after a failure of the system that
// lost the last events. Therefore each start continues from the time. `floor` is the number before the first event of a
// channel: the start of the file, or the highest number of the channels that were forgotten. `locking_mode` comes first,
// so that SQLite needs no shared memory, and a second process cannot use the file. With `synchronous = NORMAL` a commit
// is in the page cache of the system when it returns: only a failure of the system can lose the last ones. The file grows
// only in `#grow`, and the journal keeps its space, so that old events can be removed while the disk is full.
const open = (now: number): string => `
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  PRAGMA journal_size_limit = ${STEP_BYTES};
  BEGIN EXCLUSIVE;
  CREATE TABLE IF NOT EXISTS espalier_file (floor INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS espalier_channels
    (channel TEXT PRIMARY KEY, newest INTEGER NOT NULL, time INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS espalier_events
    (number INTEGER PRIMARY KEY, channel TEXT NOT NULL, previous INTEGER NOT NULL, time INTEGER NOT NULL,
     payload TEXT NOT NULL);
  CREATE INDEX IF NOT EXISTS espalier_events_channel ON espalier_events (channel, number);
  INSERT INTO espalier_file SELECT ${now} WHERE NOT EXISTS (SELECT 1 FROM espalier_file);
  DELETE FROM espalier_events WHERE number < 0;
  COMMIT;
  PRAGMA wal_checkpoint;
  ${NO_GROWTH};
`;

const STATEMENTS = {
  newest: 'SELECT newest FROM espalier_channels WHERE channel = ?',
  insert: 'INSERT INTO espalier_events VALUES (?, ?, ?, ?, ?)',
  setNewest:
    'INSERT INTO espalier_channels VALUES (?, ?, ?) ' +
    'ON CONFLICT (channel) DO UPDATE SET newest = excluded.newest, time = excluded.time',
  read: 'SELECT * FROM espalier_events WHERE channel = ? AND number > ? ORDER BY number LIMIT ?',
  kept: 'SELECT number FROM espalier_events WHERE channel = ? ORDER BY number DESC LIMIT 1 OFFSET ?',
  trim: 'DELETE FROM espalier_events WHERE channel = ? AND number < ?',
  extent:
    'SELECT count(*) AS length, min(time) AS oldest FROM espalier_events WHERE channel = ? AND time >= ?',
  oldest: 'SELECT number, time, octet_length(payload) AS bytes FROM espalier_events ORDER BY number LIMIT ?',
  enlarge: "INSERT INTO espalier_events VALUES (-1, '', 0, 0, zeroblob(?))",
  empty: 'DELETE FROM espalier_events WHERE number = -1',
  free: 'SELECT freelist_count * page_size AS free FROM pragma_freelist_count, pragma_page_size',
  expire: 'DELETE FROM espalier_events WHERE number <= ?',
  floor:
    'UPDATE espalier_file SET floor = max(floor, (SELECT coalesce(max(newest), 0) FROM espalier_channels WHERE time < ?))',
  forget: 'DELETE FROM espalier_channels WHERE time < ?',
  numbers:
    'SELECT floor, max(floor, (SELECT coalesce(max(newest), 0) FROM espalier_channels)) AS last FROM espalier_file',
} as const;

/**
 * Stores the events of one process in a file of SQLite, so that a restart loses none. Publishes of one turn of the event
 * loop are one transaction, and events are delivered after its commit.
 */
export class FileTransport implements Engine {
  readonly name = 'SQLite';
  readonly history: TransportHistory;
  readonly presence: LocalPresence = new LocalPresence((channel, change) =>
    this.publish(channel, JSON.stringify(change)),
  );
  readonly #path: string;
  #limits: HistorySettings = DEFAULT_LIMITS;
  #database!: Database;
  #statements!: Statements;
  #floor = 0;
  /** The number of the newest event of all channels. */
  #last = 0;
  readonly #channels = new Set<string>();
  /** Events since the last time that a channel was trimmed. A large one counts as many. */
  readonly #untrimmed = new Map<string, number>();
  #sweeper: NodeJS.Timeout | undefined;
  #waiting: Waiting[] = [];
  #reading: Promise<unknown> = Promise.resolve();
  #listener: TransportListener | undefined;
  #isClosed = false;

  constructor(path: string) {
    if (!isPath(path)) throw wrongArgument(FILE_OPTIONS, 'path', path, 'the path of a file');
    this.#path = resolvePath(path);
    this.history = {
      newest: (channel) => this.#read(() => String(this.#newest(channel))),
      read: (channel, after, limit) => this.#inTurn(() => this.#following(channel, after, limit)),
      extent: (channel) => this.#read(() => this.#extent(channel)),
    };
  }

  /** @throws TypeError (code `ERR_OPTION`) if the file cannot be used. */
  open(listener: TransportListener, limits: HistorySettings = DEFAULT_LIMITS): void {
    this.#listener = listener;
    this.#limits = limits;
    // Microseconds, so that no earlier start can have reached the number.
    const now = Date.now() * 1000 + randomInt(1000);
    [this.#database, this.#statements] = this.#open(now);
    const { floor, last } = this.#statements.numbers.get() as Numbers;
    this.#floor = floor;
    this.#last = Math.max(last, now);
    this.#sweeper = setInterval(() => this.#sweep(), Math.min(limits.ttl, SWEEP_MILLISECONDS)).unref();
  }

  publish(channel: string, payload: string): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(closed());
      if (this.#waiting.length === 0) setImmediate(() => this.#flush());
      this.#waiting.push({ channel, payload, resolve, reject });
    });
  }

  async subscribe(channel: string): Promise<void> {
    if (this.#isClosed) throw closed();
    this.#channels.add(channel);
  }

  unsubscribe(channel: string): void {
    this.#channels.delete(channel);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    while (this.#waiting.length > 0) this.#flush();
    this.#isClosed = true;
    clearInterval(this.#sweeper);
    this.#channels.clear();
    this.#database.close();
  }

  #open(now: number): readonly [Database, Statements] {
    const fail = (reason: string): TypeError =>
      optionError(FILE_OPTIONS, `the path is ${JSON.stringify(this.#path)}, ${reason}`);
    const line = Number(process.versions.node.split('.')[0]);
    const sqlite =
      line < LEAST_NODE ? undefined : (process.getBuiltinModule('node:sqlite') as Sqlite | undefined);
    if (sqlite === undefined) {
      throw fail(
        `which needs the module "node:sqlite" of Node ${LEAST_NODE} or later, and this is Node ${process.versions.node}; ` +
          'update Node, or use redis or postgres',
      );
    }
    let database: Database | undefined;
    try {
      // SQLite says only that it cannot open the file.
      accessSync(dirname(this.#path), constants.W_OK);
      rmSync(this.#space, { force: true });
      const opened = new sqlite.DatabaseSync(this.#path, { timeout: LOCK_TIMEOUT });
      database = opened;
      opened.exec(open(now));
      const prepared = Object.entries(STATEMENTS).map(([name, sql]) => [name, opened.prepare(sql)]);
      return [opened, Object.fromEntries(prepared)];
    } catch (error) {
      database?.close();
      const { message } = error as Error;
      if (/locked|busy/.test(message))
        throw fail(
          'which another createPubSub uses; give each process its own file, or use redis or postgres',
        );
      throw fail(`which cannot be opened as a database of SQLite: ${message}`);
    }
  }

  #newest(channel: string): number {
    const row = this.#statements.newest.get(channel) as { readonly newest: number } | undefined;
    return row?.newest ?? this.#floor;
  }

  /** A failed read ends the streams that wait for it. */
  async #read<T>(read: () => T): Promise<T> {
    if (this.#isClosed) throw closed();
    try {
      return read();
    } catch (error) {
      throw refusal(`Cannot read the events of ${this.#path}`, error as Error);
    }
  }

  /** One page in each turn of the event loop, which waits for it. */
  #inTurn<T>(read: () => T): Promise<T> {
    const page = this.#reading.then(() => nextTurn()).then(() => this.#read(read));
    this.#reading = page.catch(() => undefined);
    return page;
  }

  #following(channel: string, after: string, limit: number): readonly StoredMessage[] | 'missed' {
    if (after === String(this.#newest(channel))) return [];
    const page: StoredMessage[] = [];
    let size = 0;
    for (const row of this.#statements.read.iterate(channel, Number(after), limit) as Iterable<Row>) {
      const { number, previous, time, payload } = row;
      // Older events may not have been swept yet, and are not given to one stream and denied to the next.
      if (page.length === 0 && (String(previous) !== after || time < this.#cutoff)) break;
      page.push({ id: String(number), payload });
      size += payload.length;
      if (size > PAGE_BYTES) break;
    }
    return page.length === 0 ? 'missed' : page;
  }

  #extent(channel: string): TopicStats {
    const { length, oldest } = this.#statements.extent.get(channel, this.#cutoff) as {
      readonly length: number;
      readonly oldest: number | null;
    };
    return { length, oldest: oldest ?? undefined };
  }

  /** A file that takes space for a moment. A killed process may leave it. */
  get #space(): string {
    return `${this.#path}-space`;
  }

  get #cutoff(): number {
    return Date.now() - this.#limits.ttl;
  }

  /** Stores the events that wait, at most a step of them at a time: all of these or none. */
  #flush(): void {
    let size = 0;
    const end = this.#waiting.findIndex(({ payload }, index) => {
      size += payload.length;
      return index > 0 && size > STEP_BYTES;
    });
    const waiting = this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
    if (waiting.length === 0) return;
    if (this.#waiting.length > 0) setImmediate(() => this.#flush());
    let links: readonly EventLink[];
    try {
      links = this.#store(waiting, size);
    } catch (cause) {
      const message = `The event could not be stored in ${this.#path}: ${(cause as Error).message}`;
      for (const { reject } of waiting) reject(new Error(message, { cause }));
      return;
    }
    for (const [index, { channel, payload, resolve }] of waiting.entries()) {
      resolve();
      if (this.#channels.has(channel)) this.#listener?.message(channel, payload, links[index]);
    }
  }

  #store(waiting: readonly Waiting[], size: number): readonly EventLink[] {
    for (let isWritten = false; ; isWritten = true) {
      try {
        return this.#transaction(() => {
          const time = Date.now();
          return waiting.map(({ channel, payload }) => this.#append(channel, payload, time));
        });
      } catch (error) {
        if (!isFull(error)) throw error;
        if (!isWritten) this.#database.exec('PRAGMA wal_checkpoint');
        else if (this.#expire().count === 0 && !this.#grow(size)) throw error;
      }
    }
  }

  /**
   * Adds free pages to the file, if the disk has space for them there and in the journal. SQLite itself would use the last
   * space for the journal. The events in it could not be written to the file, and nothing could be removed any more.
   */
  #grow(size: number): boolean {
    // The free pages that there are do not suffice, and would be used first.
    const { free } = this.#statements.free.get() as { readonly free: number };
    for (const step of GROWTH) {
      const bytes = free + (step === STEP_BYTES ? Math.max(step, size * 2) : step);
      try {
        const { bavail, bsize } = statfsSync(dirname(this.#path));
        if (bavail * bsize < bytes * 2) continue;
        try {
          // A quota may be lower than the free space.
          writeFileSync(this.#space, Buffer.alloc(bytes * 2));
        } finally {
          rmSync(this.#space, { force: true });
        }
        this.#database.exec('PRAGMA max_page_count = 4294967294');
        this.#statements.enlarge.run(bytes);
        this.#database.exec('PRAGMA wal_checkpoint');
        this.#statements.empty.run();
        return true;
      } catch {
        // A smaller step may fit.
      } finally {
        this.#database.exec(NO_GROWTH);
      }
    }
    return false;
  }

  #append(channel: string, payload: string, time: number): EventLink {
    const previous = this.#newest(channel);
    const number = ++this.#last;
    this.#statements.insert.run(number, channel, previous, time, payload);
    this.#statements.setNewest.run(channel, number, time);
    this.#trim(channel, payload.length);
    return { id: String(number), previous: String(previous) };
  }

  /** Removes events above the limit, in steps: each publish would search for the last one that is kept. */
  #trim(channel: string, size: number): void {
    const { length } = this.#limits;
    const step = length / 8;
    const count = (this.#untrimmed.get(channel) ?? length) + 1 + (size / STEP_BYTES) * step;
    this.#untrimmed.set(channel, count);
    if (count < step) return;
    this.#untrimmed.set(channel, 0);
    const kept = this.#statements.kept.get(channel, length - 1) as Row | undefined;
    if (kept !== undefined) this.#statements.trim.run(channel, kept.number);
  }

  #transaction<T>(run: () => T): T {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      const result = run();
      this.#database.exec('COMMIT');
      return result;
    } catch (error) {
      // SQLite has rolled back by itself after some errors, such as a full disk.
      try {
        this.#database.exec('ROLLBACK');
      } catch {}
      throw error;
    }
  }

  /** Removes events that are too old, and then channels that had no event for a long time. */
  #sweep(): void {
    try {
      if (this.#expire().isStep) setImmediate(() => this.#isClosed || this.#sweep());
      else this.#forget(this.#cutoff - IDLE_MILLISECONDS);
    } catch (error) {
      this.#listener?.error(error as Error);
    }
  }

  /** Removes events that are too old. `isStep` says that it has stopped before others of them. */
  #expire(rows = SWEEP_ROWS): { readonly count: number; readonly isStep: boolean } {
    const cutoff = this.#cutoff;
    let [count, size, last] = [0, 0, 0];
    for (const { number, time, bytes } of this.#statements.oldest.iterate(rows) as Iterable<Row>) {
      if (time >= cutoff || size > STEP_BYTES) break;
      count++;
      size += bytes;
      last = number;
    }
    try {
      if (count > 0) this.#statements.expire.run(last);
    } catch (error) {
      if (!isFull(error) || rows < SWEEP_ROWS) throw error;
      // The journal begins again when all of it is in the file.
      this.#database.exec('PRAGMA wal_checkpoint');
      return this.#expire(FEW_ROWS);
    }
    return { count, isStep: count === rows || size > STEP_BYTES };
  }

  #forget(before: number): void {
    this.#untrimmed.clear();
    this.#transaction(() => {
      this.#statements.floor.run(before);
      this.#statements.forget.run(before);
    });
    ({ floor: this.#floor } = this.#statements.numbers.get() as Numbers);
  }
}

const closed = (): Error => new Error('The pubsub was closed');
