// The command `espalier` of package.json. The build adds the line that starts Node.
import { runCommand } from './run-command.ts';

process.exitCode = await runCommand(process.argv.slice(2), process);
