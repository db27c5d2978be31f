import { randomUUID } from 'node:crypto';
import { open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import type { UsageReport } from '../../types/usage.ts';
import { formatValue } from '../options/rules.ts';
import { getOrCreate, isCount, isObject } from '../options/values.ts';
import type { RedisCommands } from '../redis/clients.ts';
import { RedisScript } from '../redis/commands.ts';

/** The days that are kept. */
const DAYS = 100;

/** The operations of one client on one day, with the coordinates that they used. */
class ClientCounts {
  operations = 0;
  readonly coordinates: Map<string, number> = new Map();

  add(coordinate: string, count: number): void {
    this.coordinates.set(coordinate, (this.coordinates.get(coordinate) ?? 0) + count);
  }
}

/** Counts by day and client. Maps, because clients choose their names. */
export class UsageCounts {
  readonly days: Map<string, Map<string, ClientCounts>> = new Map();

  of(day: string, client: string): ClientCounts {
    const clients = getOrCreate(this.days, day, () => new Map<string, ClientCounts>());
    return getOrCreate(clients, client, () => new ClientCounts());
  }

  add(others: UsageCounts): void {
    for (const [day, clients] of others.days) {
      for (const [client, { operations, coordinates }] of clients) {
        const own = this.of(day, client);
        own.operations += operations;
        for (const [coordinate, count] of coordinates) own.add(coordinate, count);
      }
    }
  }

  /** Forgets all but the last `DAYS`. */
  keepRecent(): void {
    for (const day of [...this.days.keys()].sort().slice(0, -DAYS)) this.days.delete(day);
  }

  toJSON(): UsageReport {
    const days = [...this.days].sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      version: 1,
      days: Object.fromEntries(
        days.map(([day, clients]) => [day, Object.fromEntries([...clients].map(toEntry))]),
      ),
    };
  }

  /**
   * Reads a report.
   *
   * @throws TypeError that says what is wrong.
   */
  static read(report: unknown): UsageCounts {
    const counts = new UsageCounts();
    if (!isObject(report) || report['version'] !== 1) throw notReport(report);
    for (const [day, clients] of entriesOf(report['days'])) {
      if (!/^\d{4}-\d\d-\d\d$/.test(day)) throw notReport(day);
      for (const [client, usage] of entriesOf(clients)) {
        if (!isObject(usage)) throw notReport(usage);
        const own = counts.of(day, client);
        own.operations += countOf(usage['operations']);
        for (const [coordinate, count] of entriesOf(usage['coordinates']))
          own.add(coordinate, countOf(count));
      }
    }
    return counts;
  }
}

const toEntry = ([client, { operations, coordinates }]: readonly [string, ClientCounts]) =>
  [client, { operations, coordinates: Object.fromEntries([...coordinates].sort(byName)) }] as const;

const byName = ([a]: readonly [string, number], [b]: readonly [string, number]): number => (a < b ? -1 : 1);

function entriesOf(value: unknown): [string, unknown][] {
  if (!isObject(value)) throw notReport(value);
  return Object.entries(value);
}

function countOf(value: unknown): number {
  if (isCount(value)) return value;
  throw notReport(value);
}

const notReport = (value: unknown): TypeError =>
  new TypeError(`it contains ${formatValue(value)}, and is not a file of the option "usage"`);

/** The place where counts are kept. */
export interface UsageTarget {
  /** Adds counts. If it rejects, they are added again later, together with newer ones. */
  add(counts: UsageCounts): Promise<unknown>;
  /** Returns all counts that are kept, which the caller only reads. */
  read(): Promise<UsageCounts>;
}

/** Keeps counts in the memory of the process. */
export function createMemoryTarget(): UsageTarget {
  const kept = new UsageCounts();
  return {
    async add(counts) {
      kept.add(counts);
      kept.keepRecent();
    },
    read: async () => kept,
  };
}

/**
 * Milliseconds: between two attempts to get the lock, in all, and until a lock counts as left by a killed process, for
 * which an attempt waits.
 */
const LOCK = { wait: 50, limit: 6000, stale: 4000 };

