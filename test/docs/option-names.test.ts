/** @tags once */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pages, root } from '../snippets.ts';

// The names of options that tables, sentences and messages contain are those of types/. Blocks of code are compiled.

const read = (name: string): string => readFileSync(join(root, name), 'utf8');
const guides = pages.filter((page) => !page.startsWith('docs/api/'));

interface Interface {
  readonly bases: readonly string[];
  /** The text of the type of each member. */
  readonly members: ReadonlyMap<string, string>;
}

/** The interfaces of types/ by name. */
const interfaces: ReadonlyMap<string, Interface> = new Map(
  [...readdirSync(join(root, 'types')).map((file) => `types/${file}`), 'client/index.ts'].flatMap((file) => {
    const text = read(file).replace(/\/\*[\s\S]*?\*\//g, '');
    return [
      ...text.matchAll(/^export interface (\w+)(?:<[^{]*?>)?(?:\s+extends ([^{]*))? \{\n([\s\S]*?)^\}/gm),
    ].map(([, name = '', bases = '', body = '']) => {
      const starts = [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??(?=[:(<])/gm)];
      const members = starts.map(
        (match, index) =>
          [match[1] ?? '', body.slice(match.index, starts[index + 1]?.index ?? body.length)] as const,
      );
      return [name, { bases: bases.match(/\b[A-Z]\w+/g) ?? [], members: new Map(members) }] as const;
    });
  }),
);

function membersOf(name: string): ReadonlyMap<string, string> {
  const found = interfaces.get(name);
  if (found === undefined) return new Map();
  return new Map([...found.bases.flatMap((base) => [...membersOf(base)]), ...found.members]);
}

const optionTypes = [...interfaces.keys()].filter((name) => /(?:Options|Limits|Request)$/.test(name));

interface Table {
  readonly page: string;
  readonly names: readonly string[];
}

/** The tables of options: their first column has a name, and the second its default. */
const tables: readonly Table[] = guides.flatMap((page) =>
  [
    ...read(page).matchAll(/^\| *(?:option|member)\b[^|]*\| *default *\|.*\n\|[-:| ]+\|\n((?:\|.*\n)+)/gm),
  ].map(([, rows = '']) => ({
    page,
    names: rows
      .split('\n')
      .flatMap((row) => (row.split('|')[1] ?? '').match(/`\w+(?=[`?(:])/g) ?? [])
      .map((name) => name.slice(1)),
  })),
);

/** Options of several interfaces in one table. */
const JOINED: readonly (readonly string[])[] = [
  // Those of the servers come from @types/node.
  ['http2', 'allowHTTP1', 'webSockets', 'keepAlive', 'keepAliveInitialDelay', 'checks'].concat([
    'IncomingMessage',
    'ServerResponse',
  ]),
  ['OperationRequest', 'HttpRequest'].flatMap((name) => [...membersOf(name).keys()]),
];

describe('the tables of options', () => {
  it.each(tables.map((table) => [`${table.page}: ${table.names.join(', ')}`, table] as const))(
    'types/ has an interface with all options of the table in %s',
    (_title, { names }) => {
      const known = [...optionTypes.map((name) => [...membersOf(name).keys()]), ...JOINED];
      expect(names.length).toBeGreaterThan(0);
      const isDeclared = known.some((members) => names.every((name) => members.includes(name)));
      expect([names, isDeclared]).toEqual([names, true]);
    },
  );

  it.each(optionTypes.filter((name) => !/Request$/.test(name)))(
    'a page has rows for all options of %s',
    (name) => {
      const own = [...(interfaces.get(name)?.members.keys() ?? [])];
      const missing = guides.map((page) => {
        const rows = read(page).match(/^\| [^|]*`[^|]*\|/gm) ?? [];
        return own.filter((option) => !rows.some((row) => new RegExp(`\`${option}\\b`).test(row)));
      });
      const fewest = missing.sort((a, b) => a.length - b.length)[0];
      expect([name, fewest]).toEqual([name, []]);
    },
  );
});

