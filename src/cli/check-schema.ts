import {
  findBreakingChanges,
  findDangerousChanges,
  type GraphQLInputField,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
} from 'graphql';
import { getOrCreate } from '../options/values.ts';
import { readUsageFile, type UsageCounts } from '../usage/report.ts';
import { readSchema } from './read-schema.ts';

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
        const byClient = getOrCreate(uses, coordinate, () => new Map<string, ClientUse>());
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

/** A change between two schemas that may break clients. */
interface SchemaChange {
  readonly level: 'breaking' | 'dangerous';
  /** Its name in graphql-js, such as `FIELD_REMOVED`. */
  readonly type: string;
  /** What has changed, such as `User.email`; undefined if the description has an unknown form. */
  readonly coordinate: string | undefined;
  readonly description: string;
  /**
   * The coordinates of the old schema that every operation uses which the change may break; `User.*` for all members
   * of a type. Undefined if they are unknown, and for dangerous changes.
   */
  readonly affected: readonly string[] | undefined;
}

type Found = Pick<SchemaChange, 'type' | 'description'>;

/** Finds the breaking and dangerous changes with graphql-js, whose verdicts they are. */
export function findChanges(oldSchema: GraphQLSchema, newSchema: GraphQLSchema): SchemaChange[] {
  return [
    ...findBreakingChanges(oldSchema, newSchema).map((found): SchemaChange => {
      const coordinate = coordinateOf(found);
      const affected =
        coordinate === undefined ? undefined : affectedBy(found, coordinate, oldSchema, newSchema);
      return { ...found, coordinate, level: 'breaking', affected };
    }),
    ...findDangerousChanges(oldSchema, newSchema).map(
      (found): SchemaChange => ({
        ...found,
        coordinate: coordinateOf(found),
        level: 'dangerous',
        affected: undefined,
      }),
    ),
  ];
}

/** By the type of a change: its description in graphql 16, and the coordinate. Graphql 17 writes coordinates itself. */
const COORDINATES: readonly (readonly [type: RegExp, description: RegExp, coordinate: string])[] = [
  [/^DIRECTIVE_ARG_REMOVED/, /^(\w+) was removed from (\w+)\./, '@$2($1:)'],
  [/^DIRECTIVE_REMOVED/, /^(?:Directive @)?(\w+) was/, '@$1'],
  [/^DIRECTIVE_(?:LOC|REP)/, /removed from @?(\w+)\./, '@$1'],
  [/DIRECTIVE_ARG_ADDED/, /arg (\w+) on directive (\w+)/, '@$2($1:)'],
  [/ARG_ADDED/, /arg (\w+) on (\w+\.\w+)/, '$2($1:)'],
  [/^ARG_/, /^(\w+\.\w+) arg (\w+)/, '$1($2:)'],
  [/INPUT_FIELD_ADDED/, /field (\w+) on input type (\w+)/, '$2.$1'],
  [/ENUM/, /^(\w+) was \w+ (?:from|to) enum type (\w+)/, '$2.$1'],
  [/UNION/, /^\w+ was \w+ (?:from|to) union type (\w+)/, '$1'],
  [/INTERFACE_ADDED/, /implemented by (\w+)/, '$1'],
  [/INTERFACE_REMOVED/, /^(\w+)/, '$1'],
  [/^TYPE_REMOVED/, /^(?:Standard scalar )?(\w+)/, '$1'],
  [/^TYPE_/, /^(\w+)/, '$1'],
  [/./, /((?:@\w+|\w+\.\w+)(?:\(\w+:\))?)/, '$1'],
];

function coordinateOf({ type, description }: Found): string | undefined {
  for (const [types, pattern, coordinate] of COORDINATES) {
    const match = types.test(type) ? pattern.exec(description) : null;
    if (match !== null) return coordinate.replaceAll(/\$(\d)/g, (_, group) => match[Number(group)] ?? '');
  }
  return undefined;
}

function affectedBy(
  { type, description }: Found,
  coordinate: string,
  oldSchema: GraphQLSchema,
  newSchema: GraphQLSchema,
): readonly string[] {
  const owner = coordinate.replace(/[.(].*/, '');
  // An argument of a directive that changes its type may be required now.
  if (owner.startsWith('@')) return [type === 'DIRECTIVE_ARG_REMOVED' ? coordinate : owner];
  switch (type) {
    case 'TYPE_REMOVED_FROM_UNION': {
      // A fragment names the type itself, or one of its interfaces.
      const member = /^\w+/.exec(description)?.[0] ?? '';
      return [member, `${member}.*`, ...interfacesOf(oldSchema, member)];
    }
    case 'IMPLEMENTED_INTERFACE_REMOVED':
      return [coordinate, ...interfacesOf(oldSchema, coordinate)];
    case 'TYPE_REMOVED':
    case 'TYPE_CHANGED_KIND':
    case 'REQUIRED_INPUT_FIELD_ADDED':
      return usesOfType(oldSchema, owner);
    case 'REQUIRED_ARG_ADDED':
      return [coordinate.replace(/\(.*/, '')];
    case 'ARG_CHANGED_KIND':
    case 'FIELD_CHANGED_KIND':
      return isRequired(newSchema, coordinate) ? usesOfOwner(oldSchema, coordinate) : [coordinate];
    default:
      return [coordinate];
  }
}

function interfacesOf(schema: GraphQLSchema, name: string): readonly string[] {
  const type = schema.getType(name);
  return isObjectType(type) || isInterfaceType(type) ? type.getInterfaces().map((one) => one.name) : [];
}

/** Whether a coordinate is that of an argument or input field that operations have to give. */
function isRequired(schema: GraphQLSchema, coordinate: string): boolean {
  const [, owner = '', member = '', name] = /^(\w+)\.(\w+)(?:\((\w+):\))?$/.exec(coordinate) ?? [];
  const type = schema.getType(owner);
  if (isInputObjectType(type)) {
    const field = type.getFields()[member];
    return field !== undefined && isRequiredInputField(field);
  }
  if (!isObjectType(type) && !isInterfaceType(type)) return false;
  const argument = type.getFields()[member]?.args.find((one) => one.name === name);
  return argument !== undefined && isRequiredArgument(argument);
}

/** Where a value that has become required is missing: it was not used there. */
const usesOfOwner = (schema: GraphQLSchema, coordinate: string): readonly string[] =>
  coordinate.endsWith(')')
    ? [coordinate.replace(/\(.*/, '')]
    : usesOfType(schema, coordinate.replace(/\..*/, ''));

/** The coordinates of a type, of its members, and of everything that has this type. */
function usesOfType(schema: GraphQLSchema, name: string): readonly string[] {
  const uses = [name, `${name}.*`];
  const add = (coordinate: string, { type }: Pick<GraphQLInputField, 'type'>): void => {
    if (getNamedType(type).name === name) uses.push(coordinate);
  };
  for (const type of Object.values(schema.getTypeMap())) {
    if (isIntrospectionType(type)) continue;
    if (isInputObjectType(type)) {
      for (const field of Object.values(type.getFields())) add(`${type.name}.${field.name}`, field);
    } else if (isObjectType(type) || isInterfaceType(type)) {
      for (const field of Object.values(type.getFields())) {
        if (getNamedType(field.type).name === name) uses.push(`${type.name}.${field.name}`);
        for (const argument of field.args) add(`${type.name}.${field.name}(${argument.name}:)`, argument);
      }
    }
  }
  for (const directive of schema.getDirectives()) {
    for (const argument of directive.args) add(`@${directive.name}(${argument.name}:)`, argument);
  }
  return uses;
}
