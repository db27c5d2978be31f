// Builds dist/: the entries of middleware/ and the client as ES and CommonJS modules with their declarations, and
// beside that GraphiQL's files, when their sources changed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
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

mkdirSync(dist, { recursive: true });
// Takes the most time, and needs nothing of the other steps.
const graphiql = run('scripts/build-ide.mjs', []);
rmSync(emitted, { recursive: true, force: true });
// `npm run check` checks the types.
await run('node_modules/typescript/bin/tsc', ['--emitDeclarationOnly', '--noCheck', '--outDir', emitted]);
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
await graphiql;

async function run(script, args) {
  const child = spawn(process.execPath, [join(root, script), ...args], { cwd: root, stdio: 'inherit' });
  const [status] = await once(child, 'close');
  if (status !== 0) process.exit(status ?? 1);
}
