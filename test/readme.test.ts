import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { resolveCacheControl } from '../src/cache/options.ts';
import { resolveHttpOptions } from '../src/graphql/options.ts';
import { connectionRules, upgradeRules } from '../src/live/options.ts';
import { resolveStaticOptions } from '../src/static/options.ts';
import { resolveUploadOptions } from '../src/uploads/receive.ts';
import { pages, root } from './snippets.ts';

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
  otel: 'observability',
  inspect: 'observability',
  pubsub: 'scaling',
  cursors: 'resume',
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
/** The defaults in the code, by module in types/. */
const DEFAULTS: Record<string, object> = {
  static: { ...resolveStaticOptions(undefined), ...resolveStaticOptions(undefined).cache },
  graphql: resolveHttpOptions(undefined),
  limits: resolveHttpOptions(undefined).limits,
  caching: { ...resolveCacheControl(true) },
  streaming: { ...resolveHttpOptions(undefined).eventStreams },
  uploads: { ...resolveUploadOptions(undefined, 1), tempDir: undefined },
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
      const rows = read(`docs/${PAGES[option.module]}.md`).split('\n');
      const row = rows.find(
        (line) => line.startsWith('|') && line.split('|')[1]?.includes(`\`${option.name}\``),
      );
      if (row === undefined)
        throw new Error(`docs/${PAGES[option.module]}.md has no row for \`${option.name}\``);
      const cells = row
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim());
      expect(cells.length).toBeGreaterThanOrEqual(3);
      for (const cell of cells) expect(cell).not.toBe('');
    },
  );

  const simple = options.flatMap(({ module, owner, name }) => {
    const value: unknown = Object.entries(DEFAULTS[module] ?? {}).find(([key]) => key === name)?.[1];
    const isSimple = typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean';
    return isSimple ? [[`${owner}.${name}`, module, name, value] as const] : [];
  });

  it('the check of documented defaults finds defaults in the code', () => {
    expect(simple.length).toBeGreaterThan(50);
  });

  it.each(simple)('the documentation states the default of %s', (_, module, name, value) => {
    const rows = read(`docs/${PAGES[module]}.md`).split('\n');
    const cell = rows.map((row) => row.split('|')).find(([, first]) => first?.includes(`\`${name}\``))?.[2];
    expect(spellings(value).some((text) => holds(cell, text))).toBe(true);
    const comment = options.find((option) => option.module === module && option.name === name)?.comment ?? '';
    const stated = /@default ([^\n]*)/.exec(comment)?.[1]?.replaceAll('_', '');
    expect(holds(stated, typeof value === 'string' ? `'${value}'` : String(value))).toBe(true);
  });

  it.each(modules)('the documentation lists the options of types/%s.ts in their order', (module) => {
    const rows = read(`docs/${PAGES[module]}.md`).split('\n');
    const rowOf = (name: string): number =>
      rows.findIndex((row) => row.split('|')[1]?.includes(`\`${name}\``));
    for (const owner of new Set(options.map((option) => option.owner))) {
      const found = options.filter((option) => option.module === module && option.owner === owner);
      const places = found.map(({ name }) => rowOf(name));
      expect(places).toEqual(places.toSorted((a, b) => a - b));
    }
  });

  it('README.md has at most 95 lines and code near its top', () => {
    const lines = read('README.md').split('\n');
    expect(lines.length).toBeLessThanOrEqual(96);
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

  it('src/README.md names the files of each walk in the order of their imports', () => {
    const text = read('src/README.md');
    const walks = text.slice(text.indexOf('## graphql, core and http'));
    const linked = [...walks.matchAll(/\]\(([^)#]+\.ts)\)/g)].map(([, path]) =>
      relative(root, resolve(root, 'src', path as string)),
    );
    const seen = new Set<string>();
    const imported = new Set<string>();
    for (const file of linked) {
      if (!file.startsWith('middleware/')) expect([...imported]).toContain(file);
      seen.add(file);
      for (const [, path] of read(file).matchAll(/from\s+'(\.[^']+)'/g)) {
        imported.add(relative(root, resolve(root, dirname(file), path as string)));
      }
    }
    expect(seen.size).toBeGreaterThan(60);
  });
});
