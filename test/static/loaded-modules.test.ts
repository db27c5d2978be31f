import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** Packages and files that a module loads, directly or indirectly. */
function loadedBy(file: string, seen: Set<string> = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  const text = readFileSync(file, 'utf8');
  const statements = text.matchAll(
    /^(?:import|export)\s+(?!type\s)[^;'"]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)/gm,
  );
  for (const match of statements) {
    const specifier = (match[1] ?? match[2] ?? match[3]) as string;
    if (specifier.startsWith('.')) loadedBy(resolve(dirname(file), specifier), seen);
    else seen.add(specifier);
  }
  return seen;
}

describe('espalier/static', () => {
  const loaded = [...loadedBy(resolve(__dirname, '../../middleware/static.ts'))];
  const packages = loaded.filter((name) => !name.startsWith('/') && !name.startsWith('node:'));

  it('espalier/static loads neither graphql, ws, graphql-ws nor multer', () => {
    expect(packages.sort()).toEqual(['debug', 'etag', 'send']);
  });

  it('espalier/static loads no source file of the other middleware', () => {
    const unrelated = loaded.filter((name) =>
      /\/src\/(?!static|http|options|logging|diagnostics)/.test(name),
    );
    expect(unrelated).toEqual([]);
  });
});
