import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { PostgresClient, PostgresOptions, PostgresPool } from '../../types/postgres.ts';
import type {
  HistorySettings,
  PublishOptions,
  StoredMessage,
  TopicStats,
  TransportHistory,
  TransportListener,
} from '../../types/pubsub.ts';
import { withTimeLimit } from '../http/timers.ts';
import {
  delay,
  optionError,
  type Rules,
  resolveOptions,
  rule,
  wrongArgument,
  wrongOption,
} from '../options/rules.ts';
import { POSTGRES_OPTIONS } from '../options/scopes.ts';
import { isFunction, isObject, isString } from '../options/values.ts';
import { DEFAULT_LIMITS, PAGE_LENGTH } from '../pubsub/history.ts';
import type { PresenceStore } from '../pubsub/presence-store.ts';
import { type Confirmation, createConfirmation, type Engine, refusal } from '../pubsub/transport.ts';
import { type Statements, SWEEP_ROWS, statementsFor } from './sql.ts';

/** A subscription, with the place of the last delivered event; undefined until PostgreSQL has confirmed it. */
type Channel = Confirmation & { place: string | undefined };

/** A row of the statement `read`. Without a following event only `newest` is set. */
interface EventRow {
  readonly channel: string;
  readonly newest: string | null;
  readonly place: string | null;
  readonly id: string;
  readonly previous: string;
  readonly payload: string;
}

interface PresenceRow {
  readonly now: string;
  readonly texts: readonly [id: string, text: string][];
}

/** Channels per statement. */
const READ_CHANNELS = 32;
const PLACE_CHANNELS = 1000;
/** An index has an entry for each channel, which PostgreSQL limits. */
const MAX_CHANNEL_BYTES = 2000;
/** Events per transaction, and characters of their payloads. */
const BATCH_LENGTH = 200;
const BATCH_SIZE = 1024 * 1024;
const MAX_RETRY_MILLISECONDS = 2000;
const SWEEP_MILLISECONDS = 60_000;

const ID = /^(\d{1,18})-\d{1,18}$/;

/**
 * Carries events over a table in PostgreSQL. A notification only says that a channel has a new event: the events are read
 * from the table, from the place of the last delivered one on.
 */
export class PostgresTransport implements Engine {
  readonly name = 'PostgreSQL';
  readonly acceptsClient = true;
  readonly history: TransportHistory;
  readonly presence: PresenceStore = {
    read: async (channel, ids) => {
      const read = () => this.#presence<PresenceRow>('read', [channel, ids ?? null]);
      const { now, texts } = await (ids === undefined ? read() : this.#inTurn(read));
      return { now: Number(now), texts: new Map(texts) };
    },
    write: async (channel, changes, event) => {
      const lists = [0, 1, 2].map((index) => changes.map((change) => change[index]));
      const values = [channel, ...lists, event === undefined ? null : JSON.stringify(event)];
      return (await this.#inTurn(() => this.#presence<{ written: boolean }>('write', values))).written;
    },
  };

  readonly #settings: PostgresSettings;
  #limits: HistorySettings = DEFAULT_LIMITS;
  readonly #statements: Statements;
  readonly #queue: PublishQueue;
  readonly #channels = new Map<string, Channel>();
  /** The channels whose place is unknown, and those that have events. */
  readonly #unplaced = new Set<string>();
  readonly #dirty = new Set<string>();
  readonly #closing = new AbortController();
  #listener!: TransportListener;
  #running: Promise<void> | undefined;
  #session: Session | undefined;
  /** Whether the events since the last session are missing. */
  #isLost = false;
  /** The session whose events are being read. */
  #draining: Session | undefined;
  #sweep: NodeJS.Timeout | undefined;
  /** Resolves when the schema exists, or the first attempt to connect has failed. */
  readonly #prepared = createConfirmation();
  #lastUpdate: Promise<unknown> = Promise.resolve();

  constructor(pool: PostgresPool, options: PostgresOptions | undefined) {
    this.#settings = resolvePostgresOptions(pool, options);
    this.#statements = statementsFor(this.#settings.schema);
    this.#queue = new PublishQueue(this.#settings, this.#statements.publish);
    this.history = {
      read: (channel, after, limit) => this.#read(channel, after, limit),
      newest: (channel, start) => this.#newest(channel, start),
      extent: async (channel): Promise<TopicStats> => {
        const [row] = await this.#query<{ length: number; oldest: string | null }>(this.#statements.extent, [
          channel,
        ]);
        const { length = 0, oldest = null } = row ?? {};
        return { length, oldest: oldest === null ? undefined : Math.round(Number(oldest)) };
      },
    };
  }

