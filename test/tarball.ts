import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export const root: string = resolve(__dirname, '..');

export interface Tarball {
  path: string;
  size: number;
  files: { path: string; size: number }[];
}

/** Creates a folder outside the repository, so that no module of the repository is found by accident. */
export function scratchFolder(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'espalier-package-')));
}

/** Packs the last build, as npm publish would, once for all test files of a run. */
export function pack(): Tarball {
  if (!existsSync(join(root, 'dist/index.mjs'))) throw new Error('run npm run build first');
  const folder = `${process.env.TEST_FOLDER}`;
  const result = join(folder, 'tarball.json');
  // The first test file that makes this folder packs, and the others wait for its result.
  if (mkdirSync(join(folder, 'packed'), { recursive: true }) !== undefined) {
    const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
    const [{ filename, size, files }] = JSON.parse(npm(args, root));
    writeFileSync(`${result}.new`, JSON.stringify({ path: join(folder, filename), size, files }));
    renameSync(`${result}.new`, result);
  }
  for (const start = Date.now(); !existsSync(result); ) {
    if (Date.now() - start > 50_000) throw new Error('another test file could not pack the package');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  }
  return JSON.parse(readFileSync(result, 'utf8'));
}

/** Runs npm without the settings of this repository's workspaces. */
export function npm(args: string[], cwd: string): string {
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error', '--workspaces=false'];
  return execFileSync('npm', [...args, ...quiet], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** Unpacks a tarball as `node_modules/espalier` of a folder. */
export function unpack(tarball: Tarball, folder: string): string {
  const target = join(folder, 'node_modules', 'espalier');
  mkdirSync(target, { recursive: true });
  execFileSync('tar', ['-xzf', tarball.path, '-C', target, '--strip-components=1']);
  return target;
}
