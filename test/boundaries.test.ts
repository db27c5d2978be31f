import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

const root = resolve(__dirname, '..');
const RANK: Record<string, number> = { types: 0, src: 1, middleware: 2 };

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((name) => /\.ts$/.test(name) && !name.startsWith(join('src', 'graphiql', 'app')));
}

function importsOf(file: string): { specifier: string; typeOnly: boolean }[] {
  const text = readFileSync(join(root, file), 'utf8');
  const statements = text.matchAll(
    /^(?:import|export)\s+(type\s)?[^;'"]*?from\s+'([^']+)'|^import\s+'([^']+)'/gm,
  );
  return [...statements].map((match) => ({
    specifier: (match[2] ?? match[3]) as string,
    typeOnly: match[1] !== undefined,
  }));
}

const files = Object.keys(RANK).flatMap(sources);

describe('the layout', () => {
  it('has sources to check', () => {
    expect(files.length).toBeGreaterThan(10);
  });

  it.each(files)('%s imports only what lies below it', (file) => {
    const own = RANK[file.split('/')[0] as string] as number;
    for (const { specifier, typeOnly } of importsOf(file)) {
      expect(specifier).not.toMatch(/^express/);
      if (!specifier.startsWith('.')) {
        if (own === 0) expect(typeOnly).toBe(true);
        continue;
      }
      const target = relative(root, resolve(root, file, '..', specifier)).split('/')[0] as string;
      expect(RANK[target]).toBeDefined();
      expect(RANK[target]).toBeLessThanOrEqual(own);
    }
  });
});
