import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, realpathSync } from 'node:fs';
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

/** Packs the last build, as npm publish would. */
export function pack(folder: string): Tarball {
  if (!existsSync(join(root, 'dist/index.mjs'))) throw new Error('run npm run build first');
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  const [{ filename, size, files }] = JSON.parse(npm(args, root));
  return { path: join(folder, filename), size, files };
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
