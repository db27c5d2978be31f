import { randomUUID } from 'node:crypto';
import type { PostgresClient, PostgresPool } from '../../types/postgres.ts';
import { withTimeLimit } from '../http/timers.ts';
import type { Statements } from './sql.ts';
import type { PostgresSettings } from './transport.ts';

/** What a session needs. */
interface SessionOwner {
  readonly settings: PostgresSettings;
  readonly statements: Statements;
  /** An event of the channel was committed. */
  notified(channel: string): void;
}

type Values = unknown[];

/** The connection that listens. A query that gets no reply in time ends it. */
export class Session {
  /** Resolves with the reason when the connection is lost. */
  readonly lost: Promise<Error>;
  readonly #client: PostgresClient;
  readonly #owner: SessionOwner;
  readonly #timer: NodeJS.Timeout;
  #end!: (error: Error) => void;
  #isOpen = true;
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
    if (!this.#isOpen) throw new Error('PostgreSQL is not connected');
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
    if (!this.#isOpen) return;
    this.#isOpen = false;
    clearInterval(this.#timer);
    this.#end(error);
    this.#client.release(error);
  }

  async #listen(): Promise<void> {
    const { statements, settings } = this.#owner;
    if (settings.create) await this.#create();
    await this.query(`LISTEN ${statements.channel}`);
    const verified = new Promise<void>((resolve) => {
      this.#verified = resolve;
    });
    // From another connection: a pooler in transaction mode passes on what a connection sends to itself.
    const sent = settings.pool.query('SELECT pg_notify($1, $2)', [statements.channel, this.#token]);
    await inTime(sent, settings.commandTimeout);
    try {
      await inTime(Promise.race([verified, this.lost.then(throwError)]), settings.commandTimeout);
    } catch (cause) {
      if (!isTimeout(cause)) throw cause;
      const message =
        'LISTEN gets no notifications. A pooler in transaction mode? Pass a pool with direct connections as the option "listen"';
      throw Object.assign(new Error(message, { cause }), { code: NO_NOTIFICATIONS });
    }
  }

  async #create(): Promise<void> {
    const { statements } = this.#owner;
    const [row] = await this.query<{ found: boolean }>(statements.exists);
    if (row?.found !== true) await this.query(statements.migration);
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
    return await inTime(connecting, commandTimeout);
  } catch (error) {
    if (isTimeout(error)) connecting.then((client) => client.release()).catch(() => undefined);
    throw error;
  }
}

const TIMEOUT = 'ERR_POSTGRES_TIMEOUT';
const NO_NOTIFICATIONS = 'ERR_POSTGRES_LISTEN';

const isTimeout = (error: unknown): error is Error => (error as { code?: unknown }).code === TIMEOUT;

/** Rejects if a promise does not settle in time. */
export const inTime = <T>(promise: Promise<T>, milliseconds: number): Promise<T> =>
  withTimeLimit(promise, milliseconds, () =>
    Object.assign(new Error(`PostgreSQL did not reply within ${milliseconds} ms`), { code: TIMEOUT }),
  );

/**
 * Whether PostgreSQL will reply with this error again: invalid authorization, no such database, no permission, no such
 * schema or table, or a pooler.
 */
export function isRefusal(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === NO_NOTIFICATIONS || /^(?:28|3D|3F|42)[0-9A-Z]{3}$/.test(String(code));
}
