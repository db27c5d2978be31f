// The command `espalier` of package.json. The build adds the line that starts Node.
import { runCommand } from './run-command.ts';

// The reader of a pipe may end first, as in `espalier compress dist | head`.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

const exitCode = await runCommand(process.argv.slice(2), process);

// The module of a schema may keep the process alive with its timers and connections. Some
// systems write to pipes asynchronously, so the streams are flushed first.
await Promise.all(
  [process.stdout, process.stderr].map((stream) => new Promise((resolve) => stream.write('', resolve))),
);
process.exit(exitCode);
