import type { UsageCounts } from '../usage/report.ts';
import { readUsageFile } from '../usage/report.ts';
import { readSchema } from './read-schema.ts';
import { findChanges, type SchemaChange } from './schema-changes.ts';

/** The operations of a client that a change affects. */
interface ClientUse {
  readonly client: string;
  readonly operations: number;
  /** The day of the last one, such as `2026-01-31`. */
  readonly last: string;
}

interface CheckedChange extends Omit<SchemaChange, 'affected' | 'level'> {
  /** `safe` if no client has used what it affects. */
  readonly level: SchemaChange['level'] | 'safe';
  /** The most frequent clients first; only with usage, for breaking changes. */
  readonly clients?: readonly ClientUse[];
}

/** The time in which operations were counted. */
interface Window {
  readonly from: string;
  readonly to: string;
  /** Days with operations. */
  readonly days: number;
  readonly operations: number;
}

/** The changes between two schemas. */
interface SchemaReport {
  readonly changes: readonly CheckedChange[];
  readonly usage?: Window;
}

/** Compares a schema with an earlier one. */
export async function checkSchema(
  schemaFile: string,
  earlierFile: string,
  usageFiles: readonly string[],
): Promise<SchemaReport> {
  const changes = findChanges(await readSchema(earlierFile), await readSchema(schemaFile));
  const [first, ...others] = await Promise.all(usageFiles.map((file) => readUsageFile(file)));
  if (first === undefined)
    return { changes: changes.map(({ affected: _, ...change }) => change).sort(byLevel) };
  for (const counts of others) first.add(counts);
  const usage = windowOf(first);
  if (usage.operations === 0) {
    throw new Error(
      `${usageFiles.join(', ')}: no operation was counted; a change is safe by usage only if there were some`,
    );
  }
  const uses = usesOf(first);
  return { usage, changes: changes.map((change) => withClients(change, uses)).sort(byLevel) };
}

const ORDER = ['breaking', 'safe', 'dangerous'];
const byLevel = (a: CheckedChange, b: CheckedChange): number =>
  ORDER.indexOf(a.level) - ORDER.indexOf(b.level);

function windowOf({ days }: UsageCounts): Window {
  const counted = [...days]
    .map(
      ([day, clients]) => [day, [...clients.values()].reduce((sum, one) => sum + one.operations, 0)] as const,
    )
    .filter(([, operations]) => operations > 0)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    from: counted[0]?.[0] ?? '',
    to: counted.at(-1)?.[0] ?? '',
    days: counted.length,
    operations: counted.reduce((sum, [, operations]) => sum + operations, 0),
  };
}

/** The uses of each coordinate, by client. */
type Uses = ReadonlyMap<string, ReadonlyMap<string, ClientUse>>;

function usesOf({ days }: UsageCounts): Uses {
  const uses = new Map<string, Map<string, ClientUse>>();
  for (const [day, clients] of days) {
    for (const [client, { coordinates }] of clients) {
      for (const [coordinate, count] of coordinates) {
        const byClient = uses.get(coordinate) ?? new Map<string, ClientUse>();
        uses.set(coordinate, byClient);
        const { operations = 0, last = day } = byClient.get(client) ?? {};
        byClient.set(client, { client, operations: operations + count, last: last > day ? last : day });
      }
    }
  }
  return uses;
}

function withClients({ affected, ...change }: SchemaChange, uses: Uses): CheckedChange {
  if (change.level === 'dangerous') return change;
  if (affected === undefined) return change;
  const exact = new Set(affected);
  const types = new Set(affected.filter((one) => one.endsWith('.*')).map((one) => one.slice(0, -2)));
  const clients = new Map<string, ClientUse>();
  for (const [coordinate, byClient] of uses) {
    if (!exact.has(coordinate) && !types.has(coordinate.replace(/\..*/s, ''))) continue;
    for (const [client, use] of byClient) {
      // One operation may use several of the coordinates: at least those of the most frequent one are affected.
      const { operations = 0, last = '' } = clients.get(client) ?? {};
      clients.set(client, {
        client,
        operations: Math.max(operations, use.operations),
        last: last > use.last ? last : use.last,
      });
    }
  }
  const sorted = [...clients.values()].sort((a, b) => b.operations - a.operations);
  return { ...change, level: sorted.length === 0 ? 'safe' : 'breaking', clients: sorted };
}

