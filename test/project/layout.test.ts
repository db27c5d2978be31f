/** @tags once */
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { makeFolder } from '../kit.ts';

const LAYOUT = resolve(__dirname, '../../scripts/check-layout.mjs');
const EXPORTS = resolve(__dirname, '../../scripts/check-exports.mjs');

interface Checked {
  status: number | null;
  lines: string[];
}

/** Checks the layout of a tree of files. That of the repository is checked by `npm run check`. */
const check = (tree: Record<string, string>): Checked => run(LAYOUT, tree);

/** Runs a checker; returns its exit code and the lines that it prints. */
function run(script: string, tree: Record<string, string>): Checked {
  const args = [script, makeFolder(tree)];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  return { status, lines: `${stdout}${stderr}`.trim().split('\n') };
}

const repeat = (count: number, line: string): string => `${line}\n`.repeat(count);

describe('the layout of the sources', () => {
  it('check-layout accepts values of lower folders, types of any, and packages of Node and npm', () => {
    const tree = {
      'middleware/static.ts': "export { serve } from '../src/static/handler.ts';\n",
      'src/static/handler.ts':
        "import { stat } from 'node:fs';\nimport type { Options } from '../../types/static.ts';\nimport { head } from './head.ts';\nexport const serve = (options: Options) => stat(head(options));\n",
      'src/static/head.ts': "import { vary } from '../http/vary.ts';\nexport const head = vary;\n",
      'src/http/vary.ts':
        "import type { Head } from '../static/head.ts';\nimport { type Serve } from '../static/handler.ts';\nexport const vary: Head & Serve = String;\nexport type X = import('../static/head.ts').Y;\n",
      'types/static.ts': "import type { Stats } from 'node:fs';\nexport type Options = Stats;\n",
    };
    expect(check(tree)).toEqual({ status: 0, lines: ['Layout: 5 modules, no violation'] });
  });

  const core = {
    'src/core/documents.ts': 'export type Prepared = string;\nexport const prepare = String;\n',
  };
  const imports =
    "import { type Prepared, prepare } from '../core/documents.ts';\nexport const x: Prepared = prepare;\n";
  const upward = 'direction: src/http/body.ts: imports src/core/documents.ts: src/core is not below src/http';

  it.each([
    ['an upward import', { 'src/http/body.ts': imports, ...core }, upward],
    ['an upward export', { 'src/http/body.ts': "export * from '../core/documents.ts';\n", ...core }, upward],
    [
      'an upward import at run time',
      { 'src/http/body.ts': "export const x = () => import('../core/documents.ts');\n", ...core },
      upward,
    ],
    [
      'an upward require',
      { 'src/http/body.ts': "export const x = () => require('../core/documents.ts');\n", ...core },
      upward,
    ],
    [
      'an import of a folder of the same layer',
      { 'src/static/a.ts': "export * from '../pubsub/b.ts';\n", 'src/pubsub/b.ts': 'export const b = 1;\n' },
      'direction: src/static/a.ts: imports src/pubsub/b.ts: src/pubsub is not below src/static',
    ],
    [
      'a file in a folder without a layer',
      { 'src/helpers/a.ts': 'export const a = 1;\n' },
      'direction: src/helpers/a.ts: src/helpers has no layer',
    ],
    [
      'a file outside the folders of src',
      { 'src/a.ts': 'export const a = 1;\n' },
      'direction: src/a.ts: src/a.ts has no layer',
    ],
    [
      'an import of the tests',
      { 'src/http/a.ts': "export * from '../../test/b.ts';\n" },
      'direction: src/http/a.ts: imports test/b.ts: test has no layer',
    ],
    [
      'an import of Express',
      { 'src/http/a.ts': "export * from 'express';\n" },
      'direction: src/http/a.ts: imports express: the middlewares work without Express',
    ],
    [
      'an import at run time in types',
      { 'types/a.ts': "export { GraphQLError } from 'graphql';\n" },
      'direction: types/a.ts: imports graphql at run time',
    ],
  ])('check-layout fails on %s', (_name, tree, line) => {
    const { status, lines } = check(tree);
    expect(lines).toEqual([expect.stringContaining(line)]);
    expect(status).toBe(1);
  });

  it.each([
    [
      'two files',
      {
        'src/http/a.ts': "export * from './b.ts';\n",
        'src/http/b.ts': "import { a } from './a.ts';\nexport const b = a;\n",
      },
      'cycle: src/http/a.ts: imports src/http/b.ts, which imports src/http/a.ts',
    ],
    [
      'three files in two folders',
      {
        'src/http/a.ts': "export * from './b/b.ts';\n",
        'src/http/b/b.ts': "export * from './c.ts';\n",
        'src/http/b/c.ts': "export * from '../a.ts';\n",
      },
      'cycle: src/http/a.ts: imports src/http/b/b.ts, which imports src/http/b/c.ts, which imports src/http/a.ts',
    ],
  ])('check-layout fails on a cycle of %s', (_name, tree, line) => {
    const { status, lines } = check(tree);
    expect({ status, lines }).toEqual({ status: 1, lines: [line] });
  });

  it('check-layout accepts cycles that only types close, and sub-folders that import each other', () => {
    const tree = {
      'types/a.ts': "import type { B } from './b.ts';\nexport type A = B;\n",
      'types/b.ts': "import type { A } from './a.ts';\nexport type B = A;\n",
      'src/http/body/a.ts': "export * from '../reply/b.ts';\n",
      'src/http/reply/b.ts': 'export const b = 1;\n',
      'src/http/reply/c.ts': "export * from '../body/d.ts';\n",
      'src/http/body/d.ts': 'export const d = 1;\n',
    };
    expect(check(tree).status).toBe(0);
  });

  const body = (lines: number) => `function f() {\n${repeat(lines - 2, '  g();')}}\n`;

  it('check-layout measures a function after a comment at the start of the file', () => {
    const text = `// One comment in UTF-8: 1–9.\n\n${body(46)}`;
    expect(check({ 'src/http/a.ts': text }).lines).toEqual([
      expect.stringContaining('function-size: src/http/a.ts:3: 46 lines'),
    ]);
  });

  it.each([
    ['function-size: src/http/a.ts:1: 46 lines without inner functions, at most 45', body(46)],
    [
      'function-size: src/http/a.ts:2: 81 lines with inner functions, at most 80',
      `g();\nfunction outer() {\n${body(40)}${body(39)}}\n`,
    ],
  ])('check-layout prints "%s"', (line, text) => {
    expect(check({ 'src/http/a.ts': text })).toEqual({ status: 1, lines: [line] });
  });

  it.each([
    ['as never', 'export const x = f(1 as never);'],
    ['as unknown as', 'export const x = f as unknown as string;'],
    ['any', 'export const x: string = f as any;'],
    ['any', 'export const x: Map<string, any> = f;'],
    ['@ts-', '// @ts-expect-error'],
    ['biome-ignore', '// biome-ignore lint: reason'],
    ['TODO', '// TODO: this'],
    ['FIXME', '// FIXME: this'],
    ['console.', "console.log('x');"],
  ])('check-layout fails on "%s" in `%s`', (match, line) => {
    const { status, lines } = check({ 'src/http/a.ts': `g();\n${line}\n` });
    expect(lines).toEqual([`escape: src/http/a.ts:2: "${match}" is not allowed`]);
    expect(status).toBe(1);
  });

  it('check-layout lets the logging module write to the console', () => {
    expect(check({ 'src/diagnostics/logging.ts': 'console.error(1);\n' }).status).toBe(0);
  });

  it('check-layout accepts the word any in a comment', () => {
    expect(check({ 'src/http/a.ts': '// Lengths: any number is valid.\ng();\n' }).status).toBe(0);
  });
});

