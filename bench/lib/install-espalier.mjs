import { cpSync, existsSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Installs the package so that it shares one graphql with its peers. Copied for each run, so that a build suffices. */
export function installEspalier() {
  if (!existsSync(here('node_modules'))) throw new Error('run npm install in bench/ first');
  if (!existsSync(here('../dist/index.mjs'))) throw new Error('run npm run build first');
  rmSync(here('node_modules/espalier'), { recursive: true, force: true });
  for (const part of ['package.json', 'dist']) {
    cpSync(here(`../${part}`), here(`node_modules/espalier/${part}`), { recursive: true });
  }
}