/** The members of the options with a name, over all functions. Undefined for an unknown name, and for types of others. */
function membersOfOption(option: string): Set<string> | undefined {
  const types = optionTypes.flatMap((name) => membersOf(name).get(option) ?? []);
  const named = types.flatMap(
    (type) => type.match(/\b[A-Z]\w*(?:Options|Limits|Source|Capabilities)\b/g) ?? [],
  );
  const inline = types.flatMap((type) =>
    [...type.matchAll(/[{;]\s*(?:readonly )?(\w+)\??:/g)].map(([, each]) => each ?? ''),
  );
  const members = [...named.flatMap((name) => [...membersOf(name).keys()]), ...inline];
  const isOpen =
    types.length === 0 || types.some((type) => /[A-Z]/.test(type.replace(/\b(?:Duration|ByteSize)\b/g, '')));
  return members.length === 0 && isOpen ? undefined : new Set(members);
}

/** Files such as `usage.json`. */
const IS_FILE = /\.(?:json|ts|js|mjs|cjs|md|html|css|graphql|svg|png|sh|d)\b/;

/** Names of options with a member, such as `limits.depth` and `limits: { depth`. */
function paths(text: string): [option: string, member: string][] {
  const dotted = [...text.matchAll(/["`](\w+)\.(\w+)(?:\.\w+)?["`:]/g)].filter(([all]) => !IS_FILE.test(all));
  const nested = [...text.matchAll(/["'`( ](\w+): \{ (\w+)\b/g)];
  return [...dotted, ...nested].map(([, option = '', member = '']) => [option, member]);
}

const unknownPaths = (name: string, text: string): string[] =>
  paths(text).flatMap(([option, member]) => {
    const members = membersOfOption(option);
    return members === undefined || members.has(member) ? [] : [`${name}: ${option}.${member}`];
  });

it.each(guides)('every option.member in the text of %s exists', (page) => {
  const text = read(page).replace(/^```[\s\S]*?^```/gm, '');
  const inline = (text.match(/`[^`\n]+`/g) ?? []).join('\n');
  expect(unknownPaths(page, inline)).toEqual([]);
});

it('every option.member in the messages of the sources exists', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !name.startsWith('graphiql/app'),
  );
  const found = files.flatMap((file) => {
    const strings = read(`src/${file}`).match(/(?:'[^'\n]*'|`[^`\n]*`)/g) ?? [];
    const named = strings.filter((text) => /\b(?:option|use|set|remove|byOption)\b|^'\w+\.\w+'$/.test(text));
    return unknownPaths(`src/${file}`, named.join('\n').replace(/'/g, '"'));
  });
  expect(found).toEqual([]);
});

it('the check of options in sentences finds what does not exist', () => {
  const text =
    "`incremental: { format: 'v0.2' }` and `limits.bodyByte` and `limits.bodyBytes` and `cache.pubsub`";
  expect(unknownPaths('x', text)).toEqual(['x: limits.bodyByte', 'x: cache.pubsub', 'x: incremental.format']);
});

/** The names of options that are not ours: morgan, node:http2 and NFS have them. */
const FOREIGN = ['skip', 'maxSessionMemory', 'soft', 'timeo'];
const known = new Set([...optionTypes.flatMap((name) => [...membersOf(name).keys()]), ...JOINED.flat()]);

/** The names after the word "option", as in: the options `length` and `ttl`. */
const unknownNames = (text: string): string[] =>
  (text.match(/\boptions?\s+(?:\[?`\w+`(?:\]\([^)]*\))?,?\s*(?:(?:and|or)\s+)?)+/g) ?? [])
    .flatMap((list) => list.match(/(?<=`)\w+(?=`)/g) ?? [])
    .filter((name) => !known.has(name) && !FOREIGN.includes(name));

it.each(guides)('every name after the word "option" in the text of %s exists', (page) => {
  expect(unknownNames(read(page).replace(/^```[\s\S]*?^```/gm, ''))).toEqual([]);
});

it('the check of names after the word "option" finds what does not exist', () => {
  const text =
    'The options `length`, `ttl` and\n`age`, the option [`path`](a.md) or the option [`paths`](a.md)';
  expect(unknownNames(text)).toEqual(['age', 'paths']);
});