describe('the exports of the sources', () => {
  const exporter = { 'src/http/a.ts': 'export const a = 1;\nexport interface B {}\nexport type C = B;\n' };

  it.each<[string, Record<string, string>, string[]]>([
    ['have no importer', {}, ['a', 'B', 'C']],
    [
      'a file of the sources leaves out',
      { 'src/http/b.ts': "import { a } from './a.ts';\na();\n" },
      ['B', 'C'],
    ],
    [
      'a re-export leaves out',
      { 'middleware/a.ts': "export { a as C } from '../src/http/a.ts';\n" },
      ['B', 'C'],
    ],
    [
      'a type in an expression leaves out',
      { 'types/a.ts': "type X = import('../src/http/a.ts').C;\n" },
      ['a', 'B'],
    ],
    [
      'a test leaves out',
      { 'test/a.test.ts': "import {\n  type B,\n  a as C,\n} from '../src/http/a.ts';\n" },
      ['C'],
    ],
  ])('check-exports fails on exports that %s', (_name, importer, names) => {
    const { status, lines } = run(EXPORTS, { ...exporter, ...importer });
    expect(lines).toEqual(
      names.map((name) =>
        expect.stringMatching(`^export: src/http/a.ts:\\d: no other file imports ${name}:`),
      ),
    );
    expect(status).toBe(1);
  });

  it.each([
    ['an import of the whole module', { 'src/http/b.ts': "import * as a from './a.ts';\na();\n" }],
    ['a re-export of the whole module', { 'middleware/a.ts': "export * from '../src/http/a.ts';\n" }],
    ['a dynamic import', { 'bench/a.mjs': "const a = await import('../src/http/a.ts');\n" }],
    ['a path that a test passes to a process', { 'test/a.test.ts': "run('../../src/http/a.ts');\n" }],
  ])('check-exports accepts %s', (_name, importer) => {
    expect(run(EXPORTS, { ...exporter, ...importer }).status).toBe(0);
  });
});
