/** @tags once */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = join(__dirname, '../..');
const dist = join(root, 'dist');
const KIB = 1024;
/**
 * What an entry may load when it is imported, in KiB with comments. A commit that raises a budget says why the entry
 * needs the code.
 */
const BUDGETS = {
  index: 985,
  static: 320,
  graphql: 735,
  subscriptions: 735,
  server: 131,
  pubsub: 238,
  sources: 320,
  uploads: 147,
  testing: 148,
  otel: 132,
  inspect: 137,
  cache: 158,
  auth: 735,
  mcp: 760,
  postgres: 146,
  presence: 138,
  client: 2,
};

/** Runs a script that finds the package by its name, and parses its output as JSON. */
function run(script: string, type: 'module' | 'commonjs'): unknown {
  const args = [`--input-type=${type}`, '--eval', script];
  return JSON.parse(execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8' }));
}

describe('the modules that are loaded before their first use', () => {
  /** The files and packages that an ES module loads, without dynamic imports and modules of Node. */
  function importedBy(file: string, seen: Set<string> = new Set<string>()): Set<string> {
    if (seen.has(file)) return seen;
    seen.add(file);
    for (const [, specifier = ''] of readFileSync(join(dist, file), 'utf8').matchAll(
      /^(?:import|export)\b[^'"]*?\bfrom\s*['"]([^'"]+)['"]/gm,
    )) {
      if (specifier.startsWith('.')) importedBy(join(dirname(file), specifier), seen);
      // The functions that load packages later.
      else if (specifier === '#packages') importedBy('lib/packages.mjs', seen);
      else if (!specifier.startsWith('node:')) seen.add(specifier);
    }
    return seen;
  }

  it('each entry has a budget', () => {
    const entries = readdirSync(join(root, 'middleware')).map((name) => name.replace(/\.ts$/, ''));
    expect(Object.keys(BUDGETS).sort()).toEqual([...entries, 'client'].sort());
  });

  it.each(Object.entries(BUDGETS))('espalier/%s loads modules within its budget', (entry, budget) => {
    const modules = [...importedBy(`${entry}.mjs`)].filter((name) => name.endsWith('.mjs'));
    const bytes = modules.reduce((sum, name) => sum + statSync(join(dist, name)).size, 0);
    expect(bytes / KIB).toBeLessThan(budget);
  });

  it.each([
    ['static', ['lib/http.mjs', 'lib/packages.mjs', 'lib/static.mjs', 'static.mjs']],
    ['server', ['lib/http.mjs', 'lib/packages.mjs', 'lib/server.mjs', 'server.mjs']],
    ['uploads', ['lib/http.mjs', 'lib/packages.mjs', 'lib/uploads.mjs', 'uploads.mjs']],
    ['inspect', ['inspect.mjs', 'lib/http.mjs', 'lib/packages.mjs']],
  ])('espalier/%s loads few files and no package when it is imported', (entry, files) => {
    expect([...importedBy(`${entry}.mjs`)].sort()).toEqual(files);
  });

  it('espalier/otel loads @opentelemetry/api and no graphql when it is imported', () => {
    expect([...importedBy('otel.mjs')].sort()).toEqual([
      '@opentelemetry/api',
      'lib/http.mjs',
      'lib/packages.mjs',
      'otel.mjs',
    ]);
  });

  it('espalier loads no package but graphql when it is imported', () => {
    const packages = [...importedBy('index.mjs')].filter((name) => !name.endsWith('.mjs'));
    expect(packages).toEqual(['graphql']);
  });

  it('no entry but espalier/mcp loads the code of MCP or its package', () => {
    const entries = Object.keys(BUDGETS);
    const loads = (entry: string) => {
      const names = [...importedBy(`${entry}.mjs`)];
      const isMcp = (name: string) => readFileSync(join(dist, name), 'utf8').includes('tools/list');
      return names.some((name) => (name.endsWith('.mjs') ? isMcp(name) : name.startsWith('@modelcontext')));
    };
    expect(entries.filter(loads)).toEqual(['mcp']);
  });

  /** The modules whose text matches a pattern, without those of GraphiQL. */
  function modulesWith(pattern: RegExp): string[] {
    const names = readdirSync(dist, { recursive: true, encoding: 'utf8' });
    const modules = names.filter((name) => /\.[cm]js$/.test(name) && !name.startsWith('graphiql'));
    return modules.filter((name) => pattern.test(readFileSync(join(dist, name), 'utf8')));
  }

  it('no module imports node:process, whose ES module reads every property of process when it is loaded', () => {
    expect(modulesWith(/node:/).length).toBeGreaterThan(10);
    expect(modulesWith(/['"]node:process['"]/)).toEqual([]);
  });

  it('no ES module imports a module of Node, which would read all properties of it', () => {
    expect(modulesWith(/process\.getBuiltinModule\("node:http"\)/).length).toBeGreaterThan(3);
    // The tracer of Next.js finds the packages through this import. The properties of node:module are cheap to read.
    expect(modulesWith(/^import\b[^'"]*['"]node:/m)).toEqual(['lib/packages.mjs']);
  });

  it.each(['module', 'commonjs'] as const)(
    'espalier/static and espalier/server load neither node:http2, node:https nor the client of fetch (%s)',
    (type) => {
      const load = (name: string): string =>
        type === 'module' ? `await import('${name}')` : `require('${name}')`;
      const script = `
        const before = process.moduleLoadList.length;
        ${load('espalier/static')};
        ${load('espalier/server')};
        console.log(JSON.stringify(process.moduleLoadList.slice(before)));`;
      const loaded = run(script, type) as string[];
      expect(loaded).toContain('NativeModule http');
      expect(loaded.filter((name) => /(?:http2|https|undici)$/.test(name))).toEqual([]);
    },
  );

  it('the text of every module has one byte per character in memory', () => {
    expect(modulesWith(/[\u0100-\uffff]/)).toEqual([]);
  });

  it('the CommonJS build of espalier/static loads few files', () => {
    const script = `require('${dist}/static.cjs'); console.log(JSON.stringify(Object.keys(require.cache)))`;
    const loaded = run(script, 'commonjs') as string[];
    expect(loaded.map((path) => path.split('/dist/').pop()).sort()).toEqual([
      'lib/http.cjs',
      'lib/packages.cjs',
      'lib/static.cjs',
      'rolldown-runtime.cjs',
      'static.cjs',
    ]);
  });
});
