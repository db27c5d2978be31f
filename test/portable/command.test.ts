/** @tags node-lines */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { run } from '../run-command.ts';

const folder = mkdtempSync(join(tmpdir(), 'espalier-command-'));
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));

const filesBelow = (path: string): string[] =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();

it('espalier compress writes copies of the files of a directory', async () => {
  const site = join(folder, 'site');
  const text = 'export const a = 1;\n'.repeat(100);
  mkdirSync(join(site, 'assets'), { recursive: true });
  writeFileSync(join(site, 'assets', 'app.js'), text);
  expect(await run('compress', '--coding', 'br', '--quiet', site)).toEqual({ code: 0, out: '', err: '' });
  expect(brotliDecompressSync(readFileSync(join(site, 'assets', 'app.js.br'))).toString()).toBe(text);
  expect((await run('compress', '--coding', 'br', '--check', site)).code).toBe(0);
});

describe('espalier init', () => {
  const starter = resolve(__dirname, '../../examples/starter');

  it('espalier init creates the project of examples/starter in a new folder', async () => {
    const target = join(folder, 'new', 'Photo App');
    const { code, out, err } = await run('init', target);
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^\d+ files were created\. Next:\n\n {2}cd .*\n {2}npm install\n {2}npm run dev\n$/);
    const created = filesBelow(target).map((file) => file.slice(target.length + 1));
    for (const name of created) {
      const text = readFileSync(join(target, name), 'utf8');
      if (name !== 'package.json')
        expect([name, text]).toEqual([name, readFileSync(join(starter, name), 'utf8')]);
    }
    expect(created).toEqual(expect.arrayContaining(['.gitignore', 'Dockerfile', join('server', 'main.ts')]));
    const { name, dependencies } = JSON.parse(readFileSync(join(target, 'package.json'), 'utf8'));
    const { version } = JSON.parse(readFileSync(resolve(__dirname, '../../package.json'), 'utf8'));
    expect([name, dependencies.espalier]).toEqual(['photo-app', `^${version}`]);
  });

  it('espalier init accepts an empty folder and one with a repository', async () => {
    const target = join(folder, 'empty');
    mkdirSync(join(target, '.git'), { recursive: true });
    expect((await run('init', '--quiet', target)).code).toBe(0);
    expect(existsSync(join(target, 'package.json'))).toBe(true);
  });

  it('espalier init accepts a folder with the licence of a new repository, and keeps it', async () => {
    const target = join(folder, 'licensed');
    mkdirSync(join(target, '.github'), { recursive: true });
    writeFileSync(join(target, 'LICENSE'), 'MIT');
    expect(await run('init', '--quiet', target)).toEqual({ code: 0, out: '', err: '' });
    expect(readFileSync(join(target, 'LICENSE'), 'utf8')).toBe('MIT');
    expect(existsSync(join(target, 'package.json'))).toBe(true);
  });

  it('espalier init replaces no file of the project that a folder contains', async () => {
    const target = join(folder, 'ignoring');
    mkdirSync(target);
    writeFileSync(join(target, '.gitignore'), 'mine');
    const { code, err } = await run('init', target);
    expect([code, err]).toEqual([1, expect.stringContaining('it contains .gitignore')]);
    expect(filesBelow(target)).toEqual([join(target, '.gitignore')]);
  });

  it('espalier init changes nothing in a folder that contains files', async () => {
    const target = join(folder, 'full');
    mkdirSync(target);
    writeFileSync(join(target, 'README.md'), 'mine');
    const { code, err } = await run('init', target);
    expect(code).toBe(1);
    expect(err).toBe(
      `espalier: ${target} is not empty: it contains README.md. Pass a new or an empty folder\n`,
    );
    expect(filesBelow(target)).toEqual([join(target, 'README.md')]);
  });

  it('espalier init leaves nothing behind if it cannot write', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, 'text');
    const { code, err } = await run('init', join(file, 'app'));
    expect(code).not.toBe(0);
    expect(err).toMatch(/^espalier: .*(ENOTDIR|ENOENT|EEXIST)/);
    expect(readFileSync(file, 'utf8')).toBe('text');
  });

  it('espalier init refuses more than one folder and unknown options', async () => {
    expect((await run('init', 'a', 'b')).err).toContain('more than one folder');
    expect((await run('init', '--force', join(folder, 'x'))).code).toBe(2);
    expect(existsSync(join(folder, 'x'))).toBe(false);
  });
});