const count = (number: number, singular: string): string =>
  `${number.toLocaleString('en')} ${singular}${number === 1 ? '' : 's'}`;

const ofLevel = ({ changes }: SchemaReport, level: CheckedChange['level']): readonly CheckedChange[] =>
  changes.filter((change) => change.level === level);

function summarize(report: SchemaReport): string {
  if (report.changes.length === 0) return 'No change that may break clients';
  const [breaking = 0, safe = 0, dangerous = 0] = ORDER.map(
    (level) => ofLevel(report, level as CheckedChange['level']).length,
  );
  return [
    count(breaking, 'breaking change'),
    ...(report.usage === undefined ? [] : [`${count(safe, 'breaking change')} safe by usage`]),
    count(dangerous, 'dangerous change'),
  ].join(', ');
}

const describeWindow = ({ from, to, days, operations }: Window): string =>
  `Usage: ${count(operations, 'operation')} on ${count(days, 'day')} from ${from} to ${to} (UTC). ` +
  'A client that was not active in this time is not known';

/** The clients that a message lists. */
const LISTED = 3;

function listClients(clients: readonly ClientUse[]): string {
  const listed = clients
    .slice(0, LISTED)
    .map(({ client, operations, last }) => `${client} (${count(operations, 'operation')}, last on ${last})`);
  const others = clients.length - listed.length;
  return [...listed, ...(others > 0 ? [count(others, 'other client')] : [])].join(', ');
}

const LABELS = { breaking: 'breaking', safe: 'safe by usage', dangerous: 'dangerous' };

/** Formats a report for people, with a line for each change. */
export function formatSchemaReport(report: SchemaReport): string {
  const lines = report.changes.flatMap(({ level, description, clients = [] }) => [
    `${LABELS[level].padEnd(LABELS.safe.length)}  ${description}`,
    ...(clients.length === 0 ? [] : [`${' '.repeat(LABELS.safe.length)}  used by ${listClients(clients)}`]),
  ]);
  if (lines.length > 0) lines.push('');
  lines.push(summarize(report));
  if (report.usage !== undefined) lines.push(describeWindow(report.usage));
  return `${lines.join('\n')}\n`;
}

const TITLES = { breaking: 'Breaking', safe: 'Safe by usage', dangerous: 'Dangerous' };

/** Formats a report as Markdown, for a comment on a pull request. */
export function formatSchemaMarkdown(report: SchemaReport): string {
  const sections = (['breaking', 'safe', 'dangerous'] as const).flatMap((level) => {
    const changes = ofLevel(report, level);
    if (changes.length === 0) return [];
    const isUsed = changes.some(({ clients = [] }) => clients.length > 0);
    const rows = changes.map(({ coordinate, description, clients = [] }) => [
      coordinate === undefined ? '' : `\`${coordinate}\``,
      toMarkdown(description),
      ...(isUsed ? [toMarkdown(listClients(clients))] : []),
    ]);
    const header = ['Coordinate', 'Change', ...(isUsed ? ['Used by'] : [])];
    const table = [header, header.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
    return [`### ${TITLES[level]}\n\n${table.join('\n')}\n`];
  });
  const usage = report.usage === undefined ? [] : [`${describeWindow(report.usage)}.\n`];
  return [`## Schema: ${summarize(report)}\n`, ...sections, ...usage].join('\n');
}

/** Names of clients and texts of default values are those of others. */
const toMarkdown = (text: string): string =>
  text.replaceAll(/[\\`*_{}[\]<>()#|!@~&]/g, '\\$&').replaceAll(/\s+/g, ' ');
