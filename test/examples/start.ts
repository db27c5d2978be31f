import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';

/** An example in a process of its own. */
export interface Running {
  /** Where it says it listens. */
  readonly url: string;
  /** What it has printed so far. */
  output(): string;
  /** Sends a signal and resolves with the exit code, or the signal that ended it. */
  stop(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals | null>;
}

const root = resolve(__dirname, '../..');
const running = new Set<ChildProcess>();

/** Starts `examples/<name>.ts` on a free port, with `espalier` as it is in the sources, and waits until it has printed its URL. */
export async function startExample(name: string, env: Record<string, string> = {}): Promise<Running> {
  const child = launch(name, { PORT: '0', ...env });
  let output = '';
  const url = await new Promise<string>((found, failed) => {
    const listen = (text: Buffer) => {
      output += text;
      const match = /http:\/\/localhost:\d+/.exec(output);
      if (match !== null) found(match[0]);
    };
    child.stdout?.on('data', listen);
    child.stderr?.on('data', listen);
    child.once('exit', (code) => failed(new Error(`${name} ended with ${code}:\n${output}`)));
  });
  return {
    url,
    output: () => output,
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) {
        const gone = once(child, 'exit');
        child.kill(signal);
        await gone;
      }
      return child.exitCode ?? child.signalCode;
    },
  };
}

/** Starts an example that is to give up; resolves with its exit code and what it printed. */
export async function failExample(
  name: string,
  env: Record<string, string>,
): Promise<{ code: number; output: string }> {
  const child = launch(name, env);
  let output = '';
  child.stdout?.on('data', (text) => (output += text));
  child.stderr?.on('data', (text) => (output += text));
  const [code] = await once(child, 'close');
  return { code, output };
}

/** Ends whatever a test has left running. */
export async function stopExamples(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }),
  );
}

function launch(name: string, env: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, ['--import', 'tsx', `examples/${name}.ts`], {
    cwd: root,
    env: { ...process.env, TSX_TSCONFIG_PATH: 'test/tsconfig.json', NODE_ENV: 'development', ...env },
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}
