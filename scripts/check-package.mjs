// The packed tarball as a registry would see it: publint strict, then attw.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
for (const command of ['publint run --strict', 'attw --pack .']) {
  const [name, ...args] = command.split(' ');
  const { status } = spawnSync(`${root}node_modules/.bin/${name}`, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
