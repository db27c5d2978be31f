import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folderOf = (path) => fileURLToPath(new URL(`../${path}/`, import.meta.url));

/** The folder in which graphql 17 is installed. */
export const graphql17 = `${folderOf('test/neighbours')}node_modules/graphql17`;

/**
 * Installs the packages of folders with their own lockfile, unless they are current: other versions of graphql and
 * TypeScript, bundlers, other servers, and the builder of the documentation site.
 */
export async function installNeighbours() {
  await Promise.all(
    ['test/neighbours', 'test/neighbours/recipes', 'site'].map((path) => install(folderOf(path))),
  );
}

async function install(folder) {
  const installed = `${folder}node_modules/.package-lock.json`;
  if (existsSync(installed) && statSync(installed).mtimeMs > statSync(`${folder}package-lock.json`).mtimeMs)
    return;
  // graphql 17 declares Node 22; on Node 20 only child processes with a later Node load it.
  const args = ['ci', '--prefix', folder, '--ignore-scripts', '--prefer-offline', '--loglevel=error'];
  const [status] = await once(spawn('npm', args, { stdio: 'inherit' }), 'exit');
  if (status !== 0) process.exit(status ?? 1);
}