  get heartbeat(): number {
    return this.#settings.heartbeat;
  }

  get commandTimeout(): number {
    return this.#settings.commandTimeout;
  }

  open(listener: TransportListener, limits: HistorySettings = DEFAULT_LIMITS): void {
    this.#listener = listener;
    this.#limits = limits;
    for (const pool of this.#pools) {
      pool.on('error', this.#ignore);
      pool.on('connect', this.#guard);
    }
    this.#running = this.#run();
    const period = Math.min(limits.ttl, SWEEP_MILLISECONDS);
    this.#sweep = setInterval(() => void this.#removeOld(), period).unref();
  }

  async publish(channel: string, payload: string, options?: PublishOptions): Promise<void> {
    const reason = this.#isClosed ? 'The pubsub was closed' : unusable(channel);
    if (reason !== undefined) throw new Error(reason);
    const client = options?.client;
    if (client === undefined) return this.#queue.add(channel, payload);
    if (!isQueryable(client))
      throw wrongOption({ ...POSTGRES_OPTIONS, name: 'publish' }, 'client', client, 'a client of pg');
    await client.query(this.#statements.publish, [[channel], [payload]]);
  }

  async subscribe(name: string): Promise<void> {
    const reason = this.#isClosed ? 'The pubsub was closed' : unusable(name);
    if (reason !== undefined) throw new Error(reason);
    const known = this.#channels.get(name);
    if (known?.place !== undefined && (await this.#replies())) return;
    const channel = this.#channels.get(name) ?? this.#add(name);
    await channel.confirmed;
  }

  unsubscribe(name: string): void {
    this.#channels.get(name)?.resolve();
    this.#channels.delete(name);
    this.#unplaced.delete(name);
    this.#dirty.delete(name);
  }

  async close(): Promise<void> {
    const error = new Error('The pubsub was closed before PostgreSQL confirmed the subscription');
    this.#closing.abort();
    clearInterval(this.#sweep);
    for (const channel of this.#channels.values()) channel.reject(error);
    this.#channels.clear();
    this.#session?.close(error);
    await Promise.allSettled([this.#queue.settled, this.#running]);
    for (const pool of this.#pools) {
      pool.off('error', this.#ignore);
      pool.off('connect', this.#guard);
    }
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Without a listener, the error of an idle connection of the pool would end the process. The pool replaces it. */
  readonly #ignore = (): void => undefined;
  /** The same for an error that arrives with the reply to the login, before the pool has passed the connection on. */
  readonly #guard = (client: PostgresClient): void => void client.on('error', this.#ignore);

  get #pools(): ReadonlySet<PostgresPool> {
    return new Set([this.#settings.pool, this.#settings.listen]);
  }

  async #query<Row>(text: string, values: unknown[], send = queryIn<Row>): Promise<readonly Row[]> {
    const { pool, commandTimeout } = this.#settings;
    try {
      return await send(pool, commandTimeout, text, values);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      throw refusal('Cannot read the history', error as Error);
    }
  }

  async #newest(channel: string, start: string | undefined): Promise<string | undefined> {
    for (;;) {
      const [row] = await this.#query<{ newest: string }>(this.#statements.newest, [channel]);
      if (row !== undefined || start === undefined) return row?.newest;
      await this.#query(this.#statements.begin, [channel, start], writeIn);
    }
  }

  async #read(channel: string, after: string, limit: number): Promise<readonly StoredMessage[] | 'missed'> {
    const place = ID.exec(after)?.[1];
    if (place === undefined) return 'missed';
    const rows = await this.#query<EventRow>(this.#statements.read, [[channel], [place], limit]);
    const [first] = rows;
    if (first === undefined || first.place === null) return first?.newest === after ? [] : 'missed';
    return first.previous === after ? rows : 'missed';
  }

  async #presence<Row>(name: 'read' | 'write', values: Values): Promise<Row> {
    await this.#prepared.confirmed;
    if (this.#isClosed) throw new Error('The pubsub was closed');
    const { pool, commandTimeout } = this.#settings;
    const [row] = await writeIn<Row>(pool, commandTimeout, this.#statements.presence[name], values);
    return row as Row;
  }

  /** Updates of presence run one at a time: many topics leave the connections of the pool to others. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#lastUpdate.then(run);
    this.#lastUpdate = result.catch(() => undefined);
    return result;
  }

  async #replies(): Promise<boolean> {
    try {
      await this.#session?.query('SELECT 1');
      return this.#session !== undefined;
    } catch {
      // The connection is lost: the channel waits for the next one.
      await new Promise(setImmediate);
      return false;
    }
  }

  #add(name: string): Channel {
    const channel = createChannel();
    this.#channels.set(name, channel);
    this.#unplaced.add(name);
    void this.#drain();
    return channel;
  }

  async #removeOld(): Promise<void> {
    const { pool } = this.#settings;
    const { ttl, length } = this.#limits;
    try {
      for (const statement of this.#statements.sweeps) {
        for (let count = SWEEP_ROWS; count === SWEEP_ROWS && !this.#isClosed; )
          count = (await writeIn(pool, SWEEP_MILLISECONDS, statement, [ttl, length])).length;
      }
    } catch (cause) {
      // The next round repeats the removal. The connection that listens reports lost connections.
      if (this.#session !== undefined && /^\w{5}$/.test(codeOf(cause)))
        this.#listener.error(
          new Error(`Old events cannot be removed from PostgreSQL: ${(cause as Error).message}`, { cause }),
        );
    }
  }

  /** Connects, and again after each lost connection. */
  async #run(): Promise<void> {
    let reported = '';
    for (let attempt = 0; !this.#isClosed; attempt++) {
      try {
        const session = await Session.open({
          settings: this.#settings,
          statements: this.#statements,
          notified: (channel) => this.#notified(channel),
        });
        this.#prepared.resolve();
        if (await this.#begin(session)) {
          attempt = 0;
          reported = '';
        }
        const error = await session.lost;
        this.#lost();
        throw error;
      } catch (error) {
        this.#prepared.resolve();
        // A second attempt creates a schema that was dropped.
        const { message } = error as Error;
        this.#failed(error as Error, { isReported: message === reported, isFinal: attempt > 0 });
        reported = message;
      }
      const wait = Math.min(50 * 2 ** attempt, MAX_RETRY_MILLISECONDS);
      await pause(wait, undefined, { signal: this.#closing.signal }).catch(() => undefined);
    }
  }

  #failed(error: Error, { isReported, isFinal }: { isReported: boolean; isFinal: boolean }): void {
    if (this.#isClosed) return;
    if (!isReported) this.#listener.error(error);
    if (!isFinal || !isRefusal(error)) return;
    for (const [name, channel] of this.#channels) {
      const reason = refusal(`Cannot subscribe to the PostgreSQL channel "${name}"`, error);
      this.#channels.delete(name);
      this.#unplaced.delete(name);
      channel.reject(reason);
      this.#listener.refused(reason, name);
    }
  }

  /** Confirms the subscriptions. False if the connection is lost meanwhile. */
  async #begin(session: Session): Promise<boolean> {
    if (this.#isClosed) session.close(new Error('The pubsub was closed'));
    this.#session = session;
    await this.#drain();
    return session.isOpen;
  }

  #lost(): void {
    this.#session = undefined;
    this.#isLost = true;
    if (this.#isClosed) return;
    for (const [name, { place }] of this.#channels) {
      if (place !== undefined) this.#channels.set(name, createChannel());
      this.#unplaced.add(name);
    }
    this.#dirty.clear();
    this.#listener.lost();
  }

  #notified(name: string): void {
    // While the subscription is being confirmed, its place may be older than this event.
    if (!this.#channels.has(name)) return;
    this.#dirty.add(name);
    void this.#drain();
  }

  /** Confirms subscriptions, then delivers events, until there is nothing to do. */
  async #drain(): Promise<void> {
    const session = this.#session;
    if (session === undefined || this.#draining === session) return;
    this.#draining = session;
    try {
      while (this.#session === session) {
        if (this.#unplaced.size > 0) await this.#place(session, take(this.#unplaced, PLACE_CHANNELS));
        else if (this.#isLost) {
          this.#isLost = false;
          // Before the events that have arrived meanwhile.
          this.#listener.gap();
        } else if (this.#dirty.size > 0) await this.#deliver(session, take(this.#dirty, READ_CHANNELS));
        else return;
      }
    } catch (error) {
      // The next connection repeats what is left.
      session.close(error as Error);
    } finally {
      if (this.#draining === session) this.#draining = undefined;
    }
  }

  async #place(session: Session, names: readonly string[]): Promise<void> {
    const channels = names.map((name) => this.#channels.get(name));
    const rows = await session.query<{ channel: string; place: string }>(this.#statements.places, [names]);
    if (this.#session !== session) return;
    const places = new Map(rows.map(({ channel, place }) => [channel, place]));
    for (const [index, name] of names.entries()) {
      const channel = channels[index];
      if (channel === undefined || this.#channels.get(name) !== channel) continue;
      channel.place = places.get(name) ?? '0';
      channel.resolve();
    }
  }

  async #deliver(session: Session, names: readonly string[]): Promise<void> {
    const channels = new Map<string, Channel>();
    for (const name of names) {
      const channel = this.#channels.get(name);
      if (channel?.place !== undefined) channels.set(name, channel);
    }
    const places = [...channels.values()].map(({ place }) => place);
    const rows = await session.query<EventRow>(this.#statements.read, [
      [...channels.keys()],
      places,
      PAGE_LENGTH,
    ]);
    /** The channels that have more events than the page. */
    const waiting = new Set(channels.keys());
    for (const { channel: name, newest, place, id, previous, payload } of rows) {
      if (this.#session !== session) return;
      if (place === null || id === newest) waiting.delete(name);
      const channel = channels.get(name);
      // The consumer of an earlier event may have cancelled the subscription.
      if (place === null || channel === undefined || this.#channels.get(name) !== channel) continue;
      channel.place = place;
      this.#listener.message(name, payload, { id, previous });
    }
    for (const name of waiting) if (this.#channels.has(name)) this.#dirty.add(name);
  }
}

interface Publish {
  readonly channel: string;
  readonly payload: string;
  resolve(): void;
  reject(error: Error): void;
}

/**
 * Publishes events in the order of the calls. Those that wait for an earlier publish become one transaction: the time of
 * a commit limits the number of transactions, not of events.
 */
class PublishQueue {
  readonly #settings: PostgresSettings;
  readonly #statement: string;
  #waiting: Publish[] = [];
  #running: Promise<void> | undefined;

  constructor(settings: PostgresSettings, statement: string) {
    this.#settings = settings;
    this.#statement = statement;
  }

  /** Resolves when all events are published or refused. */
  get settled(): Promise<void> | undefined {
    return this.#running;
  }

  add(channel: string, payload: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ channel, payload, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Publishes of the same moment share the first transaction.
      await undefined;
      await this.#publish(this.#nextBatch());
    }
    this.#running = undefined;
  }

  #nextBatch(): readonly Publish[] {
    let size = 0;
    const end = this.#waiting.findIndex(({ payload }, index) => {
      size += payload.length;
      return index === BATCH_LENGTH || (index > 0 && size > BATCH_SIZE);
    });
    return this.#waiting.splice(0, end === -1 ? BATCH_LENGTH : end);
  }

  async #publish(batch: readonly Publish[]): Promise<void> {
    const { pool, commandTimeout } = this.#settings;
    // All transactions lock their channels in one order, so that they do not wait for each other.
    const sorted = [...batch].sort((a, b) => (a.channel < b.channel ? -1 : Number(a.channel > b.channel)));
    const channels = sorted.map(({ channel }) => channel);
    const payloads = sorted.map(({ payload }) => payload);
    try {
      await writeIn(pool, commandTimeout, this.#statement, [channels, payloads]);
      for (const { resolve } of batch) resolve();
    } catch (error) {
      for (const { reject } of batch) reject(error as Error);
    }
  }
}

/** Removes and returns the first values of a set. */
function take(values: Set<string>, count: number): readonly string[] {
  const taken: string[] = [];
  for (const value of values) {
    if (taken.length === count) break;
    taken.push(value);
  }
  for (const value of taken) values.delete(value);
  return taken;
}

const createChannel = (): Channel => ({ ...createConfirmation(), place: undefined });

/** Returns why PostgreSQL cannot have a channel of this name. */
function unusable(channel: string): string | undefined {
  if (channel.includes('\0')) return 'PostgreSQL cannot store a topic with the character U+0000';
  const length = Buffer.byteLength(channel);
  if (length <= MAX_CHANNEL_BYTES) return undefined;
  return `The name of a topic has ${length} bytes; accepted: at most ${MAX_CHANNEL_BYTES}`;
}

const isQueryable = (client: object): client is Pick<PostgresClient, 'query'> =>
  isObject(client) && isFunction(client['query']);

interface PostgresSettings {
  readonly pool: PostgresPool;
  readonly schema: string;
  readonly listen: PostgresPool;
  readonly heartbeat: number;
  readonly commandTimeout: number;
}

const isSchema = (value: unknown): boolean => isString(value) && /^[a-z_][a-z0-9_]{0,39}$/.test(value);
/** A client of pg has the methods of a pool, and `escapeLiteral`. */
const isPool = (value: unknown): boolean =>
  isObject(value) &&
  ['connect', 'on', 'off'].every((name) => isFunction(value[name])) &&
  !isFunction(value['escapeLiteral']);

const SCHEMA = '1 to 40 lower-case letters, digits and _, such as "espalier"';
const POOL = 'a Pool of the package pg, such as new pg.Pool({ connectionString })';

type Given = Omit<PostgresSettings, 'pool' | 'listen'> & {
  readonly listen: PostgresPool | undefined;
};

const RULES: Rules<Given> = {
  schema: rule('espalier', isSchema, SCHEMA),
  listen: rule<PostgresPool | undefined>(undefined, isPool, POOL),
  heartbeat: delay(5000),
  commandTimeout: delay(5000),
};

function resolvePostgresOptions(pool: PostgresPool, options: PostgresOptions | undefined): PostgresSettings {
  if (!isPool(pool)) throw wrongArgument(POSTGRES_OPTIONS, 'pool', pool, POOL);
  const given = resolveOptions<Given>(POSTGRES_OPTIONS, options, RULES);
  if (given.listen === undefined && pool.options?.max === 1) {
    const message =
      'the pool has "max: 1", and one connection always listens; raise it, or pass another pool as the option "listen"';
    throw optionError(POSTGRES_OPTIONS, message);
  }
  return {
    ...given,
    pool,
    listen: given.listen ?? pool,
  };
}

/** @throws TypeError (code `ERR_OPTION`) for a wrong name. */
export function schemaOf(schema: string = RULES.schema.fallback): string {
  if (isSchema(schema)) return schema;
  throw wrongArgument({ ...POSTGRES_OPTIONS, name: 'migration' }, 'schema', schema, SCHEMA);
}

/** What a session needs. */
interface SessionOwner {
  readonly settings: PostgresSettings;
  readonly statements: Statements;
  /** An event of the channel was committed. */
  notified(channel: string): void;
}

type Values = unknown[];

/** The connection that listens. A query that gets no reply in time ends it. */
class Session {
  /** Resolves with the reason when the connection is lost. */
  readonly lost: Promise<Error>;
  readonly #client: PostgresClient;
  readonly #owner: SessionOwner;
  readonly #timer: NodeJS.Timeout;
  #end!: (error: Error) => void;
  isOpen = true;
  #isBusy = false;
  #last: Promise<unknown> = Promise.resolve();
  /** A message that only the check of the session sends. */
  readonly #token = `?${randomUUID()}`;
  #verified!: () => void;

  /** Connects, and verifies that notifications arrive. */
  static async open(owner: SessionOwner): Promise<Session> {
    const { settings } = owner;
    const session = new Session(await connect(settings.listen, settings.commandTimeout), owner);
    try {
      await session.#listen();
      return session;
    } catch (error) {
      session.close(error as Error);
      throw error;
    }
  }

  private constructor(client: PostgresClient, owner: SessionOwner) {
    this.#client = client;
    this.#owner = owner;
    this.lost = new Promise((resolve) => {
      this.#end = resolve;
    });
    client.on('notification', (message: { readonly payload?: string | undefined }) => {
      const { payload = '' } = message;
      if (payload === this.#token) this.#verified();
      else owner.notified(payload);
    });
    client.on('error', (error: Error) => this.close(error));
    client.on('end', () => this.close(new Error('The connection was closed')));
    this.#timer = setInterval(() => this.#check(), owner.settings.heartbeat).unref();
  }

  /** Sends a query after the reply to the one before. */
  query<Row>(text: string, values: Values = []): Promise<readonly Row[]> {
    const replied = this.#last.then(() => this.#send<Row>(text, values));
    this.#last = replied.catch(() => undefined);
    return replied;
  }

  async #send<Row>(text: string, values: Values): Promise<readonly Row[]> {
    if (!this.isOpen) throw new Error('PostgreSQL is not connected');
    this.#isBusy = true;
    try {
      const { rows } = await inTime(this.#client.query(text, values), this.#owner.settings.commandTimeout);
      return rows as Row[];
    } catch (error) {
      if (isTimeout(error)) this.close(error);
      throw error;
    }
  }

  /** Closes the connection. It does not return to the pool, because it listens. */
  close(error: Error): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    clearInterval(this.#timer);
    this.#end(error);
    this.#client.release(error);
  }

  async #listen(): Promise<void> {
    const { statements, settings } = this.#owner;
    await this.#create();
    await this.query(`LISTEN ${statements.channel}`);
    let isVerified = false;
    const verified = new Promise<void>((resolve) => {
      this.#verified = () => {
        isVerified = true;
        resolve();
      };
    });
    // From another connection: a pooler in transaction mode passes on what a connection sends to itself.
    const { pool, commandTimeout } = settings;
    await queryIn(pool, commandTimeout, 'SELECT pg_notify($1, $2)', [statements.channel, this.#token]);
    try {
      await inTime(Promise.race([verified, this.lost.then(throwError)]), settings.commandTimeout);
    } catch (cause) {
      if (!isTimeout(cause)) throw cause;
      // A connection that is silent, and not only without notifications, does not reply either.
      await this.query('SELECT 1');
      if (isVerified) return;
      const message =
        'LISTEN gets no notifications. A pooler in transaction mode? Pass a pool with direct connections as the option "listen"';
      throw Object.assign(new Error(message, { cause }), { code: NO_NOTIFICATIONS });
    }
  }

  async #create(): Promise<void> {
    const { statements } = this.#owner;
    const [row] = await this.query<{ found: boolean }>(statements.exists);
    if (row?.found === true) return;
    await this.query(BEGIN);
    await this.query(statements.migration);
    await this.query('COMMIT');
  }

  #check(): void {
    if (!this.#isBusy) this.query('SELECT 1').catch((error: Error) => this.close(error));
    this.#isBusy = false;
  }
}

const throwError = (error: Error): never => {
  throw error;
};

/** Takes a client of the pool, which returns at once if it comes too late. */
async function connect(pool: PostgresPool, commandTimeout: number): Promise<PostgresClient> {
  const connecting = pool.connect();
  try {
    return await inTime(connecting, commandTimeout, NO_CONNECTION);
  } catch (error) {
    if (isTimeout(error)) connecting.then((client) => client.release()).catch(() => undefined);
    throw error;
  }
}

/** The pools whose transactions do not have the usual defaults. */
const otherDefaults = new WeakSet<PostgresPool>();
const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE';

/**
 * Sends a query that writes. With another `default_transaction_isolation` PostgreSQL refuses publishes that wait for each
 * other, and with `default_transaction_read_only` all of them: the transaction then says what it needs.
 */
async function writeIn<Row>(
  pool: PostgresPool,
  commandTimeout: number,
  text: string,
  values: Values,
): Promise<readonly Row[]> {
  if (otherDefaults.has(pool)) return queryIn(pool, commandTimeout, text, values, true);
  try {
    return await queryIn(pool, commandTimeout, text, values);
  } catch (error) {
    if (!/^(?:25006|40001)$/.test(codeOf(error))) throw error;
    otherDefaults.add(pool);
    return queryIn(pool, commandTimeout, text, values, true);
  }
}

/**
 * Sends a query over a connection of the pool. A connection without a reply in time does not return to the pool, which
 * would have no working one soon.
 */
async function queryIn<Row>(
  pool: PostgresPool,
  commandTimeout: number,
  text: string,
  values: Values,
  isTransaction = false,
): Promise<readonly Row[]> {
  const client = await connect(pool, commandTimeout);
  let failure: Error | undefined;
  // The query rejects too. Without a listener the error would end the process.
  const fail = (error: Error): void => {
    failure = error;
  };
  client.on('error', fail);
  try {
    if (isTransaction) await inTime(client.query(BEGIN), commandTimeout);
    const { rows } = await inTime(client.query(text, values), commandTimeout);
    if (isTransaction) await inTime(client.query('COMMIT'), commandTimeout);
    return rows as Row[];
  } catch (error) {
    if (isTimeout(error)) failure = error;
    else if (isTransaction) await inTime(client.query('ROLLBACK'), commandTimeout).catch(fail);
    throw error;
  } finally {
    client.off('error', fail);
    client.release(failure);
  }
}

const TIMEOUT = 'ERR_POSTGRES_TIMEOUT';
const NO_CONNECTION = 'All connections of the pool are in use, or PostgreSQL did not reply within';
const NO_NOTIFICATIONS = 'ERR_POSTGRES_LISTEN';

/** The SQLSTATE of an error of PostgreSQL. */
const codeOf = (error: unknown): string => String((error as { code?: unknown }).code);
const isTimeout = (error: unknown): error is Error => codeOf(error) === TIMEOUT;

/** Rejects if a promise does not settle in time. */
const inTime = <T>(
  promise: Promise<T>,
  milliseconds: number,
  problem = 'PostgreSQL did not reply within',
): Promise<T> =>
  withTimeLimit(promise, milliseconds, () =>
    Object.assign(new Error(`${problem} ${milliseconds} ms`), { code: TIMEOUT }),
  );

/**
 * Whether PostgreSQL will reply with this error again: invalid authorization, no such database, no permission, no such
 * schema or table, or a pooler.
 */
function isRefusal(error: unknown): boolean {
  const code = codeOf(error);
  return code === NO_NOTIFICATIONS || /^(?:28|3D|3F|42)[0-9A-Z]{3}$/.test(code);
}