/** Keeps counts in a JSON file, which several processes may share: each adds its counts while it has the lock. */
export function createFileTarget(path: string): UsageTarget {
  const lock = `${path}.lock`;

  async function acquire(): Promise<void> {
    for (const started = Date.now(); ; await new Promise((resolve) => setTimeout(resolve, LOCK.wait))) {
      try {
        await (await open(lock, 'wx')).close();
        return;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      const info = await stat(lock).catch(() => undefined);
      if (info !== undefined && Date.now() - info.mtimeMs > LOCK.stale) await rm(lock, { force: true });
      else if (Date.now() - started > LOCK.limit) throw new Error(`another process does not release ${lock}`);
    }
  }

  return {
    async add(counts) {
      await acquire();
      const temporary = `${path}.${randomUUID()}.tmp`;
      try {
        const kept = await readUsageFile(path, { isOptional: true });
        kept.add(counts);
        kept.keepRecent();
        await writeFile(temporary, `${JSON.stringify(kept)}\n`);
        await rename(temporary, path);
      } catch (error) {
        await rm(temporary, { force: true });
        throw error;
      } finally {
        await rm(lock, { force: true });
      }
    },
    read: () => readUsageFile(path, { isOptional: true }),
  };
}

/** @throws Error that names the file. */
export async function readUsageFile(
  path: string,
  { isOptional = false }: { readonly isOptional?: boolean } = {},
): Promise<UsageCounts> {
  try {
    return UsageCounts.read(JSON.parse(await readFile(path, 'utf8')));
  } catch (cause) {
    if (isOptional && (cause as NodeJS.ErrnoException).code === 'ENOENT') return new UsageCounts();
    throw new Error(`${path}: ${(cause as Error).message}`, { cause });
  }
}

const DAY_SECONDS = 24 * 60 * 60;
/** The counts of one command, which blocks Redis while it runs. */
const COUNTS_PER_COMMAND = 500;

/** KEYS: the hash of a day. ARGV: seconds until it expires, then fields and their increments. */
const ADD = new RedisScript(`
for index = 2, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[index], ARGV[index + 1]) end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return {1}
`);
const READ = new RedisScript("return redis.call('HGETALL', KEYS[1])");

const PREFIX = 'espalier:usage:';
/** Milliseconds that a command may take. */
const TIMEOUT = 2000;

/**
 * Keeps counts in Redis: a hash per day, whose fields are a coordinate, a space and a client; the operations have the
 * empty coordinate. A command that was sent and not confirmed is sent again, so that a count is rather too high.
 */
export function createRedisTarget(redis: RedisCommands): UsageTarget {
  return {
    async add(counts) {
      for (const [day, clients] of counts.days) {
        const fields = [...clients].flatMap(([name, { operations, coordinates }]) => [
          [` ${name}`, operations] as const,
          ...[...coordinates].map(([coordinate, count]) => [`${coordinate} ${name}`, count] as const),
        ]);
        for (let sent = 0; sent < fields.length; sent += COUNTS_PER_COMMAND) {
          const some = fields.slice(sent, sent + COUNTS_PER_COMMAND).flat();
          await ADD.run(redis, TIMEOUT, PREFIX + day, DAYS * DAY_SECONDS, ...some);
        }
        // Only the other days are added again if a later command fails.
        counts.days.delete(day);
      }
    },
    async read() {
      const counts = new UsageCounts();
      for (let ago = DAYS - 1; ago >= 0; ago--) {
        const day = dayOf(Date.now() - ago * DAY_SECONDS * 1000);
        const reply = await READ.run(redis, TIMEOUT, PREFIX + day);
        for (let index = 0; index < reply.length; index += 2) {
          const [, coordinate = '', name = ''] = /^(\S*) (.*)$/s.exec(String(reply[index])) ?? [];
          const own = counts.of(day, name);
          if (coordinate === '') own.operations += Number(reply[index + 1]);
          else own.add(coordinate, Number(reply[index + 1]));
        }
      }
      return counts;
    },
  };
}

/** The day of a time in UTC, such as `2026-01-31`. */
export const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);
