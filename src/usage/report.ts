import type { UsageReport } from '../../types/usage.ts';
import { formatValue, isCount, isObject } from '../options/rules.ts';

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
    const clients = getOrAdd(this.days, day, () => new Map<string, ClientCounts>());
    return getOrAdd(clients, client, () => new ClientCounts());
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

  /** Forgets all but the last days. */
  keep(days: number): void {
    for (const day of [...this.days.keys()].sort().slice(0, -days)) this.days.delete(day);
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

export function getOrAdd<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = create();
    map.set(key, value);
  }
  return value;
}

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
