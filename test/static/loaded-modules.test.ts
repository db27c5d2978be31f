/** @tags node */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const root = resolve(__dirname, '../..');

/** The packages that a process loads which imports an entry of the package, and after it has run a script. */
function packagesOf(extension: string, script: string): readonly string[][] {
  const program = `
    import { createRequire } from 'node:module';
    const { cache } = createRequire(import.meta.url);
    const loaded = () => [...new Set(Object.keys(cache).flatMap((path) => /node_modules\\/([^/]+)/.exec(path)?.[1] ?? []))].sort();
    const entry = await import('${root}/dist/static.${extension}');
    const imported = loaded();
    ${script};
    console.log(JSON.stringify([imported, loaded()]));`;
  const args = ['--input-type=module', '--eval', program];
  return JSON.parse(execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8' }));
}

/** Files that a module loads, directly or indirectly. */
function loadedBy(file: string, seen: Set<string> = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  const text = readFileSync(file, 'utf8');
  const statements = text.matchAll(/^(?:import|export)\s+(?!type\s)[^;'"]*?from\s+'(\.[^']+)'/gm);
  for (const [, specifier = ''] of statements) loadedBy(resolve(dirname(file), specifier), seen);
  return seen;
}

describe('espalier/static', () => {
  it.each(['mjs', 'cjs'])(
    'espalier/static loads no package when it is imported, and neither graphql, ws, graphql-ws nor multer when a middleware is created (%s)',
    (extension) => {
      const [imported, created] = packagesOf(extension, "entry.staticFiles('test')");
      expect(imported).toEqual([]);
      expect(created).toEqual(expect.arrayContaining(['etag', 'send']));
      for (const name of ['graphql', 'graphql-ws', 'multer', 'ws']) expect(created).not.toContain(name);
    },
  );

  it('espalier/static loads no source file of the other middleware', () => {
    const loaded = [...loadedBy(resolve(root, 'middleware/static.ts'))];
    const unrelated = loaded.filter((name) =>
      /\/src\/(?!static|pages|signed|http|options|logging|diagnostics)/.test(name),
    );
    expect(unrelated).toEqual([]);
  });
});
