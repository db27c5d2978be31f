import { randomInt } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { dirname, resolve as resolvePath } from 'node:path';
import type {
  EventLink,
  EventTransport,
  StoredMessage,
  TopicStats,
  TransportHistory,
  TransportListener,
} from '../../types/pubsub.ts';
import { optionError } from '../options/rules.ts';
import { HISTORY_OPTIONS } from '../options/scopes.ts';
import { type HistoryLimits, IDLE_MILLISECONDS } from './history.ts';
import { refusal } from './transport.ts';

/** The parts of `node:sqlite` that are used here. */
interface Statement {
  run(...values: readonly (string | number)[]): unknown;
  get(...values: readonly (string | number)[]): object | undefined;
  all(...values: readonly (string | number)[]): readonly object[];
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
/** Rows that one sweep removes at a time: the event loop waits for it. */
const SWEEP_ROWS = 500;

// A number is never used again: not in another channel, not in another file, and not after a failure of the system that
// lost the last events. Therefore each start continues from the time. `floor` is the number before the first event of a
// channel: the start of the file, or the highest number of the channels that were forgotten. `locking_mode` comes first,
// so that SQLite needs no shared memory, and a second process cannot use the file. With `synchronous = NORMAL` a commit
// is in the page cache of the system when it returns: only a failure of the system can lose the last ones.
const open = (now: number): string => `
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  BEGIN EXCLUSIVE;
  CREATE TABLE IF NOT EXISTS espalier_file (floor INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS espalier_channels
    (channel TEXT PRIMARY KEY, newest INTEGER NOT NULL, time INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS espalier_events
    (number INTEGER PRIMARY KEY, channel TEXT NOT NULL, previous INTEGER NOT NULL, time INTEGER NOT NULL,
     payload TEXT NOT NULL);
  CREATE INDEX IF NOT EXISTS espalier_events_channel ON espalier_events (channel, number);
  INSERT INTO espalier_file SELECT ${now} WHERE NOT EXISTS (SELECT 1 FROM espalier_file);
  COMMIT;
`;

const STATEMENTS = {
  newest: 'SELECT newest FROM espalier_channels WHERE channel = ?',
  insert: 'INSERT INTO espalier_events VALUES (?, ?, ?, ?, ?)',
  setNewest:
    'INSERT INTO espalier_channels VALUES (?, ?, ?) ' +
    'ON CONFLICT (channel) DO UPDATE SET newest = excluded.newest, time = excluded.time',
  read: 'SELECT * FROM espalier_events WHERE channel = ? AND number > ? ORDER BY number LIMIT ?',
  kept: 'SELECT * FROM espalier_events WHERE channel = ? ORDER BY number DESC LIMIT 1 OFFSET ?',
  trim: 'DELETE FROM espalier_events WHERE channel = ? AND number < ?',
  extent:
    'SELECT count(*) AS length, min(time) AS oldest FROM espalier_events WHERE channel = ? AND time >= ?',
  oldest: 'SELECT number, time FROM espalier_events ORDER BY number LIMIT ?',
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
export class FileTransport implements EventTransport {
  readonly name = 'SQLite';
  readonly history: TransportHistory;
  readonly #limits: HistoryLimits;
  readonly #path: string;
  readonly #database: Database;
  readonly #statements: Statements;
  #floor: number;
  /** The number of the newest event of all channels. */
  #last: number;
  readonly #channels = new Set<string>();
  /** Events since the last time that a channel was trimmed. */
  readonly #untrimmed = new Map<string, number>();
  readonly #sweeper: NodeJS.Timeout;
  #waiting: Waiting[] = [];
  #listener: TransportListener | undefined;
  #isClosed = false;

  /** @throws TypeError (code `ERR_OPTION`) if the file cannot be used. */
  constructor(file: string, limits: HistoryLimits) {
    this.#path = resolvePath(file);
    this.#limits = limits;
    // Microseconds, so that no earlier start can have reached the number.
    const now = Date.now() * 1000 + randomInt(1000);
    [this.#database, this.#statements] = this.#open(now);
    const { floor, last } = this.#statements.numbers.get() as Numbers;
    this.#floor = floor;
    this.#last = Math.max(last, now);
    this.history = {
      newest: (channel) => this.#read(() => String(this.#newest(channel))),
      read: (channel, after, limit) => this.#read(() => this.#following(channel, after, limit)),
      extent: (channel) => this.#read(() => this.#extent(channel)),
    };
    this.#sweeper = setInterval(() => this.#sweep(), Math.min(limits.age, SWEEP_MILLISECONDS)).unref();
  }

  open(listener: TransportListener): void {
    this.#listener = listener;
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
    this.#flush();
    this.#isClosed = true;
    clearInterval(this.#sweeper);
    this.#channels.clear();
    this.#database.close();
  }

  #open(now: number): readonly [Database, Statements] {
    const fail = (reason: string): TypeError =>
      optionError(HISTORY_OPTIONS, `option "history.file" is ${JSON.stringify(this.#path)}, ${reason}`);
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

  #following(channel: string, after: string, limit: number): readonly StoredMessage[] | 'missed' {
    if (after === String(this.#newest(channel))) return [];
    const rows = this.#statements.read.all(channel, Number(after), limit) as readonly Row[];
    const [first] = rows;
    // Older events may not have been swept yet, and are not given to one stream and denied to the next.
    if (first === undefined || String(first.previous) !== after || first.time < this.#cutoff) return 'missed';
    return rows.map(({ number, payload }) => ({ id: String(number), payload }));
  }

  #extent(channel: string): TopicStats {
    const { length, oldest } = this.#statements.extent.get(channel, this.#cutoff) as {
      readonly length: number;
      readonly oldest: number | null;
    };
    return { length, oldest: oldest ?? undefined };
  }

  get #cutoff(): number {
    return Date.now() - this.#limits.age;
  }

  /** Stores the waiting events, all or none of them. */
  #flush(): void {
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    let links: readonly EventLink[];
    try {
      links = this.#transaction(() => {
        const time = Date.now();
        return waiting.map(({ channel, payload }) => this.#append(channel, payload, time));
      });
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

  #append(channel: string, payload: string, time: number): EventLink {
    const previous = this.#newest(channel);
    const number = ++this.#last;
    this.#statements.insert.run(number, channel, previous, time, payload);
    this.#statements.setNewest.run(channel, number, time);
    this.#trim(channel);
    return { id: String(number), previous: String(previous) };
  }

  /** Removes events above the limit, in steps: each publish would search for the last one that is kept. */
  #trim(channel: string): void {
    const { length } = this.#limits;
    const count = (this.#untrimmed.get(channel) ?? length) + 1;
    this.#untrimmed.set(channel, count);
    if (count < length / 8) return;
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
      const rows = this.#statements.oldest.all(SWEEP_ROWS) as readonly Row[];
      const cutoff = this.#cutoff;
      const kept = rows.findIndex(({ time }) => time >= cutoff);
      const last = rows.at(kept === -1 ? -1 : kept - 1);
      if (last !== undefined && kept !== 0) this.#statements.expire.run(last.number);
      if (kept === -1 && rows.length === SWEEP_ROWS) setImmediate(() => this.#isClosed || this.#sweep());
      else this.#forget(cutoff - IDLE_MILLISECONDS);
    } catch (error) {
      this.#listener?.error(error as Error);
    }
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
