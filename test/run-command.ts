import { runCommand } from '../src/cli/run-command.ts';

/** Runs the command `espalier` in this process, and returns its exit code and output. */
export async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = '';
  let err = '';
  const code = await runCommand(args, {
    stdout: { write: (text) => (out += text) },
    stderr: { write: (text) => (err += text) },
  });
  return { code, out, err };
}
