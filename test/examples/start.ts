import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { freePort } from '../programs.ts';

/** An example that runs in its own process. */
export interface Running {
  /** The URL that it printed. */
  readonly url: string;
  /** Its output so far. */
  output(): string;
  /** Sends a signal that does not end it, such as SIGSTOP. */
  signal(name: NodeJS.Signals): void;
  /** Sends a signal and resolves with the exit code, or the signal that ended it. */
  stop(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals | null>;
}

const root = resolve(__dirname, '../..');
/** Milliseconds until a test fails because an example does not exit. */
const EXIT_TIME = 15_000;
const running = new Set<ChildProcess>();

/** Starts `examples/<name>.ts` with the build of espalier, on a free port. Resolves when it has printed its URL. */
export async function startExample(name: string, env: Record<string, string> = {}): Promise<Running> {
  const child = launch(name, { PORT: String(await freePort()), ...env });
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
    signal: (name) => void child.kill(name),
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, 'exit', { signal: AbortSignal.timeout(EXIT_TIME) });
        child.kill(signal);
        await exited.catch(() => {
          throw new Error(`${name} did not end within ${EXIT_TIME} ms of ${signal}:\n${output}`);
        });
      }
      return child.exitCode ?? child.signalCode;
    },
  };
}

/** Starts an example that must fail. Resolves with its exit code and its output. */
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

/** Ends all examples that still run. */
export async function stopExamples(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }),
  );
}

function launch(name: string, env: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, ['--import', 'tsx', `examples/${name}.ts`], {
    cwd: root,
    env: { ...process.env, NODE_ENV: 'development', ...env },
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}
