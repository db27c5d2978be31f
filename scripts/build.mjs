// Builds dist/: the ES and the CommonJS pass of tsc, then the IDE's assets when their sources changed.
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const asCommonJs =
  '--module commonjs --moduleResolution bundler --verbatimModuleSyntax false --esModuleInterop --outDir dist/cjs';

for (const part of ['esm', 'cjs']) rmSync(`${root}dist/${part}`, { recursive: true, force: true });
run('node_modules/typescript/bin/tsc', []);
run('node_modules/typescript/bin/tsc', asCommonJs.split(' '));
writeFileSync(`${root}dist/cjs/package.json`, '{ "type": "commonjs" }\n');
run('scripts/build-ide.mjs', []);

function run(script, args) {
  const { status } = spawnSync(process.execPath, [root + script, ...args], { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
