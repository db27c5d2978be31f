// Builds dist/: the entries of middleware/ and the client as ES and CommonJS modules with their declarations, then
// GraphiQL's files when their sources changed.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle, bundleClient } from './bundle.mjs';
import { bundleDeclarations } from './declarations.mjs';
import { writeTemplate } from './template.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const emitted = join(root, 'artifacts', 'declarations');
const entries = readdirSync(join(root, 'middleware')).map((name) => name.replace(/\.ts$/, ''));

rmSync(emitted, { recursive: true, force: true });
run('node_modules/typescript/bin/tsc', ['--emitDeclarationOnly', '--outDir', emitted]);
mkdirSync(dist, { recursive: true });
for (const name of readdirSync(dist)) {
  if (name !== 'graphiql') rmSync(join(dist, name), { recursive: true });
}
await bundle(root, entries, dist);
await bundleClient(root, dist);
writeTemplate(root, dist);
bundleDeclarations(emitted, entries, dist);
// Separate files: the shared declarations import types of Node.
for (const extension of ['d.mts', 'd.cts']) {
  copyFileSync(join(emitted, 'client/index.d.ts'), join(dist, `client.${extension}`));
}
run('scripts/build-ide.mjs', []);

function run(script, args) {
  const { status } = spawnSync(process.execPath, [join(root, script), ...args], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
}
