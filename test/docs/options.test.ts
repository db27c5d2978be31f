/** @tags once */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { resolveCacheControl } from '../../src/cache/options.ts';
import { resolveHttpOptions } from '../../src/graphql/options.ts';
import { connectionRules, resolveLimits, upgradeRules } from '../../src/live/options.ts';
import { resolveStaticOptions } from '../../src/static/options.ts';
import { resolveUploadOptions } from '../../src/uploads/receive.ts';
import { resolveFormOptions } from '../../src/uploads/receive-files.ts';
import { pages, root } from '../snippets.ts';

const read = (name: string): string => readFileSync(join(root, name), 'utf8');

/** The page that documents the options of each module in types/. */
const PAGES: Record<string, string> = {
  static: 'static-files',
  graphql: 'graphql',
  limits: 'graphql',
  caching: 'caching',
  streaming: 'streaming',
  uploads: 'uploads',
  subscriptions: 'subscriptions',
  graphiql: 'graphiql',
  server: 'server',
  health: 'health',
  otel: 'opentelemetry',
  inspect: 'inspect',
  mcp: 'mcp',
  pubsub: 'scaling',
  presence: 'presence',
  cursors: 'resume',
};

/** The page of an interface whose options are not on the page of its module. */
const PAGES_OF_OWNERS: Record<string, string> = {
  PagesOptions: 'pages',
  ReceiveFilesOptions: 'receive-files',
  SignedOptions: 'user-files',
  SignUrlOptions: 'user-files',
  KeepOptions: 'earlier-builds',
  VariantsOptions: 'static-sites',
  StaticRulesOptions: 'static-rules',
  PagePolicyOptions: 'pages',
  PersistedQueryOptions: 'documents',
  RedisTransportOptions: 'redis',
  DocumentsOptions: 'documents',
  CostOptions: 'cost',
  BucketOptions: 'cost',
  BudgetOptions: 'cost',
  ClientLimitOptions: 'rate-limits',
  CursorOptions: 'resume',
  DrainOptions: 'health',
  DocumentLimits: 'limits',
  GraphQLLimits: 'limits',
};

interface Option {
  module: string;
  owner: string;
  name: string;
  comment: string;
}

