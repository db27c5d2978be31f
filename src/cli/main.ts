// The command `espalier` of package.json. The build adds the line that starts Node.
import { runCommand } from './run-command.ts';

// The reader of a pipe may end first, as in `espalier compress dist | head`.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

process.exitCode = await runCommand(process.argv.slice(2), process);
