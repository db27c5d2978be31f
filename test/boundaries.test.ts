import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseSync } from '@swc/core';

const root = resolve(__dirname, '..');
const FUNCTION =
  /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression|ClassMethod|MethodProperty)$/;
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

/** How many lines each function has to itself, without those of the functions inside it. */
function functionLengths(file: string): number[] {
  const bytes = readFileSync(join(root, file));
  const module = parseSync(bytes.toString(), { syntax: 'typescript', target: 'es2023' });
  const lengths: number[] = [];
  /** The lines of the outermost functions at or below a node. */
  const visit = (node: unknown): number => {
    if (typeof node !== 'object' || node === null) return 0;
    const inside = Object.values(node).reduce<number>((sum, child) => sum + visit(child), 0);
    const { type, span } = node as { type?: string; span?: { start: number; end: number } };
    if (span === undefined || !FUNCTION.test(type ?? '')) return inside;
    // Offsets are in bytes and go on from one parsed file to the next; the distance is what counts.
    const start = span.start - module.span.start;
    const text = bytes.subarray(start, start + span.end - span.start).toString();
    const lines = text.split('\n').length - 1;
    lengths.push(lines + 1 - inside);
    return lines;
  };
  visit(module.body);
  return lengths;
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] as number;
}

const files = Object.keys(RANK).flatMap(sources);
const linesOf = (file: string): number => readFileSync(join(root, file), 'utf8').split('\n').length - 1;

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

  it.each(files)('%s fits a few screens, and each of its functions one', (file) => {
    expect(linesOf(file)).toBeLessThanOrEqual(200);
    expect(Math.max(0, ...functionLengths(file))).toBeLessThanOrEqual(45);
  });

  it('is made of small pieces', () => {
    expect(median(files.map(linesOf))).toBeLessThanOrEqual(100);
    expect(median(files.flatMap(functionLengths).filter((length) => length > 1))).toBeLessThanOrEqual(14);
  });

  it('escapes neither the type system nor the linter', () => {
    for (const file of files) {
      expect([
        file,
        /as any\b|: any\b|as unknown as|@ts-|biome-ignore|TODO|FIXME|console\./.exec(
          readFileSync(join(root, file), 'utf8'),
        )?.[0],
      ]).toEqual([file, undefined]);
    }
  });
});