/** The members of every `…Options` interface in types/, with the comment above each. */
function optionsOf(module: string): Option[] {
  const options: Option[] = [];
  for (const [, owner, body] of read(`types/${module}.ts`).matchAll(
    /^export interface (\w+(?:Options|Limits))\b[^{]*\{\n([\s\S]*?)^\}/gm,
  )) {
    for (const [, comment, name] of (body as string).matchAll(
      /((?:^ {2}(?:\/\*\*| \*).*\n)*)^ {2}(?:readonly )?(\w+)\??[:(]/gm,
    )) {
      options.push({ module, owner: owner as string, name: name as string, comment: comment as string });
    }
  }
  return options;
}

const subscriptionRules = Object.entries({ ...connectionRules, ...upgradeRules });
/** The defaults in the code, by interface or by module in types/. */
const DEFAULTS: Record<string, object> = {
  static: { ...resolveStaticOptions(undefined), ...resolveStaticOptions(undefined).cache },
  graphql: resolveHttpOptions(undefined),
  DocumentLimits: resolveHttpOptions(undefined).limits,
  GraphQLLimits: resolveHttpOptions(undefined).limits,
  // Their option "timeout" is another one.
  PersistedQueryOptions: {},
  BudgetOptions: {},
  ClientLimitOptions: {},
  caching: { ...resolveCacheControl(true) },
  ReceiveFilesOptions: {
    ...resolveFormOptions(undefined),
    maxFieldBytes: 65_536,
    storage: 'spool',
  },
  uploads: {
    ...resolveUploadOptions(undefined, { maxValues: 1, bodyBytes: 1, bodyTimeout: 1 }),
    tempDir: undefined,
  },
  SubscriptionLimits: { ...resolveLimits(undefined) },
  subscriptions: Object.fromEntries(subscriptionRules.map(([name, { fallback }]) => [name, fallback])),
};

/** All notations of a default in the pages. */
function spellings(value: number | string | boolean): string[] {
  if (typeof value !== 'number') return [`\`${typeof value === 'string' ? `'${value}'` : value}\``];
  const grouped = String(value).replace(/\B(?=(\d{3})+$)/g, ' ');
  return [String(value), grouped, `${value / 1024} KiB`, `${value / 1024 ** 2} MiB`];
}

/** Whether a text contains a word, but not as part of a longer number. */
const holds = (text: string | undefined, word: string): boolean =>
  text !== undefined && new RegExp(`(?<!\\d[ _]?)${word}(?![ _]?\\d)`).test(text);

const modules = Object.keys(PAGES).filter((module) => existsSync(join(root, 'types', `${module}.ts`)));
const options = modules.flatMap(optionsOf);
const pageOf = ({ owner, module }: Option): string => `docs/${PAGES_OF_OWNERS[owner] ?? PAGES[module]}.md`;
/** Pages for contributors. */
const notes = [
  'CONTRIBUTING.md',
  'SECURITY.md',
  'src/README.md',
  'test/engine/README.md',
  'examples/README.md',
  'examples/photo-wall/README.md',
];

describe('the documentation', () => {
  it('the check of documented options finds options in types/', () => {
    expect(options.length).toBeGreaterThan(20);
  });

  it.each(options.map((option) => [`${option.owner}.${option.name}`, option] as const))(
    'the documentation has a docstring and a row for %s',
    (_, option) => {
      expect(option.comment).toMatch(/\/\*\*/);
      const page = pageOf(option);
      const rows = read(page).split('\n');
      const row = rows.find(
        (line) => line.startsWith('|') && line.split('|')[1]?.includes(`\`${option.name}\``),
      );
      if (row === undefined) throw new Error(`${page} has no row for \`${option.name}\``);
      const cells = row
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim());
      expect(cells.length).toBeGreaterThanOrEqual(3);
      for (const cell of cells) expect(cell).not.toBe('');
    },
  );

  const simple = options.flatMap((option) => {
    const { module, owner, name } = option;
    const defaults = DEFAULTS[owner] ?? DEFAULTS[module] ?? {};
    const value: unknown = Object.entries(defaults).find(([key]) => key === name)?.[1];
    const isSimple = typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean';
    return isSimple ? [[`${owner}.${name}`, option, value] as const] : [];
  });

  it('the check of documented defaults finds defaults in the code', () => {
    expect(simple.length).toBeGreaterThan(30);
  });

  it.each(simple)('the documentation states the default of %s', (_, option, value) => {
    const { name, comment } = option;
    const rows = read(pageOf(option)).split('\n');
    const cells = rows
      .map((row) => row.split('|'))
      .filter(([, first]) => first?.includes(`\`${name}\``))
      .map(([, , cell]) => cell);
    expect(cells.some((cell) => spellings(value).some((text) => holds(cell, text)))).toBe(true);
    const stated = /@default ([^\n]*)/.exec(comment)?.[1]?.replaceAll('_', '');
    expect(holds(stated, typeof value === 'string' ? `'${value}'` : String(value))).toBe(true);
  });

  it.each(modules)('the documentation lists the options of types/%s.ts in their order', (module) => {
    for (const owner of new Set(options.map((option) => option.owner))) {
      let last = 0;
      for (const option of options.filter((each) => each.module === module && each.owner === owner)) {
        const isRow = (row: string): boolean => row.split('|')[1]?.includes(`\`${option.name}\``) === true;
        const next = read(pageOf(option))
          .split('\n')
          .findIndex((row, index) => index >= last && isRow(row));
        expect([option.name, next]).toEqual([option.name, Math.max(next, 0)]);
        last = next;
      }
    }
  });

  it('README.md has at most 130 lines and code near its top', () => {
    const lines = read('README.md').split('\n');
    expect(lines.length).toBeLessThanOrEqual(131);
    expect(lines.findIndex((line) => line.startsWith('```'))).toBeLessThan(25);
  });

  it('the figures of README.md are in docs/benchmarks.md', () => {
    const figures = read('README.md').match(/^\|.*\d [µm]s \|.*times \|$/gm) ?? [];
    expect(figures.length).toBeGreaterThan(2);
    for (const row of figures) expect(read('docs/benchmarks.md')).toContain(row);
  });

  it('the documentation links only to files that exist', () => {
    for (const page of [...pages, ...notes]) {
      for (const [, target] of read(page).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)) {
        expect([page, target, existsSync(resolve(root, page, '..', target as string))]).toEqual([
          page,
          target,
          true,
        ]);
      }
    }
  });

  it('src/README.md names every folder of src/', () => {
    const text = read('src/README.md');
    const folders = readdirSync(resolve(root, 'src'), { recursive: true, withFileTypes: true })
      .filter(
        (entry) => entry.isDirectory() && !`${entry.parentPath}/${entry.name}/`.includes('/graphiql/app/'),
      )
      .map(({ name }) => name);
    expect(folders.filter((name) => !text.includes(`\`${name}\``) && !text.includes(`[${name}/]`))).toEqual(
      [],
    );
  });

  it('src/README.md has at most 250 lines, and each name in it is declared in the file beside it', () => {
    const text = read('src/README.md');
    expect(text.split('\n').length).toBeLessThanOrEqual(251);
    const named = [...text.matchAll(/`(\w+)` in\s+\[[^\]]+\]\(([^)#]+)\)/g)];
    expect(named.length).toBeGreaterThan(40);
    for (const [, name, path] of named) {
      const declaration = new RegExp(
        `^(export |async |abstract )*(function|class|const|interface|type) ${name}\\b`,
        'm',
      );
      expect([name, path, declaration.test(read(join('src', path as string)))]).toEqual([name, path, true]);
    }
  });
});
